"""The results of an experiment as tables, for the terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ordinalrisk.display.text_table import TextTable
from ordinalrisk.losses.kinds import WeightedLoss
from reproduction.protocol import Experiment, TrialMeans
from reproduction.run import RELEASED, Reproduction
from reproduction.scores import NORMALISATIONS


def published_table(reproduction: Reproduction) -> TextTable:
    """The paper's table and ours."""
    experiment = reproduction.experiment
    published = [risk for risks in experiment.published.values() for risk in risks]
    return TextTable(
        f"Table {experiment.table}: realised risk, published and here "
        f"({reproduction.growths[0]} rule, {RELEASED} scores)",
        ("scenario", "alpha", "published", "here", "s.e.", "difference", ""),
        [
            (
                name,
                decimals(c.alpha, experiment.alphas),
                decimals(c.published, published),
                f"{c.risk:.4f}",
                "-" if c.risk_se is None else f"{c.risk_se:.4f}",
                f"{c.difference:+z.4f}",
                "" if c.agrees else "differs",
            )
            for name, c in _named(reproduction.comparisons, experiment)
        ],
    )


def rules_table(results: Sequence[TrialMeans], experiment: Experiment, caption: str) -> TextTable:
    """Realised risk and mean size of each growth rule, in two columns each."""
    rules = list(dict.fromkeys(r.growth for r in results))
    cell = {(r.scenario, r.alpha, r.growth): r for r in results}
    return TextTable(
        caption,
        ("scenario", "alpha", *(text for rule in rules for text in (rule, "size"))),
        [
            (
                name,
                decimals(first.alpha, experiment.alphas),
                *(
                    text
                    for rule in rules
                    for r in [cell[first.scenario, first.alpha, rule]]
                    for text in (f"{r.risk:.4f}", f"{r.size:.2f}")
                ),
            )
            for name, first in _named((r for r in results if r.growth == rules[0]), experiment)
        ],
    )


def rules_tables(reproduction: Reproduction) -> list[TextTable]:
    """One for each normalisation."""
    return [
        rules_table(
            reproduction.results[name],
            reproduction.experiment,
            f"Realised risk and mean set size of each growth rule, {name} scores",
        )
        for name in NORMALISATIONS
    ]


def class_table(reproduction: Reproduction, normalisation: str, growth: str) -> TextTable:
    """Coverage and mean size of each true class under each scenario."""
    experiment = reproduction.experiment
    results = reproduction.class_results(normalisation, growth)
    return TextTable(
        f"Coverage and mean set size of each true class at alpha = {experiment.class_alpha} "
        f"({growth} rule, {normalisation} scores)",
        ("class", *(text for r in results for text in (r.scenario, "size"))),
        [
            (
                label,
                *(
                    text
                    for r in results
                    for text in (_or_dash(r.class_coverage[k], 3), _or_dash(r.class_size[k], 2))
                ),
            )
            for k, label in enumerate(experiment.classes)
        ],
    )


def class_tables(reproduction: Reproduction) -> list[TextTable]:
    """Under the released normalisation and the first rule, then under softmax and every rule."""
    ways = [(RELEASED, reproduction.growths[0]), *(("softmax", growth) for growth in reproduction.growths)]
    return [class_table(reproduction, *way) for way in ways]


def centroid_table(reproduction: Reproduction) -> TextTable:
    """Where the sets lie at equal mean size."""
    experiment = reproduction.experiment
    return TextTable(
        f"Centroids of sets of mean size {experiment.centroid_size}, or the first below, and their mean "
        "distance from the middle",
        ("scenario", "rule", "scores", "alpha", "size", "centroid", "distance"),
        [
            (
                f"{c.scenario} {experiment.meaning[c.scenario]}",
                c.growth,
                c.normalisation,
                f"{c.alpha:.4f}",
                f"{c.size:.2f}",
                f"{c.mean:.3f}",
                f"{c.from_middle:.3f}",
            )
            for c in reproduction.centroids
        ],
    )


def weight_table(reproduction: Reproduction) -> TextTable:
    """What weights do to the coverage of heavy classes, those of more than average weight, and of light ones.

    At equal mean size: otherwise a loss that counts some misses less would just have smaller sets. If a size
    is not attained, the table shows the size that is.
    """
    experiment = reproduction.experiment
    ways = dict.fromkeys((c.normalisation, c.growth) for c in reproduction.centroids)
    rows = []
    for scenario, loss in experiment.scenarios.items():
        if isinstance(loss, WeightedLoss) and loss.weights is not None:
            heavy = [weight > sum(loss.weights) / len(loss.weights) for weight in loss.weights]
            light = [not chosen for chosen in heavy]
            for name, growth in ways:
                at = reproduction.centroids_by(name, growth)
                shares = (_mean(at[s].class_coverage, of) for of in (heavy, light) for s in ("S1", scenario))
                rows.append(
                    (
                        f"{scenario} {experiment.meaning[scenario]}",
                        f"{growth}, {name}",
                        f"{at[scenario].size:.2f}",
                        *(_or_dash(share, 3) for share in shares),
                    )
                )
    return TextTable(
        f"Mean coverage of heavy classes, of more than average weight, and of light ones at mean size "
        f"{experiment.centroid_size} or the first below: under equal weights, then under the scenario",
        ("scenario", "rule, scores", "size", "heavy", "then", "light", "then"),
        rows,
    )


def decimals(value: float, company: Iterable[float]) -> str:
    """A number with as many decimals as the longest of the others, at least two.

    Examples
    --------
    >>> decimals(0.1, [0.1, 0.025]), decimals(0.1, [0.1, 0.2])
    ('0.100', '0.10')
    """
    longest = max(len(repr(float(other)).partition(".")[2]) for other in company)
    return f"{value:.{max(longest, 2)}f}"


def _named(cells: Iterable[Any], experiment: Experiment) -> Iterable[tuple[str, Any]]:
    """Each cell with its scenario in words, where that is not the one before."""
    last = ""
    for cell in cells:
        name = "" if cell.scenario == last else f"{cell.scenario} {experiment.meaning[cell.scenario]}"
        last = cell.scenario
        yield name, cell


def _mean(values: Sequence[float | None], chosen: Sequence[bool]) -> float | None:
    known = [value for value, wanted in zip(values, chosen, strict=True) if wanted and value is not None]
    return sum(known) / len(known) if known else None


def _or_dash(value: float | None, decimals: int) -> str:
    return "-" if value is None else f"{value:.{decimals}f}"
