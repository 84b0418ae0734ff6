"""How a report words a promise that is more than one risk for all rows: pure text from the summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Summary = Mapping[str, Any]
Facts = list[tuple[str, str, bool]]

_BOUNDS = {
    "binomial": "exact binomial",
    "hoeffding_bentkus": "Hoeffding-Bentkus",
    "betting": "betting",
    "dkw": "Dvoretzky-Kiefer-Wolfowitz, for every alpha at once",
}
_SHIFTS = {"covariates": "of covariates: rows have weights", "labels": "of the shares of the classes"}
_HEADINGS = {("group",): "Each group", ("class",): "Each true class"}


def heading(summary: Summary) -> str:
    """What the section is called that shows each part."""
    return _HEADINGS.get(tuple(summary["promise"]["by"]), "Each group and true class")


def alpha_word(summary: Summary) -> str:
    """What the slider moves."""
    return "alphas times" if has_own_alphas(summary) else "alpha"


def has_own_alphas(summary: Summary) -> bool:
    """Whether each true class has its own risk."""
    promise = summary.get("promise")
    return promise is not None and bool(promise["alphas_differ"])


def calibrated_alpha(summary: Summary) -> str:
    """The risk that was calibrated for, or those of the classes."""
    if not has_own_alphas(summary):
        return str(summary["alpha"])
    by_class = dict(zip(summary["classes"], summary["promise"]["strata"], strict=False))
    return ", ".join(f"{part['alpha']} for {name}" for name, part in by_class.items())


def parts_in_words(summary: Summary) -> list[str]:
    """What to know before one reads the table of parts."""
    promise, noun = summary["promise"], summary["promise"]["noun"]
    said = [f"Each of the {promise['parts']:,} {noun} has a threshold and a guarantee of its own."]
    if "class" in promise["by"]:
        said.append("A set serves every true class at once, so it can be wider than any one of them needs.")
    if has_own_alphas(summary):
        said.append("The slider multiplies all alphas by one factor; 1 stands for the calibrated ones.")
    if len(promise["strata"]) < promise["parts"]:
        said.append(f"Shown are the {len(promise['strata'])} with the most calibration rows.")
    if promise["unseen_rows"]:
        said.append(
            f"{promise['unseen_rows']:,} test rows are of groups without calibration rows: their sets hold "
            "all labels."
        )
    return said


def part_word(part: Summary, summary: Summary) -> str:
    """What the test rows of a part say, in a few words."""
    unit = summary["promise"]["unit"]
    if not part["certified"]:
        held = "always in the set" if "class" in summary["promise"]["by"] else "full sets"
        return f"too few calibration {unit}s: {held}"
    if part["risk"] is None:
        return "no test rows"
    return {
        "agrees": "agrees",
        "chance": "above alpha, within chance",
        "disagrees": "disagrees",
        "nothing": "the calibration rows themselves",
    }[part["verdict"]]


def uncertified(stop: Summary, summary: Summary) -> list[str]:
    """The names of the parts that have no guarantee at a stop."""
    names = [part["name"] for part in summary["promise"]["strata"]]
    return [name for name, part in zip(names, stop["strata"], strict=True) if not part["certified"]]


def realised_in_words(summary: Summary) -> str:
    """What the realised loss is a mean of."""
    promise, rows = summary["promise"], f"{summary['test']['rows']:,} rows"
    at_most = "It should be at most alpha, up to chance."
    if has_own_alphas(summary):
        at_most = "Each true class should keep within its own alpha, up to chance."
    if promise["unit"] == "cluster":
        clusters = f"{promise['test_clusters']:,} clusters"
        return f"Mean over {clusters} of the mean of their rows, {rows} in all. {at_most}"
    if promise["shift"] is not None:
        units = summary["stops"][0]["units"]
        return (
            f"Weighted mean over {rows}, which count as {units:,.0f} alike ones: drawn like the calibration "
            f"rows, they stand for the new population by their weights. {at_most}"
        )
    return f"Mean over {rows}. {at_most}"


def interval_notes(unit: str, shift: str | None) -> tuple[str, str]:
    """What to add to the interval of the realised loss, and to those that take test rows one by one."""
    if unit == "cluster":
        return "", " (rows taken as independent)"
    return " (approximate)" if shift == "covariates" else "", "" if shift is None else " (not weighted)"


def cautions(unit: str, shift: str | None) -> list[str]:
    """What the intervals of test rows do not say where rows come in clusters or have weights."""
    said = []
    if unit == "cluster":
        said.append(
            "Except for the realised loss, intervals take rows as independent; with clusters they are too "
            "narrow."
        )
    if shift is not None:
        said.append("Except for the realised loss, all numbers count each test row once, without weights.")
    if shift == "covariates":
        said.append(
            "The interval of the realised loss is approximate: a row with a larger weight than any here "
            "could move it."
        )
    return said


def average_in_words(summary: Summary) -> str:
    """Over what the promise is an average, as far as classes are concerned."""
    by = summary["promise"]["by"] if "promise" in summary else []
    if "class" in by:
        return "Each true class has its own guarantee."
    return "Within a group it is an average over all classes." if by else "It is an average over all classes."


def threshold_in_words(summary: Summary) -> str:
    """What takes the place of a threshold where there are several."""
    promise = summary["promise"]
    if promise["by"]:
        return f"{promise['parts']:,}"
    return {"covariates": "by weight", "labels": "by label"}[promise["shift"]]


def how_thresholds_apply(summary: Summary) -> str:
    """When a label is in a set."""
    promise = summary["promise"]
    if promise["by"]:
        each = " and ".join(promise["by"]).replace("class", "true class")
        return f"One for each {each}: a label is in the set if its level reaches the one that applies."
    if promise["shift"] is not None:
        return "The larger the weight, the smaller the threshold that a level has to reach."
    coin = ", and a coin decides if it just does" if promise["randomized"] else ""
    return f"A label is in the set if its level reaches the threshold{coin}."


def limits(summary: Summary) -> list[str]:
    """What is promised, and what is not."""
    promise = summary["promise"]
    unit, cluster = promise["unit"], promise["unit"] == "cluster"
    shift, by = promise["shift"], promise["by"]
    said = []
    if shift is None:
        what = "clusters, and the mean loss of their rows, if they" if cluster else "cases that"
        said.append(
            f"The promise is about new {what} come about like the calibration {unit}s: drawn the same way, "
            "in no telling order."
        )
    else:
        ratios = "shares of the classes" if shift == "labels" else "likelihood ratios"
        said.append(
            f"The promise is about a population that differs from that of the calibration rows by the "
            f"{ratios} that the weights stand for. It is as good as the weights."
        )
    whom = {("group",): "each group", ("class",): "each true class"}.get(
        tuple(by), "each group and true class"
    )
    nobody = "each single case" if by else "each class, each group or each single case"
    average = (
        f"It is an average over {unit}s and over draws of the calibration {unit}s"
        if promise["delta"] is None
        else f"It is an average over {unit}s, and fails for up to {promise['delta']} of all calibrations"
    )
    said.append(f"{average}{f', for {whom}' if by else ''}. It is not a promise for {nobody}.")
    if promise["delta"] is not None and promise["bound"] != "dkw":
        said.append("Each alpha of the slider has this confidence by itself, not all of them together.")
    reasons = ["if the calibration rows were used to train the model"]
    reasons += [] if cluster else ["if several rows come from one person"]
    reasons.append(
        "if the population has moved in another way" if shift else "if the population has moved since"
    )
    said.append(f"It does not hold {', '.join(reasons[:-1])}, or {reasons[-1]}.")
    said += cautions(promise["unit"], promise["shift"])
    if promise["randomized"]:
        said.append(
            f"A coin decides about labels whose level is the threshold itself. Its seed here is "
            f"{promise['seed']}; another seed gives somewhat other sets with the same promise."
        )
    said.append(
        "Alpha has to be chosen before the test data is seen. The slider shows what other choices would have "
        "given; one picked for its test result is no longer checked by it."
    )
    return said


def facts(summary: Summary) -> list[tuple[str, Facts]]:
    """The promise for the auditor."""
    promise, classes = summary["promise"], summary["classes"]
    weights = promise["class_weights"]
    listed: Facts = [
        ("Promised", "on average" if promise["delta"] is None else "with high probability", False),
        *([] if promise["delta"] is None else [("Delta", promise["delta"], False)]),
        *([] if promise["bound"] is None else [("Bound", _BOUNDS[promise["bound"]], False)]),
        *(
            []
            if promise["shuffle_seed"] is None
            else [("Seed of the shuffle", str(promise["shuffle_seed"]), False)]
        ),
        ("What is exchangeable", f"{promise['unit']}s", False),
        *([] if promise["shift"] is None else [("Shift", _SHIFTS[promise["shift"]], False)]),
        *(
            []
            if weights is None
            else [(f"Weight of {name}", weight, False) for name, weight in zip(classes, weights, strict=True)]
        ),
        ("Guarantee for each", " and ".join(promise["by"]) or "all together", False),
        ("Randomized", f"yes, seed {promise['seed']}" if promise["randomized"] else "no", False),
    ]
    if promise["test_clusters"] is not None:
        listed.append(("Clusters among the test rows", f"{promise['test_clusters']:,}", False))
    found: list[tuple[str, Facts]] = [("Promise", listed)]
    if promise["strata"]:
        found.append(
            (f"Thresholds of {promise['noun']}", [_part_fact(part, promise) for part in promise["strata"]])
        )
    return found


def _part_fact(part: Summary, promise: Summary) -> tuple[str, str, bool]:
    n = f"{part['calibration_units']:,} {promise['unit']}s"
    return part["name"], f"{part['threshold']['hex']} (alpha {part['alpha']}, {n})", True


def in_digits(value: float) -> str:
    """Four digits, and thousands in groups.

    Examples
    --------
    >>> in_digits(0.04812345), in_digits(12345.6), in_digits(0.0)
    ('0.04812', '12,346', '0')
    """
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
