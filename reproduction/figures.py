"""What all pictures share: their look, the file formats, and three that show any model's sets.

Matplotlib is an optional extra, so it is imported where a picture is drawn. Colours are from viridis and from
the palette of Okabe and Ito, which colour-blind readers can tell apart; lines differ in style as well. A
headline says no more than the drawn numbers do: it is made from them, or names what is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.display.palette import BLUE, FAINT, GREEN, GREY, INK, MUTED, ORANGE, VERMILLION
from ordinalrisk.files.atomic import replacing
from ordinalrisk.prediction.interval_set import IntervalSet
from reproduction.protocol import TrialMeans

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 9.8
_PALE_BLUE = "#dbebf4"
_LINE: dict[str, dict[str, Any]] = {
    "paper": {"color": VERMILLION, "marker": "s", "markersize": 4.5, "linewidth": 1.8},
    "frontier": {"color": BLUE, "marker": "o", "markersize": 6.5, "linewidth": 3},
    "adaptive": {"color": ORANGE, "marker": "^", "markersize": 3.5, "linewidth": 1.4, "linestyle": "--"},
    "rps": {"color": GREEN, "marker": "D", "markersize": 4, "linewidth": 1.8, "linestyle": "-."},
}
_LINE_OF_ANOTHER_RULE: dict[str, Any] = {"color": INK, "marker": "P", "markersize": 4, "linewidth": 1.4}
_RELEASED_LINE: dict[str, Any] = {
    "color": INK,
    "marker": "s",
    "markersize": 5,
    "markerfacecolor": "white",
    "linewidth": 1.4,
    "linestyle": ":",
    "zorder": 2,
}
_TRUTH: dict[str, Any] = {"color": VERMILLION, "marker": "v", "markersize": 8, "linestyle": ""}
_NOTICEABLE = 0.005
_POINTS_SHOWN_PER_CLASS = 400

_DOTS_PER_INCH = 150
# Nothing of the day or of the version that drew it, so that equal pictures are equal files.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
}
# Letters as outlines, so that no reader lacks the font and no other font lets text run into its neighbours.
_SVG: Any = {"svg.fonttype": "path", "svg.hashsalt": "ordinalrisk"}

_MARGIN, _GAP = 0.12, 0.3
_HEADLINE, _NOTE, _KEY, _TICK = 13.0, 10.0, 10.0, 9.0
_HANDLE, _HANDLE_GAP, _COLUMN_GAP = 2.8, 0.7, 1.8


def data_figure(X: NDArray[np.float64], y: NDArray[np.int64]) -> Figure:
    """Points in the plane, coloured by their ordered class."""
    from matplotlib import colormaps
    from matplotlib.patheffects import withStroke

    figure, [[axes]] = panels(1, width=5, height=4.9)
    classes = np.unique(y)
    colour = colormaps["viridis"](np.linspace(0, 0.93, len(classes)))
    shown = np.concatenate([np.flatnonzero(y == label)[:_POINTS_SHOWN_PER_CLASS] for label in classes])
    # In random order, because class by class the last one would hide the others.
    shown = np.random.default_rng(0).permutation(shown)
    colours = colour[np.searchsorted(classes, y[shown])]
    # One image in an SVG rather than thousands of points.
    axes.scatter(X[shown, 0], X[shown, 1], s=9, c=colours, alpha=0.6, linewidths=0, rasterized=True)
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
    head(figure, f"{len(classes)} ordered classes in the plane")
    return figure


def size_figure(
    curves: Sequence[TrialMeans],
    tabulated: Sequence[TrialMeans],
    meaning: Mapping[str, str],
    *,
    released: tuple[Sequence[TrialMeans], Sequence[TrialMeans]] | None = None,
    note: str = "",
) -> Figure:
    """Mean set size against alpha, one panel for each scenario and one line for each growth rule.

    Parameters
    ----------
    curves, tabulated : sequence of TrialMeans
        The lines, and the marks upon them.
    meaning : mapping
        A few words on each scenario.
    released : pair of sequences of TrialMeans, optional
        Lines and marks of one growth rule under the normalisation of the paper's released code.
    note : str
        A line below the headline.
    """
    from matplotlib.lines import Line2D

    scenarios = list(dict.fromkeys(result.scenario for result in curves))
    rules = list(dict.fromkeys(result.growth for result in curves))
    lines = {rule: _LINE.get(rule, _LINE_OF_ANOTHER_RULE) for rule in rules}
    figure, [row] = panels(len(scenarios), width=WIDTH, height=2.95)
    for axes, scenario in zip(row, scenarios, strict=True):
        for rule in rules:
            style = lines[rule] | {"zorder": 3 + [*_LINE, rule].index(rule)}
            axes.plot(*_sizes(curves, scenario, rule), **style | {"marker": ""})
            axes.plot(*_sizes(tabulated, scenario, rule), **style | {"linestyle": ""})
        if released:
            axes.plot(*_sizes(released[0], scenario), **_RELEASED_LINE | {"marker": ""})
            axes.plot(*_sizes(released[1], scenario), **_RELEASED_LINE | {"linestyle": ""})
        name_panel(axes, f"{scenario}: {meaning[scenario]}")
        axes.set(xlabel="alpha, the risk allowed", xlim=(0, None))
        axes.locator_params(axis="x", nbins=3)
        axes.grid(axis="y", color=FAINT, linewidth=0.8)
    row[0].set_ylabel("mean labels in a set")
    row[0].set_ylim(0.7, None)
    row[0].locator_params(axis="y", integer=True)
    key = [Line2D([], [], **lines[rule], label=f"{rule} rule") for rule in rules]
    if released:
        label = f"{released[0][0].growth} rule, released normalisation"
        key.append(Line2D([], [], **_RELEASED_LINE, label=label))
    head(figure, _size_headline([*curves, *tabulated], rules), note, key)
    return figure


def interval_figure(
    proba: NDArray[np.float64], y: NDArray[np.int64], sets: IntervalSet, headline: str
) -> Figure:
    """One panel for each row: probabilities as bars, the interval highlighted, the true label marked."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure, [cells] = panels(len(y), width=1.95 * len(y), height=2.35)
    label = np.arange(proba.shape[1])
    rows = zip(cells, proba, y, sets, sets.mask(), strict=True)
    for axes, p, truth, interval, inside in rows:
        axes.bar(label, inside * 1.12, width=1, color=_PALE_BLUE)
        axes.bar(label, p, width=0.76, color=np.where(inside, BLUE, GREY))
        axes.plot(truth, p[truth] + 0.06, **_TRUTH)
        text = "only {0}" if inside.sum() == 1 else "{0} to {1}"
        axes.set_title(text.format(*interval) + ("" if inside[truth] else ": a miss"), fontsize=11, color=INK)
        axes.set(xlim=(-0.6, len(label) - 0.4), xticks=label, xlabel="label")
        axes.set(ylim=(0, 1.12), yticks=[0, 0.5, 1])
    cells[0].set_ylabel("probability")
    key = [
        Patch(color=BLUE, label="in the set"),
        Patch(color=GREY, label="left out"),
        Line2D([], [], **_TRUTH, label="true label"),
    ]
    head(figure, headline, key=key)
    return figure


