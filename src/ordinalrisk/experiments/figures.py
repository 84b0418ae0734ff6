"""Three pictures of an experiment: the data, the size of the sets, and what a set looks like.

Matplotlib is an optional extra, so it is imported where a picture is drawn. Colours are from viridis and from
the palette of Okabe and Ito, which colour-blind readers can tell apart; lines differ in style as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.atomic import replacing
from ordinalrisk.experiments.protocol import Summary
from ordinalrisk.intervals import IntervalSet

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK, _MUTED, _GREY, _FAINT = "#222222", "#666666", "#b9b9b9", "#e4e4e4"
_PALE_BLUE, _BLUE, _GREEN, _ORANGE, _VERMILLION = "#dbebf4", "#0072b2", "#009e73", "#e69f00", "#d55e00"
_LINE: dict[str, dict[str, Any]] = {
    "paper": {"color": _VERMILLION, "marker": "s", "markersize": 4.5, "linewidth": 1.8},
    "frontier": {"color": _BLUE, "marker": "o", "markersize": 6.5, "linewidth": 3},
    "adaptive": {"color": _ORANGE, "marker": "^", "markersize": 3.5, "linewidth": 1.4, "linestyle": "--"},
    "rps": {"color": _GREEN, "marker": "D", "markersize": 4, "linewidth": 1.8, "linestyle": "-."},
}
_TRUTH: dict[str, Any] = {"color": _VERMILLION, "marker": "v", "markersize": 8, "linestyle": ""}
_DOTS_PER_INCH = 150
_POINTS_SHOWN_PER_CLASS = 400


def data_figure(X: NDArray[np.float64], y: NDArray[np.int64]) -> Figure:
    """Points in the plane, coloured by their ordered class."""
    from matplotlib import colormaps
    from matplotlib.patheffects import withStroke

    figure, [axes] = _panels(1, width=5, height=5.2)
    classes = np.unique(y)
    colour = colormaps["viridis"](np.linspace(0, 0.93, len(classes)))
    shown = np.concatenate([np.flatnonzero(y == label)[:_POINTS_SHOWN_PER_CLASS] for label in classes])
    # In random order, because class by class the last one would hide the others.
    shown = np.random.default_rng(0).permutation(shown)
    colours = colour[np.searchsorted(classes, y[shown])]
    axes.scatter(X[shown, 0], X[shown, 1], s=9, c=colours, alpha=0.6, linewidths=0)
    for k, label in enumerate(classes):
        axes.annotate(
            str(label),
            tuple(X[y == label].mean(axis=0)),
            ha="center",
            va="center",
            fontsize=14,
            fontweight="bold",
            color=colour[k] * [0.75, 0.75, 0.75, 1],
            path_effects=[withStroke(linewidth=4, foreground="white")],
        )
    low, high = np.quantile(X, [0.001, 0.999])
    axes.set(xlim=(low, high), ylim=(low, high), aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    _headline(figure, f"{len(classes)} ordered classes that overlap")
    return figure


def size_figure(
    curves: Sequence[Summary], tabulated: Sequence[Summary], meaning: Mapping[str, str]
) -> Figure:
    """Mean set size against alpha, one panel for each scenario and one line for each growth rule.

    ``curves`` gives the lines, ``tabulated`` the marks upon them, ``meaning`` a few words on each scenario.
    """
    from matplotlib.lines import Line2D

    scenarios = list(dict.fromkeys(result.scenario for result in curves))
    rules = list(dict.fromkeys(result.growth for result in curves))
    figure, panels = _panels(len(scenarios), width=2.45 * len(scenarios), height=3.3)
    for axes, scenario in zip(panels, scenarios, strict=True):
        for rule in rules:
            style = _LINE[rule] | {"zorder": 2 + list(_LINE).index(rule)}
            axes.plot(*_sizes(curves, scenario, rule), **style | {"marker": ""})
            axes.plot(*_sizes(tabulated, scenario, rule), **style | {"linestyle": ""})
        axes.set_title(f"{scenario}: {meaning[scenario]}", loc="left", fontsize=10, color=_INK)
        axes.set(xlabel="alpha, the risk allowed", xlim=(0, None))
        axes.locator_params(axis="x", nbins=3)
        axes.grid(axis="y", color=_FAINT, linewidth=0.8)
    panels[0].set_ylabel("mean labels in a set")
    panels[0].set_ylim(0.7, None)
    panels[0].locator_params(axis="y", integer=True)
    key = [Line2D([], [], **_LINE[rule], label=f"{rule} rule") for rule in rules]
    _headline(figure, "The same risk with smaller sets", key)
    return figure


def interval_figure(
    proba: NDArray[np.float64], y: NDArray[np.int64], sets: IntervalSet, headline: str
) -> Figure:
    """One panel for each row: probabilities as bars, the interval highlighted, the true label marked."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure, panels = _panels(len(y), width=1.95 * len(y), height=2.7)
    label = np.arange(proba.shape[1])
    rows = zip(panels, proba, y, sets, sets.mask(), strict=True)
    for axes, p, truth, interval, inside in rows:
        axes.bar(label, inside * 1.12, width=1, color=_PALE_BLUE)
        axes.bar(label, p, width=0.76, color=np.where(inside, _BLUE, _GREY))
        axes.plot(truth, p[truth] + 0.06, **_TRUTH)
        text = "only {0}" if inside.sum() == 1 else "{0} to {1}"
        axes.set_title(
            text.format(*interval) + ("" if inside[truth] else ": a miss"), fontsize=11, color=_INK
        )
        axes.set(xlim=(-0.6, len(label) - 0.4), xticks=label, xlabel="label")
        axes.set(ylim=(0, 1.12), yticks=[0, 0.5, 1])
    panels[0].set_ylabel("probability")
    key = [
        Patch(color=_BLUE, label="in the interval"),
        Patch(color=_GREY, label="left out"),
        Line2D([], [], **_TRUTH, label="true label"),
    ]
    _headline(figure, headline, key)
    return figure


