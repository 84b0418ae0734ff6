"""The pictures of a reproduced experiment: those of the paper, and one of each class by itself.

A scenario looks the same in all of them. The equal weights come first, in black; the divergence loss has one
look whatever its number, because the experiments number it differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.display.palette import FAINT, GREEN, INK, ORANGE, PURPLE, SKY, VERMILLION
from ordinalrisk.losses.kinds import DivergenceLoss
from reproduction.figures import WIDTH, class_axis, head, name_panel, panels, size_figure, wrapped
from reproduction.protocol import Experiment, TrialMeans
from reproduction.run import RELEASED, Centroids, RealisedRisks, Reproduction

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SOFTMAX = "softmax"
_NORMALISATION = {RELEASED: "released normalisation", SOFTMAX: "softmax"}
_WEIGHTED: list[dict[str, Any]] = [
    {"color": INK, "linestyle": "-", "marker": "o", "linewidth": 1.8, "markersize": 5},
    {"color": SKY, "linestyle": "--", "marker": "^", "linewidth": 2.2, "markersize": 6},
    {"color": PURPLE, "linestyle": "-.", "marker": "s", "linewidth": 2.2, "markersize": 5},
]
_DIVERGENCE: dict[str, Any] = {
    "color": GREEN,
    "linestyle": ":",
    "marker": "D",
    "linewidth": 2.6,
    "markersize": 5,
}
_MEAN_CENTRE: dict[str, Any] = {"linestyle": "", "markersize": 8}
_MEAN: dict[str, Any] = {
    "color": INK,
    "marker": "^",
    "markersize": 9,
    "linestyle": "",
    "clip_on": False,
    "zorder": 3,
}
_ALPHA: dict[str, Any] = {"color": ORANGE, "linestyle": "--", "linewidth": 2.2}
_BINS = 16
_NARROWEST = 0.05
_NOTICEABLE = 0.005
_PICTURES_IN_A_ROW = 6
_CAPTION = 9.5


class Examples(NamedTuple):
    """Images to show with their captions.

    Attributes
    ----------
    images : uint8 array of shape (m, size, size, 3)
        RGB pixels.
    captions : sequence of str
        What is known of each image, such as ``"age 8"``.
    truths : sequence of str
        The true class, such as ``"group 1 (5-9)"``.
    intervals : sequence of str, optional
        The predicted interval, such as ``"5-9 .. 15-19"``.
    missed : sequence of bool, optional
        Whether the interval leaves the truth out.
    note : str
        How the intervals came about, such as ``"alpha = 0.1"``.
    """

    images: NDArray[np.uint8]
    captions: Sequence[str]
    truths: Sequence[str]
    intervals: Sequence[str] | None = None
    missed: Sequence[bool] | None = None
    note: str = ""


def pictures(reproduction: Reproduction, examples: Examples | None = None) -> Iterator[tuple[str, Figure]]:
    """One picture after another with its name, drawn when asked for."""
    yield "sizes", sizes_figure(reproduction)
    yield "risks", risks_figure(reproduction)
    yield "centroids", centroids_figure(reproduction)
    yield "classes", classes_figure(reproduction)
    if examples is not None:
        yield "examples", examples_figure(examples, _source(reproduction))


def sizes_figure(reproduction: Reproduction) -> Figure:
    """Mean set size against alpha: every growth rule under softmax, the first also as released (Figure 2)."""
    curves, results = reproduction.curves, reproduction.results

    def first_rule(summaries: Sequence[TrialMeans]) -> list[TrialMeans]:
        return [result for result in summaries if result.growth == reproduction.growths[0]]

    return size_figure(
        curves[SOFTMAX],
        results[SOFTMAX],
        reproduction.experiment.meaning,
        released=(first_rule(curves[RELEASED]), first_rule(results[RELEASED])),
        note=f"{_source(reproduction)}. Probabilities by softmax; dotted: released normalisation.",
    )


def risks_figure(reproduction: Reproduction) -> Figure:
    """The realised risk of each trial as a histogram, with alpha and the mean over trials (Figure 3)."""
    from matplotlib.lines import Line2D

    experiment, realised = reproduction.experiment, reproduction.realised
    figure, [row] = panels(len(realised), width=WIDTH, height=2.9)
    for axes, drawn in zip(row, realised, strict=True):
        risks, alpha = np.array(drawn.risks), drawn.alpha
        low, high = _risk_range(risks, alpha)
        colour = _style(experiment, drawn.scenario)["color"]
        axes.hist(risks, _bins(risks, (high - low) / _BINS), color=colour, alpha=0.5, edgecolor="white")
        axes.axvline(alpha, **_ALPHA)
        axes.plot(risks.mean(), 0, **_MEAN)
        name_panel(
            axes,
            f"{drawn.scenario}: {experiment.meaning[drawn.scenario]}\n"
            f"alpha {alpha:g}, mean {risks.mean():.4f}",
        )
        axes.set_xlabel("risk on a test half")
        margin = 0.08 * (high - low)
        axes.set_xlim(low - margin, high + margin)
        axes.locator_params(axis="x", nbins=3)
    row[0].set_ylabel("number of halves")
    row[0].locator_params(axis="y", integer=True)
    key = [
        Line2D([], [], **_ALPHA, label="alpha, the risk allowed"),
        Line2D([], [], **_MEAN, label="mean over the halves"),
    ]
    note = f"{_source(reproduction)}; {reproduction.growths[0]} rule, {_NORMALISATION[RELEASED]}."
    head(figure, _risk_headline(realised), note, key)
    return figure


def centroids_figure(reproduction: Reproduction) -> Figure:
    """Where the sets of each scenario lie at the same mean size (Figures 4, 6 and 8).

    Above, the share of sets centred at each label. Sets of even size are centred between two labels and count
    half to each: shown by themselves, whole and half centres would make a saw of every line. Below, the mean
    centre, which this leaves as it is, and the mean distance of the centres from the middle of the scale.
    """
    experiment = reproduction.experiment
    shown = {
        name: list(reproduction.centroids_by(name, reproduction.growths[0]).values())
        for name in (RELEASED, SOFTMAX)
    }
    figure, table = panels(2, 2, width=WIDTH, height=4.5, heights=[2.6, 1], sharex=True)
    for column, normalisation in enumerate((RELEASED, SOFTMAX)):
        upper, lower = table[0][column], table[1][column]
        found = shown[normalisation]
        label = np.arange(len(experiment.classes))
        for centroids in found:
            style = _style(experiment, centroids.scenario)
            upper.plot(label, whole_label_shares(centroids.shares), clip_on=False, zorder=3, **style)
        _mean_centres(lower, found, experiment)
        name_panel(lower, "Mean centre, mean distance from the middle")
        lower.set_xlabel("centre of the set")
        name_panel(upper, _NORMALISATION[normalisation].capitalize())
        upper.grid(axis="y", color=FAINT, linewidth=0.8)
        upper.tick_params(axis="x", length=0)
        class_axis(lower, experiment.classes, _panel_width(2))
    table[0][0].set_ylabel("share of sets,\nhalf centres split evenly")
    table[0][0].set_ylim(0, None)
    note = (
        f"{_source(reproduction)}; {reproduction.growths[0]} rule, "
        f"{_size_range([*shown[RELEASED], *shown[SOFTMAX]])} labels in a set on average."
    )
    head(figure, _centroid_headline(shown[RELEASED], experiment.divergence), note, _key(experiment))
    return figure


def classes_figure(reproduction: Reproduction) -> Figure:
    """Coverage and mean size of each true class, as the paper's code has it and by softmax and the last rule.

    Risk is controlled over all rows together; this shows what is left to a single class.
    """
    from matplotlib.ticker import PercentFormatter

    experiment, growths = reproduction.experiment, reproduction.growths
    shown = [(RELEASED, growths[0]), (SOFTMAX, growths[-1])]
    figure, table = panels(2, 2, width=WIDTH, height=4.7, sharex=True)
    for column, (normalisation, growth) in enumerate(shown):
        upper, lower = table[0][column], table[1][column]
        for result in reproduction.class_results(normalisation, growth):
            style = _style(experiment, result.scenario)
            label = np.arange(len(experiment.classes))
            upper.plot(label, np.array(result.class_coverage, dtype=float), **style)
            lower.plot(label, np.array(result.class_size, dtype=float), **style)
        name_panel(upper, f"{growth.capitalize()} rule, {_NORMALISATION[normalisation]}")
        for axes in (upper, lower):
            axes.grid(axis="y", color=FAINT, linewidth=0.8)
        upper.tick_params(axis="x", length=0)
        class_axis(lower, experiment.classes, _panel_width(2))
        lower.set_xlabel("true class")
    table[0][0].yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    table[0][0].set_ylabel("coverage of the class")
    table[1][0].set_ylabel("mean labels in a set")
    note = f"{_source(reproduction)}; alpha = {experiment.class_alpha:g} over all classes together."
    headline = _class_headline([reproduction.class_results(*way) for way in shown])
    head(figure, headline, note, _key(experiment))
    return figure


def examples_figure(examples: Examples, source: str) -> Figure:
    """Images in rows, what is known of each below it, a frame around those that are missed (Figures 5, 7)."""
    n = len(examples.images)
    columns = min(n, _PICTURES_IN_A_ROW)
    missed = [False] * n if examples.missed is None else list(examples.missed)
    cell = max(1.5, min(1.9, WIDTH / columns))
    captions = [_caption(examples, i, missed[i], cell - 0.15) for i in range(n)]
    rows = -(-n // columns)
    height = cell + 1.35 * _CAPTION / 72 * max(map(len, captions)) + 0.1
    figure, table = panels(columns, rows, width=max(cell * columns, 5), height=rows * height, sharey=False)
    for i, axes in enumerate(axes for row in table for axes in row):
        axes.spines[:].set_visible(False)
        axes.set(xticks=[], yticks=[], anchor="N")
        if i >= n:
            continue
        # Photographs are smoothed; drawn as squares, tiny ones would be hard to recognise.
        axes.imshow(examples.images[i], interpolation="bicubic")
        caption = "\n".join(captions[i])
        axes.set_xlabel(caption, fontsize=_CAPTION, linespacing=1.35, color=INK, parse_math=False)
        if missed[i]:
            axes.spines[:].set(visible=True, color=VERMILLION, linewidth=4)
    covered = n - sum(missed)
    headline = "Examples"
    if examples.intervals is not None and examples.missed is not None:
        headline = f"Intervals cover the truth in {covered} of {n} examples"
    head(figure, headline, f"{source}; {examples.note}" if examples.note else source)
    return figure


def whole_label_shares(shares: Sequence[float]) -> NDArray[np.float64]:
    """Shares at ``0, 0.5, .., K-1`` gathered at ``0, 1, .., K-1``; what lies between two goes half to each.

    Examples
    --------
    >>> whole_label_shares([0.2, 0.4, 0.1, 0.2, 0.1]).round(2).tolist()
    [0.4, 0.4, 0.2]
    """
    between = np.concatenate([[0.0], shares[1::2], [0.0]]) / 2
    gathered: NDArray[np.float64] = np.array(shares[::2]) + between[:-1] + between[1:]
    return gathered


def _style(experiment: Experiment, scenario: str) -> dict[str, Any]:
    if isinstance(experiment.scenarios[scenario], DivergenceLoss):
        return _DIVERGENCE
    weighted = [name for name, loss in experiment.scenarios.items() if not isinstance(loss, DivergenceLoss)]
    return _WEIGHTED[weighted.index(scenario) % len(_WEIGHTED)]


def _key(experiment: Experiment) -> list[Artist]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], **_style(experiment, name), label=f"{name} {words}")
        for name, words in experiment.meaning.items()
    ]


def _source(reproduction: Reproduction) -> str:
    return f"{reproduction.experiment.title}, {reproduction.source}"


def _panel_width(columns: int) -> float:
    return (WIDTH - 0.7) / columns - 0.15


def _risk_range(risks: NDArray[np.float64], alpha: float) -> tuple[float, float]:
    """The range of the risks and alpha, some of alpha wide at least."""
    low, high = min(alpha, risks.min()), max(alpha, risks.max())
    middle, half = (low + high) / 2, max(high - low, _NARROWEST * alpha) / 2
    return middle - half, middle + half


def _bins(risks: NDArray[np.float64], width: float) -> list[float]:
    """Edges of bins of about this width from the smallest risk to the largest, or around the only one."""
    low, high = risks.min(), risks.max()
    n_bins = max(1, round((high - low) / width))
    if n_bins == 1:
        low, high = (low + high - width) / 2, (low + high + width) / 2
    edges: list[float] = np.linspace(low, high, n_bins + 1).tolist()
    return edges


def _mean_centres(axes: Axes, found: Sequence[Centroids], experiment: Experiment) -> None:
    """A line for each scenario: its mean centre, and the numbers on the side that has more room."""
    last = len(experiment.classes) - 1
    to_the_right = last - max(c.mean for c in found) >= min(c.mean for c in found)
    for row, centroids in enumerate(found):
        axes.axhline(row, 0.015, color=FAINT, linewidth=0.8, zorder=0)
        axes.plot(centroids.mean, row, **_style(experiment, centroids.scenario) | _MEAN_CENTRE)
        axes.text(
            1 if to_the_right else 0.015,
            row,
            f"{centroids.mean:.2f}, {centroids.from_middle:.2f} from the middle",
            transform=axes.get_yaxis_transform(),
            ha="right" if to_the_right else "left",
            va="center",
            fontsize=9,
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )
    axes.axvline(found[0].mean, color=INK, linewidth=0.8, linestyle=(0, (2, 3)), zorder=0)
    axes.set_yticks(range(len(found)), [centroids.scenario for centroids in found])
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def _size_range(centroids: Sequence[Centroids]) -> str:
    low, high = (f"{bound:.2g}" for bound in (min(c.size for c in centroids), max(c.size for c in centroids)))
    return low if low == high else f"{low} to {high}"


def _risk_headline(realised: Sequence[RealisedRisks]) -> str:
    above = max(float(np.mean(drawn.risks)) - drawn.alpha for drawn in realised)
    n = len(realised[0].risks)
    subject = f"Mean risk over {n} random halves" if n > 1 else "Risk on one random half"
    if above <= 0:
        return f"{subject} is at most alpha in each scenario"
    return f"{subject} exceeds alpha by {f'{above:.4f} at most' if above >= 5e-5 else 'less than 0.0001'}"


def _centroid_headline(centroids: Sequence[Centroids], divergence: str) -> str:
    """The largest shift from the first scenario, and how far divergence moves sets inwards, at left."""
    first, *others = centroids
    moves = []
    if others:
        far = max(others, key=lambda c: abs(c.mean - first.mean))
        if abs(shift := far.mean - first.mean) >= _NOTICEABLE:
            moves.append(f"{far.scenario} moves sets {abs(shift):.2f} labels {'up' if shift > 0 else 'down'}")
        near = next(c for c in others if c.scenario == divergence)
        if (inwards := first.from_middle - near.from_middle) >= _NOTICEABLE:
            moves.append(f"{near.scenario} {'' if moves else 'moves sets '}{inwards:.2f} labels inwards")
    if not moves:
        return "Where the sets lie on the scale"
    return f"Compared with {first.scenario}, {' and '.join(moves)} (left)"


def _class_headline(ways: Sequence[Sequence[TrialMeans]]) -> str:
    """The range of coverage over classes in the first scenario."""
    ranges = []
    for results in ways:
        known = [coverage for coverage in results[0].class_coverage if coverage is not None]
        ranges.append(f"{min(known):.0%} to {max(known):.0%}")
    left, right = ranges
    return f"Coverage of single classes under {ways[0][0].scenario}: {left} (left), {right} (right)"


def _caption(examples: Examples, i: int, missed: bool, width: float) -> list[str]:
    texts = [examples.captions[i], examples.truths[i]]
    if examples.intervals is not None:
        texts.append(f"set: {examples.intervals[i]}")
    if missed:
        texts.append("a miss")
    return [line for text in texts for line in wrapped(text, width, _CAPTION)]
