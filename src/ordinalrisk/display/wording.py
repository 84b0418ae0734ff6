"""Describe the guarantee of a report in words, from its summary: groups, classes, clusters and shifts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ordinalrisk.display.text_table import counted, listed

SummaryData = Mapping[str, Any]
Facts = list[tuple[str, str, bool]]  # a term, its text, and whether to show it as code

_SHIFTS = {"covariates": "of covariates: rows have weights", "labels": "of the shares of the classes"}


def strata_heading(summary: SummaryData) -> str:
    """Return the heading of the section that shows each group and true class."""
    return f"Each {' and '.join(summary['promise']['by']).replace('class', 'true class')}"


def alpha_word(summary: SummaryData) -> str:
    """Name the quantity that the slider sets."""
    return "alpha factor" if has_own_alphas(summary) else "alpha"


def has_own_alphas(summary: SummaryData) -> bool:
    """Return whether each true class has its own alpha."""
    return "promise" in summary and bool(summary["promise"]["alphas_differ"])


def calibrated_alpha(summary: SummaryData) -> str:
    """Write the calibrated alpha, or the alphas of the classes."""
    if not has_own_alphas(summary):
        return str(summary["alpha"])
    by_class = dict(zip(summary["classes"], summary["promise"]["strata"], strict=False))
    exempt = summary["promise"]["exempt"]
    return ", ".join(f"{part['alpha']} for {name}" for name, part in by_class.items() if name not in exempt)


def parts_in_words(summary: SummaryData) -> list[str]:
    """Write the notes above the table of groups and true classes."""
    promise, noun = summary["promise"], summary["promise"]["noun"]
    but = f" except {listed(promise['exempt'])}" if promise["exempt"] else ""
    sentences = [f"Each of the {promise['parts']:,} {noun}{but} has its own threshold and guarantee."]
    sentences += _shared_in_words(summary["stops"][summary["start"]])
    if "class" in promise["by"]:
        sentences.append(
            "Each set keeps the guarantee of every true class, so it can be larger than one class needs."
        )
    if has_own_alphas(summary):
        sentences.append(
            "The slider multiplies all alphas by the alpha factor; the factor 1 gives the calibrated alphas."
        )
    if len(promise["strata"]) < promise["parts"]:
        sentences.append(f"The page shows the {len(promise['strata'])} with the most calibration rows.")
    if promise["unseen_rows"]:
        sentences.append(
            f"{promise['unseen_rows']:,} test rows belong to groups without calibration rows, so their "
            "sets include all labels."
        )
    return sentences


def part_word(part: SummaryData, summary: SummaryData) -> str:
    """Write the verdict on a group or true class in a few words."""
    unit = summary["promise"]["unit"]
    if part["exempt"]:
        return "no guarantee"
    if not part["certified"]:
        held = "always in the set" if "class" in summary["promise"]["by"] else "full sets"
        return f"too few calibration {unit}s: {held}"
    if part["risk"] is None:
        return "no test rows"
    word = {
        "agrees": "agrees",
        "chance": "above alpha, within chance",
        "disagrees": "disagrees",
        "nothing": "the calibration rows themselves",
    }[part["verdict"]]
    return f"{word} ({' + '.join(part['pool'])} together)" if part["pool"] else word


def uncertified(stop: SummaryData, summary: SummaryData) -> list[str]:
    """Return the names of the groups and classes without a guarantee at a stop of the slider."""
    names = [part["name"] for part in summary["promise"]["strata"]]
    parts = zip(names, stop["strata"], strict=True)
    return [name for name, part in parts if not part["certified"] and not part["exempt"]]


def realised_in_words(summary: SummaryData) -> str:
    """Explain what the realised risk is a mean of."""
    promise, rows = summary["promise"], f"{summary['test']['rows']:,} rows"
    share = ", as a share of what could be lost" if promise["relative"] else ""
    at_most = "It should be at most alpha, apart from chance."
    if has_own_alphas(summary):
        at_most = "For each true class it should be at most that class's alpha, apart from chance."
    if promise["exempt"]:
        at_most = f"It includes {listed(promise['exempt'])}, without a guarantee, so it may be above alpha."
    if promise["unit"] == "cluster":
        clusters = f"{promise['test_clusters']:,} clusters"
        return f"Mean over {clusters} of the mean loss of their rows, {rows} in all{share}. {at_most}"
    if promise["shift"] is not None:
        units = summary["stops"][0]["units"]
        return (
            f"Weighted mean loss of {rows}{share}. By their weights they represent the new population, and "
            f"count as {units:,.0f} rows of equal weight. {at_most}"
        )
    return f"Mean loss of {rows}{share}. {at_most}"


def interval_notes(unit: str, shift: str | None) -> tuple[str, str]:
    """Return notes on the interval of the realised risk, and on intervals that count rows one by one."""
    if unit == "cluster":
        return "", " (treats rows as independent)"
    return " (approximate)" if shift == "covariates" else "", "" if shift is None else " (not weighted)"


def cautions(unit: str, shift: str | None) -> list[str]:
    """List the limits of intervals if test rows come in clusters or have weights."""
    sentences = []
    if unit == "cluster":
        sentences.append(
            "Except for the realised risk, intervals treat rows as independent; with clusters they are too "
            "narrow."
        )
    if shift is not None:
        sentences.append(
            "Except for the realised risk, all numbers count each test row once, without weights."
        )
    if shift == "covariates":
        sentences.append(
            "The interval of the realised risk is approximate: one row with a larger weight than these "
            "could change it."
        )
    return sentences


def exempt_in_words(summary: SummaryData) -> list[str]:
    """Name the classes without a guarantee, if there are any."""
    exempt = summary["promise"]["exempt"] if "promise" in summary else []
    return [f"There is no guarantee for {listed(exempt)}."] if exempt else []


def average_in_words(stop: SummaryData, summary: SummaryData) -> str:
    """Say whether the guarantee is an average over the classes."""
    by = summary["promise"]["by"] if "promise" in summary else []
    if "class" not in by:
        within = "Within a group, the guarantee" if by else "The guarantee"
        return f"{within} is an average over all classes."
    sentences = ["Each true class has its own guarantee.", *_shared_in_words(stop)]
    return " ".join([*sentences, *exempt_in_words(summary)])


def _shared_in_words(stop: SummaryData) -> list[str]:
    pools = dict.fromkeys(" + ".join(part["pool"]) for part in stop["strata"] if part["pool"])
    return [f"These classes share a threshold and a guarantee: {listed(pools)}."] if pools else []


def worst_in_words(stop: SummaryData, summary: SummaryData) -> str:
    """Describe the class with the largest loss, which an average hides.

    If some class is far off, the sentence of the verdict names it.
    """
    promised = set(summary["classes"]) - set(summary["promise"]["exempt"] if "promise" in summary else ())
    losses = [
        (estimate[0], y)
        for y, estimate in enumerate(stop["class_risk"])
        if estimate and summary["classes"][y] in promised
    ]
    if len(losses) < 2 or any(each["kind"] == "class" for each in stop["far_off"]):
        return ""
    largest, y = max(losses)
    if not largest:
        return "The mean loss of every class is 0."
    name, rows = summary["classes"][y], summary["test"]["class_rows"][y]
    missed = round(rows * (1 - stop["class_coverage"][y][0]))
    share = f"{whole_percent(missed, rows)} of its sets miss the truth"
    of_rows = f"{share} ({missed:,} of {counted(rows, 'row')})"
    by_misses = all(
        math.isclose(risk, 1 - stop["class_coverage"][label][0], abs_tol=1e-9) for risk, label in losses
    )
    if by_misses:
        return f"The class missed most often is {name}: {of_rows}."
    return f"The class with the largest mean loss is {name}: {four_digits(largest)}, and {of_rows}."


def threshold_in_words(summary: SummaryData) -> str:
    """Write the number of thresholds, or what they depend on."""
    promise = summary["promise"]
    if promise["by"]:
        return f"{promise['parts']:,}"
    return {"covariates": "by weight", "labels": "by label"}[promise["shift"]]


def how_thresholds_apply(summary: SummaryData) -> str:
    """Explain when a label is in a set."""
    promise = summary["promise"]
    if promise["by"]:
        each = strata_heading(summary).lower()
        return f"One for {each}: a label is in the set if its level is at least the threshold of its"
    if promise["shift"] is not None:
        return "A row with a larger weight has a smaller threshold."
    coin = "; labels exactly at the threshold are included at random" if promise["randomized"] else ""
    return f"A label is in the set if its level is at least the threshold{coin}."


def limits(summary: SummaryData) -> list[str]:
    """List what is guaranteed, and what is not."""
    promise = summary["promise"]
    unit, cluster = promise["unit"], promise["unit"] == "cluster"
    shift, by = promise["shift"], promise["by"]
    sentences = []
    if shift is None:
        what = "the mean loss of new clusters" if cluster else "new rows"
        sentences.append(
            f"The guarantee is about {what}, drawn at random from the same population as the calibration "
            f"{unit}s."
        )
    else:
        ratios = "ratios of the class shares" if shift == "labels" else "likelihood ratios"
        sentences.append(
            f"The guarantee is about a new population that differs from that of the calibration rows only by "
            f"the {ratios} that were given. It is only as good as these ratios."
        )
    exempt = f" except {listed(promise['exempt'])}" if promise["exempt"] else ""
    for_each = f", for {strata_heading(summary).lower()}{exempt}" if by else ""
    not_for = listed([*(f"each {part}" for part in ("class", "group") if part not in by), "each single row"])
    average = (
        f" and over draws of the calibration {unit}s"
        if promise["delta"] is None
        else f", and fails with a probability of at most {promise['delta']}"
    )
    average = f"The guarantee is an average over {unit}s{average}"
    sentences.append(f"{average}{for_each}. It is not a guarantee for {not_for}.")
    if promise["delta"] is not None and promise["bound"] != "dkw":
        sentences.append(
            "This confidence is for each alpha of the slider separately, not for all of them together."
        )
    reasons = ["if the calibration rows were used to train the model"]
    reasons += [] if cluster else ["if several rows come from one person, customer or other unit"]
    reasons.append(
        "if the population has shifted in another way" if shift else "if the population has shifted since"
    )
    sentences.append(f"It does not hold {', '.join(reasons[:-1])}, or {reasons[-1]}.")
    sentences += cautions(promise["unit"], promise["shift"])
    if promise["randomized"]:
        sentences.append(
            "Labels exactly at the threshold are included at random. The seed is "
            f"{promise['random_state']}; another seed gives slightly different sets with the same guarantee."
        )
    sentences.append(
        "Choose alpha before you see the test data. The slider shows the results of other choices, but these "
        "test rows can't check an alpha that was chosen by looking at their results."
    )
    return sentences


def facts(summary: SummaryData, bound: str | None) -> list[tuple[str, Facts]]:
    """List the guarantee for the auditor; ``bound`` is the confidence bound in words."""
    promise = summary["promise"]
    seed, clusters = promise["shuffle_seed"], promise["test_clusters"]
    ratios = zip(summary["classes"], promise["class_ratios"] or (), strict=False)
    entries = [
        ("Holds", "on average" if promise["delta"] is None else "with high probability"),
        ("Delta", promise["delta"]),
        ("Bound", bound),
        ("Seed of the shuffle", None if seed is None else str(seed)),
        ("What is exchangeable", f"{promise['unit']}s"),
        ("Shift", _SHIFTS.get(promise["shift"])),
        *((f"Ratio of {name}", ratio) for name, ratio in ratios),
        ("Guarantee for each", " and ".join(promise["by"]) or "all rows together"),
        ("Randomized", f"yes, seed {promise['random_state']}" if promise["randomized"] else "no"),
        ("Clusters among the test rows", None if clusters is None else f"{clusters:,}"),
    ]
    sections = [("Guarantee", [(term, text, False) for term, text in entries if text is not None])]
    if promise["strata"]:
        thresholds = [
            (part["name"], "none: no guarantee", False)
            if part["exempt"]
            else (
                part["name"],
                f"{part['threshold']['hex']} (alpha {part['alpha']}, "
                f"{part['calibration_units']:,} {promise['unit']}s)",
                True,
            )
            for part in promise["strata"]
        ]
        sections.append((f"Thresholds of {promise['noun']}", thresholds))
    return sections


def four_digits(value: float) -> str:
    """Write a number with four digits, and large numbers with commas.

    Examples
    --------
    >>> four_digits(0.04812345), four_digits(12345.6), four_digits(0.0)
    ('0.04812', '12,346', '0')
    """
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def whole_percent(hits: int, n: int) -> str:
    """Write a share in whole percent: 0 % only for none, 100 % only for all.

    Examples
    --------
    >>> whole_percent(24, 25), whole_percent(999, 1000), whole_percent(1, 1000), whole_percent(0, 9)
    ('96 %', 'more than 99 %', 'less than 1 %', '0 %')
    """
    rounded = round(100 * hits / n)
    if rounded == 100 and hits < n:
        return "more than 99 %"
    return "less than 1 %" if rounded == 0 and hits else f"{rounded} %"