def example_rows(y: NDArray[np.int64], sets: IntervalSet, n_sizes: int = 4) -> list[int]:
    """The first row covered by an interval of each of the smallest sizes, and the first that is missed."""
    covered = sets.contains(y)
    sizes = np.unique(sets.size[covered])[:n_sizes]
    first_of_each = [int(np.argmax(covered & (sets.size == size))) for size in sizes]
    return first_of_each if covered.all() else [*first_of_each, int(np.argmin(covered))]


def save(figure: Figure, path: str | PathLike[str]) -> None:
    """Write a PNG or an SVG by the suffix of the path, whole or not at all.

    Equal pictures give equal files. The first call fixes the layout, which would move a little at each.
    """
    from matplotlib import rc_context

    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in _METADATA:
        raise ValueError(f"Pictures are written as .png or .svg; got {Path(path).name!r}.")
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    with rc_context(_SVG), replacing(path) as temporary:
        figure.savefig(
            temporary, format=kind, dpi=_DOTS_PER_INCH, facecolor="white", metadata=_METADATA[kind]
        )


def panels(
    columns: int,
    rows: int = 1,
    *,
    width: float,
    height: float,
    heights: Sequence[float] | None = None,
    sharex: bool = False,
    sharey: bool = True,
) -> tuple[Figure, list[list[Axes]]]:
    """Empty axes in rows and columns, ``width`` by ``height`` inches in all; a row may share its y axis.

    :func:`head` adds its own height to that.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=_DOTS_PER_INCH, layout=_layout())
    table: list[list[Axes]] = figure.subplots(
        rows,
        columns,
        sharex="col" if sharex else False,
        sharey="row" if sharey else False,
        squeeze=False,
        height_ratios=heights,
    ).tolist()
    for row in table:
        for axes in row:
            axes.spines[["top", "right"]].set_visible(False)
            axes.spines[["bottom", "left"]].set_color(GREY)
            axes.tick_params(color=GREY, labelcolor=MUTED, labelsize=_TICK)
            axes.xaxis.label.set_color(MUTED)
            axes.yaxis.label.set_color(MUTED)
            axes.set_axisbelow(True)
        for axes in row[1:] if sharey else []:
            axes.spines["left"].set_visible(False)
            axes.tick_params(axis="y", length=0)
    return figure, table


def head(figure: Figure, headline: str, note: str = "", key: Sequence[Artist] = ()) -> None:
    """Add a strip on top: the headline, a note below it, and the key.

    The key stands to the right of the headline if there is room, and below the note if not. The figure grows
    by the height of the strip.
    """
    width, height = figure.get_size_inches().tolist()
    room = width - 2 * _MARGIN
    headlines, notes = wrapped(headline, room, _HEADLINE, "bold"), wrapped(note, room, _NOTE)
    one_row = len(headlines) == 1 and (
        inches(headline, _HEADLINE, "bold") + _GAP + _key_width(key, len(key)) <= room
    )
    columns = len(key)
    while columns > 1 and _key_width(key, columns) > room:
        columns -= 1

    at_note = _MARGIN + 1.25 * _HEADLINE / 72 * len(headlines) + 0.04
    at_key = at_note + 1.35 * _NOTE / 72 * len(notes) + (0.04 if notes else 0)
    key_height = 0 if one_row or not key else 1.4 * _KEY / 72 * -(-len(key) // columns)
    strip = at_key + key_height + 0.02
    total = height + strip
    figure.set_size_inches(width, total)
    figure.set_layout_engine(_layout(height / total))

    left, right = _MARGIN / width, 1 - _MARGIN / width
    title = figure.suptitle(
        "\n".join(headlines),
        x=left,
        y=1 - _MARGIN / total,
        ha="left",
        va="top",
        fontsize=_HEADLINE,
        fontweight="bold",
        linespacing=1.25,
        color=INK,
        parse_math=False,
    )
    title.set_in_layout(False)
    if notes:
        figure.text(
            left,
            1 - at_note / total,
            "\n".join(notes),
            va="top",
            fontsize=_NOTE,
            linespacing=1.35,
            color=MUTED,
            parse_math=False,
        )
    if key:
        figure.legend(
            handles=key,
            loc="upper right" if one_row else "upper left",
            bbox_to_anchor=(right, 1 - _MARGIN / total) if one_row else (left, 1 - at_key / total),
            ncols=columns,
            frameon=False,
            fontsize=_KEY,
            labelcolor=INK,
            borderpad=0.1,
            borderaxespad=0,
            handlelength=_HANDLE,
            handletextpad=_HANDLE_GAP,
            columnspacing=_COLUMN_GAP,
            labelspacing=0.4,
        )


def name_panel(axes: Axes, text: str) -> None:
    """Write what a panel shows above it."""
    axes.set_title(text, loc="left", fontsize=10, color=INK)


def class_axis(axes: Axes, classes: Sequence[str], width: float) -> None:
    """Name the classes along the x axis, ``width`` inches wide: level if they fit, else slanted or upright.

    Where even upright names are too close, some are left out.
    """
    slot = width / len(classes)
    step = 1
    if max(inches(name, _TICK) for name in classes) < 0.92 * slot:
        style: dict[str, Any] = {}
    elif slot > 0.3:
        style = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    else:
        style = {"rotation": 90}
        step = int(np.ceil(1.2 * _TICK / 72 / slot))
    axes.set_xticks(range(0, len(classes), step), classes[::step], **style)
    axes.set_xlim(-0.5, len(classes) - 0.5)


def inches(text: str, size: float, weight: str = "normal") -> float:
    """The width of a line of text."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight=weight)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width) / 72