def example_rows(y: NDArray[np.int64], sets: IntervalSet, n_sizes: int = 4) -> list[int]:
    """The first row covered by an interval of each of the smallest sizes, and the first that is missed."""
    covered = sets.contains(y)
    sizes = np.unique(sets.size[covered])[:n_sizes]
    first_of_each = [int(np.argmax(covered & (sets.size == size))) for size in sizes]
    return first_of_each if covered.all() else [*first_of_each, int(np.argmin(covered))]


def save(figure: Figure, path: str | PathLike[str]) -> None:
    """Write a PNG, whole or not at all."""
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=_DOTS_PER_INCH, facecolor="white")


def _panels(n: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.08))
    panels: list[Axes] = list(figure.subplots(1, n, sharey=True, squeeze=False)[0])
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["bottom", "left"]].set_color(_GREY)
        axes.tick_params(color=_GREY, labelcolor=_MUTED, labelsize=9)
        axes.xaxis.label.set_color(_MUTED)
        axes.yaxis.label.set_color(_MUTED)
        axes.set_axisbelow(True)
    for axes in panels[1:]:
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
    return figure, panels


def _headline(figure: Figure, text: str, key: Sequence[Artist] = ()) -> None:
    figure.suptitle(text, x=0.012, ha="left", fontsize=13, fontweight="bold", color=_INK)
    if key:
        figure.legend(
            handles=key, loc="upper right", ncols=len(key), frameon=False, labelcolor=_INK, borderaxespad=0.3
        )


def _sizes(results: Sequence[Summary], scenario: str, rule: str) -> tuple[list[float], list[float]]:
    chosen = [result for result in results if (result.scenario, result.growth) == (scenario, rule)]
    return [result.alpha for result in chosen], [result.size for result in chosen]