def wrapped(text: str, width: float, size: float, weight: str = "normal") -> list[str]:
    """The text in lines of at most ``width`` inches, parted between words; longer words are cut short."""
    lines: list[str] = []
    for word in text.split():
        if (length := inches(word, size, weight)) > width:
            word = word[: max(1, int(len(word) * width / length) - 3)] + "…"
        if lines and inches(f"{lines[-1]} {word}", size, weight) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _layout(top: float = 1.0) -> Any:
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.08, rect=(0, 0, 1, top))


def _key_width(key: Sequence[Artist], columns: int) -> float:
    """The key fills its columns from top to bottom; each is as wide as its longest entry."""
    if not key:
        return 0.0
    labels = [inches(str(artist.get_label()), _KEY) for artist in key]
    rows, longer = divmod(len(labels), columns)
    lengths = [rows + (column < longer) for column in range(columns)]
    ends = np.cumsum(lengths)
    text = sum(max(labels[end - length : end]) for end, length in zip(ends, lengths, strict=True))
    blanks = columns * (_HANDLE + _HANDLE_GAP) + (columns - 1) * _COLUMN_GAP + 0.4
    return text + blanks * _KEY / 72


def _sizes(
    results: Sequence[TrialMeans], scenario: str, rule: str | None = None
) -> tuple[list[float], list[float]]:
    chosen = [r for r in results if r.scenario == scenario and rule in (None, r.growth)]
    return [result.alpha for result in chosen], [result.size for result in chosen]


def _size_headline(results: Sequence[TrialMeans], rules: Sequence[str]) -> str:
    """How much smaller the last rule's sets are than the first's."""
    size = {(r.scenario, r.alpha, r.growth): r.size for r in results}
    saved = [
        1 - labels / size[scenario, alpha, rules[0]]
        for (scenario, alpha, rule), labels in size.items()
        if rule == rules[-1]
    ]
    least, most = min(saved, default=0.0), max(saved, default=0.0)
    if most < _NOTICEABLE:
        return "Mean set size at each alpha"
    if least > -_NOTICEABLE:
        change = f"up to {most:.0%} smaller"
    else:
        change = f"from {-least:.0%} larger to {most:.0%} smaller"
    return f"Sets are {change} by the {rules[-1]} rule than by the {rules[0]} rule"
