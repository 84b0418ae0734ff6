"""Pictures for notebooks: each function draws one on matplotlib axes and returns them.

Numbers come from :mod:`ordinalrisk.metrics` and from the calibrated curve, and are drawn as they are. Without
``ax`` a new figure is made; axes that are given keep their own look and size. Nothing is drawn, and no figure
made, when an input is wrong. Matplotlib is an optional extra and imported where a picture is drawn.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk import metrics
from ordinalrisk.calibration.guarantees import Guarantee
from ordinalrisk.calibration.promises import loss_budget
from ordinalrisk.controller import RiskController
from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.curves.strata import Stratum
from ordinalrisk.display.palette import BLUE, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, SKY, VERMILLION
from ordinalrisk.inputs.arrays import SUM_TOLERANCE, to_numpy, widened
from ordinalrisk.inputs.device import on_device, to_host
from ordinalrisk.inputs.labels import Classes, class_indices, require_column_order
from ordinalrisk.inputs.matrix import as_matrix, raise_invalid_row
from ordinalrisk.inputs.numbers import as_fraction, decimal_text
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.prediction.interval_set import IntervalSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "plot_centroids",
    "plot_class_coverage",
    "plot_intervals",
    "plot_risk_curve",
    "plot_set_sizes",
    "plot_stratum_risks",
]

INSTALL_PLOTS = 'pip install "ordinalrisk[plots]"'

_CELLS_ACROSS = 10_000  # several for each pixel of a wide screen
_ALPHA_COLOURS = (ORANGE, GREEN, PURPLE, VERMILLION, SKY)
_ALPHA_STYLES = ("--", "-.", ":")
_STRATUM_COLOURS = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, INK, GREY)
_STRATUM_STYLES = ("-", "--", "-.", ":")
_VISIBLE_SHARE = 0.005
_ROWS_SHOWN, _MOST_ROWS = 12, 200
_LONGEST_NAME = 1.3  # inches
_SLANT = 35
_HIT: dict[str, Any] = {"marker": "o", "color": GREEN, "markersize": 8}
_MISS: dict[str, Any] = {"marker": "X", "color": VERMILLION, "markersize": 9}
_MARK: dict[str, Any] = {"linestyle": "", "markeredgecolor": "white", "zorder": 4}


def plot_risk_curve(
    controller: RiskController,
    *,
    alphas: Iterable[Any] | None = None,
    groups: Iterable[Any] | None = None,
    labels: Iterable[Any] | None = None,
    ax: Any = None,
) -> Axes:
    """Draw the mean loss of the calibration rows at every threshold.

    The curve is the exact step function of :class:`~ordinalrisk.RiskCurve` (paper, Eq. 3). For each ``alpha``
    there is a level line at it, an upright line at its threshold and a mark where that meets the curve. A
    threshold that is infinite is marked by an arrow at the edge. The band below ``alpha``, of height
    ``(B - alpha) / n``, is what the calibration keeps for the new row: the threshold is where the curve
    enters it or jumps across. With ``delta`` the band is what the bound keeps back, above the loss at the
    threshold.

    Where groups or true classes have guarantees of their own, each has its curve and its thresholds.

    Parameters
    ----------
    controller : RiskController
        Calibrated.
    alphas : sequence of numbers, optional
        Further risks to mark, besides the controller's own.
    groups, labels : sequence, optional
        Which groups and which true classes to draw, if each has its own curve; all, by default, up to 8.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib Axes
        What was drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 2, 4, 2, 1], size=500)
    >>> y = np.array([rng.choice(5, p=p) for p in proba])
    >>> ax = plot_risk_curve(RiskController(alpha=0.1).calibrate(proba, y), alphas=[0.2])
    >>> for text in ax.get_legend().get_texts():
    ...     print(text.get_text())
    alpha 0.1: threshold 0.1...
    alpha 0.2: threshold 0.1...
    """
    if not isinstance(controller, RiskController):
        raise ValueError(
            f"The risk curve is that of a RiskController; got a {type(controller).__name__}. An "
            "OrdinalRiskClassifier has one as controller_."
        )
    chosen = _chosen_strata(controller, groups, labels)
    if not controller.calibration_.strata.is_one:
        return _plot_strata(controller, chosen, _further_alphas(alphas), ax)
    marks = _threshold_marks(controller, alphas)
    curve = controller.risk_curve_
    axes = _axes(ax)
    x, y = _drawn_steps(curve, [mark.threshold for mark in marks])
    [line] = axes.plot(x, y, drawstyle="steps-post", color=BLUE, linewidth=1.8, zorder=3)
    line.sticky_edges.x[:] = [x[0], x[-1]]
    line.sticky_edges.y[:] = [0]
    for i, mark in enumerate(marks):
        colour = _ALPHA_COLOURS[i % len(_ALPHA_COLOURS)]
        _draw_mark(axes, controller, mark, colour, _ALPHA_STYLES[i % len(_ALPHA_STYLES)])
    axes.set(xlabel="threshold", ylabel=_mean_loss_of(controller))
    _add_risk_key(axes, marks, controller, bulges_up=curve.risk((x[0] + x[-1]) / 2) > y[-1] / 2)
    return axes


def plot_set_sizes(sets: IntervalSet, *, ax: Any = None) -> Axes:
    """Draw how many labels the intervals hold: the share of rows with each size ``1 .. K``, and the mean.

    Parameters
    ----------
    sets : IntervalSet
        The intervals, also on a GPU.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib Axes
        What was drawn on.

    Examples
    --------
    >>> ax = plot_set_sizes(IntervalSet([0, 1], [0, 2], classes=["none", "mild", "severe"]))
    >>> [float(bar.get_height()) for bar in ax.patches]
    [0.5, 0.5, 0.0]
    >>> ax.texts[0].get_text()
    'mean 1.5 labels'
    """
    sets = _on_host(sets)
    K = len(sets.classes)
    mean = metrics.mean_size(sets)
    axes = _axes(ax)
    axes.bar(range(1, K + 1), metrics.size_histogram(sets), width=0.8, color=BLUE)
    axes.axvline(mean, color=ORANGE, linestyle="--")
    in_left_half = mean < (1 + K) / 2
    axes.annotate(
        f"mean {mean:.4g} label{'s' if mean != 1 else ''}",
        (mean, 0.98),
        xycoords=axes.get_xaxis_transform(),
        xytext=(5 if in_left_half else -5, 0),
        textcoords="offset points",
        ha="left" if in_left_half else "right",
        va="top",
    )
    axes.margins(y=0.15)  # room for the words
    if K <= 20:
        axes.set_xticks(range(1, K + 1))
    axes.set(xlim=(0.4, K + 0.6), xlabel="labels in an interval", ylabel="share of rows")
    _in_percent(axes)
    return axes


def plot_class_coverage(
    y: Any, sets: IntervalSet, *, target: Any = None, confidence: float | None = 0.95, ax: Any = None
) -> Axes:
    r"""Draw the share of the rows of each true class whose interval holds it, with exact intervals.

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The intervals, also on a GPU.
    target : number, optional
        A coverage to compare with, such as ``1 - alpha``, as a level line.
    confidence : float or None
        Of the exact binomial intervals; None leaves them out.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib Axes
        What was drawn on.

    Examples
    --------
    >>> sets = IntervalSet([0, 1, 2], [0, 2, 2], classes=["none", "mild", "severe"])
    >>> ax = plot_class_coverage(["none", "mild", "mild"], sets, target=0.9)
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['none\nn = 1', 'mild\nn = 2', 'severe\nn = 0']
    >>> [text.get_text() for text in ax.texts]
    ['no rows', 'target 0.9']
    """
    sets = _on_host(sets)
    K = len(sets.classes)
    counts = np.bincount(class_indices(to_host(y), sets.classes, len(sets)), minlength=K)
    level = None if target is None else _as_target(target)
    estimate = metrics.class_coverage(y, sets, confidence=confidence)
    value, low, high = estimate if confidence is not None else (estimate,) * 3
    seen = np.flatnonzero(counts)
    axes = _axes(ax)
    reach = np.stack([value - low, high - value])[:, seen]
    axes.errorbar(seen, value[seen], yerr=reach, fmt="o", color=BLUE, capsize=min(4, 60 / K), markersize=6)
    for k in np.flatnonzero(counts == 0).tolist():
        axes.text(
            k, 0.5, "no rows", transform=axes.get_xaxis_transform(), rotation=90, ha="center", va="center"
        )
    if level is not None:
        axes.axhline(level, color=ORANGE, linestyle="--", zorder=1)
        axes.annotate(
            f"target {level:.4g}",
            (1, level),
            xycoords=axes.get_yaxis_transform(),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
        )
    _name_classes(axes, sets.classes, [f"n = {count:,}" for count in counts])
    interval = "" if confidence is None else f"\n(exact {100 * confidence:g} % intervals)"
    axes.set(xlabel="true class", ylabel=f"coverage{interval}")
    return axes


def plot_stratum_risks(
    y: Any,
    sets: IntervalSet,
    loss: Any,
    by: Any,
    *,
    alpha: Any = None,
    confidence: float | None = 0.95,
    ax: Any = None,
) -> Axes:
    r"""Draw the mean loss of the rows of each group, or of each true class, with intervals.

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The intervals, also on a GPU.
    loss : IntervalLoss, str or table
        What a miss costs.
    by : array-like of shape (n,)
        The group of each row, or the true labels themselves.
    alpha : number or mapping, optional
        The risk that was guaranteed, for all or by name, to compare with.
    confidence : float or None
        Of the intervals; None leaves them out.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib Axes
        What was drawn on.

    Examples
    --------
    >>> sets = IntervalSet([0, 1, 2, 2], [0, 2, 2, 2], classes=["none", "mild", "severe"])
    >>> y = ["none", "mild", "mild", "severe"]
    >>> ax = plot_stratum_risks(y, sets, "coverage", ["north", "north", "south", "south"], alpha=0.1)
    >>> [text.get_text() for text in ax.get_xticklabels()], ax.texts[0].get_text()
    (['north\nn = 2', 'south\nn = 2'], 'alpha 0.1')
    >>> ax = plot_stratum_risks(y, sets, "coverage", y)
    >>> ax.containers[0].lines[0].get_ydata()
    array([0. , 0.5, 0. ])
    """
    sets = _on_host(sets)
    require_same_rows(y=y, by=by)
    names, number = _numbered_names(by, y, sets)
    alphas = _alphas_by_name(alpha, names)
    rows = [np.flatnonzero(number == k) for k in range(len(names))]
    truth = sets.classes[class_indices(to_host(y), sets.classes, len(sets))]
    found = [metrics.risk(truth[mine], sets[mine], loss, confidence=confidence) for mine in rows]
    value, low, high = (
        np.array(part)
        for part in zip(*(each if confidence is not None else (each,) * 3 for each in found), strict=True)
    )
    axes = _axes(ax)
    axes.errorbar(
        range(len(names)),
        value,
        yerr=np.stack([value - low, high - value]),
        fmt="o",
        color=BLUE,
        capsize=min(4, 60 / len(names)),
        markersize=6,
    )
    _draw_alphas(axes, alphas)
    _name_classes(axes, names, [f"n = {len(mine):,}" for mine in rows])
    interval = "" if confidence is None else f"\n({100 * confidence:g} % intervals)"
    axes.set(ylabel=f"mean loss{interval}")
    return axes


def plot_intervals(
    sets: IntervalSet, y: Any = None, proba: Any = None, *, rows: Any = None, ax: Any = None
) -> Axes:
    """Draw a few rows, one below the other: each as a bar over the labels of its interval.

    Parameters
    ----------
    sets : IntervalSet
        The intervals, also on a GPU.
    y : array-like of shape (n,), optional
        The true labels: a disc where the interval holds it, a cross where it is missed.
    proba : array-like of shape (n, K), optional
        Class probabilities: the more probable a label, the darker its cell.
    rows : sequence of int or mask, optional
        Positions of the rows to draw, in that order; by default the first 12.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib Axes
        What was drawn on.

    Examples
    --------
    >>> sets = IntervalSet([0, 1], [0, 2], classes=["none", "mild", "severe"])
    >>> ax = plot_intervals(sets, ["none", "none"])
    >>> [(float(bar.get_x()), float(bar.get_width())) for bar in ax.patches]
    [(-0.45, 0.9), (0.55, 1.9)]
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['interval', 'true label', 'missed label']
    """
    sets = _on_host(sets)
    chosen = _row_positions(rows, len(sets))
    require_same_rows(y=y, proba=proba)
    labels = None if y is None else class_indices(to_host(y), sets.classes, len(sets))[chosen]
    cells = None if proba is None else _chosen_probabilities(proba, sets, chosen)
    shown = sets[chosen]
    axes = _axes(ax, width=7.8, height=1.3 + 0.3 * len(chosen), grid=False)
    key = [_draw_bars(axes, shown, filled=cells is None)]
    if cells is not None:
        key.append(_draw_cells(axes, cells))
    if labels is not None:
        key += _draw_truths(axes, labels, shown)
    axes.legend(handles=key, loc="upper left", bbox_to_anchor=(1, 1), frameon=False, borderaxespad=0.2)
    axes.set(ylim=(len(chosen) - 0.5, -0.5), ylabel="row")
    _name_classes(axes, sets.classes)
    _number_rows(axes, chosen)
    return axes


def plot_centroids(sets: IntervalSet, *, ax: Any = None) -> Axes:
    """Draw where the intervals lie: the share of rows whose interval is centred on or between labels.

    The paper has this picture at a given mean size in its Figures 4, 6 and 8.

    Parameters
    ----------
    sets : IntervalSet
        The intervals, also on a GPU.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib Axes
        What was drawn on.

    Examples
    --------
    >>> ax = plot_centroids(IntervalSet([0, 1], [0, 2], classes=["none", "mild", "severe"]))
    >>> [float(bar.get_height()) for bar in ax.patches]
    [0.5, 0.0, 0.0, 0.5, 0.0]
    """
    sets = _on_host(sets)
    shares = metrics.centroid_histogram(sets)
    axes = _axes(ax)
    axes.bar(np.arange(len(shares)) / 2, shares, width=0.42, color=BLUE)
    _name_classes(axes, sets.classes)
    axes.set(xlabel="middle of the interval", ylabel="share of rows")
    _in_percent(axes)
    return axes


class _Mark(NamedTuple):
    """A risk and the threshold that keeps it."""

    alpha: Fraction
    threshold: float


def _further_alphas(alphas: Iterable[Any] | None) -> list[Fraction]:
    if isinstance(alphas, str) or not isinstance(alphas, Iterable | None):
        raise ValueError(f"alphas must be a sequence of numbers, such as [0.05, 0.1]; got {alphas!r}.")
    return [as_fraction(alpha, "alpha") for alpha in alphas or ()]


def _threshold_marks(controller: RiskController, alphas: Iterable[Any] | None) -> list[_Mark]:
    """The controller's own risk first, then the others, each once."""
    exact = [as_fraction(controller.alpha, "alpha"), *_further_alphas(alphas)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the picture says which of them have too few rows
        return [_Mark(alpha, controller.threshold_at(alpha)) for alpha in dict.fromkeys(exact)]


def _drawn_steps(curve: RiskCurve, thresholds: Iterable[float]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Points of the curve, each with the risk just above it; the first and last lie outside all levels."""
    curve.require_whole("A picture of it")
    levels = curve.levels
    if not len(levels):
        return np.array([0.0, 1.0]), np.zeros(2)
    steps = _visible_steps(levels, thresholds)
    of_one_unit = curve.unit / curve.weight
    risks = [float(total * of_one_unit) for total in curve.totals[steps].tolist()]
    first, last = float(levels[0]), float(levels[-1])
    # More than the rounding of the levels themselves, so that the ends differ from them.
    margin = max((last - first or abs(first) or 1.0) / 25, 8 * float(np.spacing(max(abs(first), abs(last)))))
    x = np.concatenate([[first - margin], levels[steps], [last + margin]])
    return x, np.array([0.0, *risks, risks[-1]])


def _visible_steps(levels: NDArray[np.float64], thresholds: Iterable[float]) -> NDArray[np.int64]:
    """Which levels to draw: where they are many, the first and last of each cell too narrow to be seen.

    The steps at the thresholds are always drawn, so that marks lie on the drawn curve.
    """
    n = len(levels)
    if n <= 2 * _CELLS_ACROSS:
        return np.arange(n)
    cell = ((levels - levels[0]) / (levels[-1] - levels[0]) * _CELLS_ACROSS).astype(np.int64)
    last = np.flatnonzero(np.diff(cell))
    at = np.searchsorted(levels, [threshold for threshold in thresholds if math.isfinite(threshold)])
    return np.unique(np.clip(np.concatenate([[0, n - 1], last, last + 1, at, at - 1]), 0, n - 1))


def _draw_mark(axes: Axes, controller: RiskController, mark: _Mark, colour: str, style: str) -> None:
    alpha, [part] = mark.alpha, controller.calibration_.strata.parts
    line: dict[str, Any] = {"color": colour, "linestyle": style, "linewidth": 1.4, "zorder": 2}
    axes.axhline(
        float(alpha), **line, label=f"alpha {decimal_text(alpha)}: {_in_words(mark, part, controller)}"
    )
    axes.axhspan(_kept_for_losses(mark, controller), float(alpha), color=colour, alpha=0.15, linewidth=0)
    _draw_threshold(axes, part.curve, mark, line)


def _draw_threshold(axes: Axes, curve: RiskCurve, mark: _Mark, line: dict[str, Any]) -> None:
    alpha, threshold = mark
    colour = line["color"]
    dot: dict[str, Any] = {"color": colour, "markeredgecolor": "white", "linestyle": "", "zorder": 4}
    risk = curve.risk(threshold)
    if math.isfinite(threshold):
        axes.plot([threshold, threshold], [0, float(alpha)], **line)
        axes.plot([threshold], [risk], marker="o", markersize=8, **dot)
    else:
        at_edge, arrow = (1, ">") if threshold > 0 else (0, "<")
        edge = axes.get_yaxis_transform()
        axes.plot([at_edge], [risk], marker=arrow, markersize=11, clip_on=False, transform=edge, **dot)


def _kept_for_losses(mark: _Mark, controller: RiskController) -> float:
    """The largest mean calibration loss that ``alpha`` allows; 0 where it allows none at all."""
    alpha, threshold = mark
    curve = controller.risk_curve_
    if controller.delta is not None:
        return float(curve.risk(threshold))
    own = curve.weight / curve.n_rows
    return max(0.0, float(loss_budget(alpha, curve.bound, curve.weight, own) / curve.weight))


def _in_words(mark: _Mark, part: Stratum, controller: RiskController) -> str:
    alpha, threshold = mark
    if math.isfinite(threshold):
        return f"threshold {threshold:.4g}"
    if threshold > 0:
        return "single labels suffice"
    needed = controller.spec.promise.rows_needed(part, alpha)
    sets = "full sets" if part.label is None else "always in the set"
    return f"{sets}, {needed:,} {controller.calibration_.unit}s are needed"


def _mean_loss_of(controller: RiskController) -> str:
    weighted = "weighted " if controller.calibration_.shift is not None else ""
    return f"{weighted}mean loss of the calibration {controller.calibration_.unit}s"


def _chosen_strata(
    controller: RiskController, groups: Iterable[Any] | None, labels: Iterable[Any] | None
) -> list[int]:
    """The strata to draw, each with a colour of its own."""
    controller._require_calibrated()
    strata, classes = controller.calibration_.strata, controller.classes_.tolist()
    of_groups = _positions(groups, None if strata.groups is None else [*strata.groups], "groups")
    of_labels = _positions(labels, classes if strata.n_labels > 1 else None, "labels")
    chosen = [
        i
        for i, part in enumerate(strata.parts)
        if (part.group is None or part.group in of_groups) and (part.label is None or part.label in of_labels)
    ]
    if len(chosen) > len(_STRATUM_COLOURS):
        raise ValueError(
            f"{len(chosen)} curves can't be told apart, {len(_STRATUM_COLOURS)} can; choose some with "
            "groups= or labels=."
        )
    return chosen


def _positions(given: Iterable[Any] | None, known: list[Any] | None, name: str) -> list[int]:
    """Where those that are asked for stand among those that there are; all, if nothing is asked for."""
    if given is None:
        return [*range(len(known or ()))]
    if known is None:
        raise ValueError(f"{name} was given, but the calibration has one curve for all {name}; leave it out.")
    asked = [given] if isinstance(given, str) or not isinstance(given, Iterable) else [*given]
    for each in asked:
        if each not in known:
            raise ValueError(f"{name} has {each!r}, which is none of {known}.")
    if not asked:
        raise ValueError(f"{name} is empty; choose some of {known}.")
    return [known.index(each) for each in asked]


def _plot_strata(controller: RiskController, chosen: list[int], further: list[Fraction], ax: Any) -> Axes:
    """A curve for each stratum, with a mark at its threshold for each risk."""
    calibration, guarantee = controller.calibration_, controller.guarantee()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the picture says which of them have too few rows
        others = [(alpha, controller.spec.thresholds(calibration, alpha).values) for alpha in further]
    drawn: list[tuple[Stratum, list[_Mark]]] = []
    for i in chosen:
        own = _Mark(guarantee.parts[i].alpha, controller.thresholds_[i])
        marks = [own, *(_Mark(alpha, values[i]) for alpha, values in others)]
        drawn.append((calibration.strata.parts[i], [*dict.fromkeys(marks)]))
    axes = _axes(ax)
    finite = [t for _, marks in drawn for _, t in marks if math.isfinite(t)]
    ends = []
    for k, (i, (part, marks)) in enumerate(zip(chosen, drawn, strict=True)):
        colour, style = _STRATUM_COLOURS[k], _STRATUM_STYLES[k % len(_STRATUM_STYLES)]
        name = _shortened(" / ".join(_as_text(n) for n in _names_of(guarantee.parts[i])))
        if part.curve.n_rows:
            x, y = _drawn_steps(part.curve, finite)
            ends += [x[0], x[-1]]
            axes.plot(x, y, drawstyle="steps-post", color=colour, linestyle=style, linewidth=1.8, zorder=3)
        words = f"{name}: {_in_words(marks[0], part, controller)}"
        axes.plot([], [], color=colour, linestyle=style, marker="o", label=words.replace("$", r"\$"))
        for mark in marks if part.curve.n_rows else []:
            _draw_threshold(axes, part.curve, mark, {"color": colour, "linestyle": ":", "linewidth": 1.2})
    for alpha in dict.fromkeys(mark.alpha for _, marks in drawn for mark in marks):
        axes.axhline(float(alpha), color=MUTED, linestyle="--", linewidth=1.2, zorder=1)
    if ends:
        axes.set_xlim(min(ends), max(ends))
    axes.set_ylim(bottom=0)
    axes.set(xlabel="threshold", ylabel=_mean_loss_of(controller))
    axes.legend(loc="upper left", framealpha=0.95)
    return axes


def _names_of(guarantee: Guarantee) -> list[Any]:
    return [name for name in (guarantee.group, guarantee.label) if name is not None]


def _numbered_names(by: Any, y: Any, sets: IntervalSet) -> tuple[Classes, NDArray[np.int64]]:
    """The names in order, that of the classes if they are classes, and the number of each row's name."""
    names = RowNames("by")
    number = names.numbered(to_host(by), len(sets))
    known, classes = [*names.known], sets.classes.tolist()
    if set(known) <= set(classes):
        order = [known.index(label) for label in classes if label in known]
        number = np.argsort(order)[number]
        known = [known[k] for k in order]
    found = np.empty(len(known), object)
    found[:] = known
    return found, number


def _alphas_by_name(alpha: Any, names: Classes) -> list[float] | float | None:
    """The risk to compare with: one for all, or one for each name."""
    if not isinstance(alpha, Mapping):
        return None if alpha is None else float(as_fraction(alpha, "alpha"))
    for name in names.tolist():
        if name not in alpha:
            raise ValueError(f"alpha has nothing for {name!r}; give each of {names.tolist()} a risk.")
    return [float(as_fraction(alpha[name], "alpha")) for name in names.tolist()]


def _draw_alphas(axes: Axes, alphas: list[float] | float | None) -> None:
    look: dict[str, Any] = {"color": ORANGE, "linestyle": "--", "zorder": 1}
    if isinstance(alphas, float):
        axes.axhline(alphas, **look)
        axes.annotate(
            f"alpha {alphas:.4g}",
            (1, alphas),
            xycoords=axes.get_yaxis_transform(),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
        )
    elif alphas is not None:
        at = np.arange(len(alphas))
        axes.hlines(alphas, at - 0.4, at + 0.4, **look, label="alpha")
        axes.legend(frameon=False)


def _add_risk_key(axes: Axes, marks: Sequence[_Mark], controller: RiskController, *, bulges_up: bool) -> None:
    """In the corner that the curve leaves free; the bands are named if any can be seen."""
    from matplotlib.patches import Patch

    handles, _ = axes.get_legend_handles_labels()
    low, high = axes.get_ylim()
    widest = max(float(mark.alpha) - _kept_for_losses(mark, controller) for mark in marks)
    whose = "for the new row" if controller.delta is None else "back by the bound"
    if widest > _VISIBLE_SHARE * (high - low):
        handles.append(Patch(color=GREY, alpha=0.4, linewidth=0, label=f"kept {whose}"))
    axes.legend(handles=handles, loc="lower right" if bulges_up else "upper left", framealpha=0.95)


def _as_target(target: Any) -> float:
    level = as_fraction(target, "target")
    if not 0 <= level <= 1:
        raise ValueError(f"target is a coverage and must lie between 0 and 1; got {target!r}.")
    return float(level)


def _row_positions(rows: Any, n: int) -> NDArray[np.int64]:
    """The rows to draw; a mask gives those where it is true."""
    if rows is None:
        return np.arange(min(n, _ROWS_SHOWN))
    positions = to_numpy(to_host(rows), "rows")
    if positions.dtype == bool and positions.shape == (n,):
        positions = np.flatnonzero(positions)
    if positions.ndim != 1 or (positions.dtype.kind not in "iu" and len(positions)):
        raise ValueError(f"rows must be positions, whole numbers, or a mask of all {n} rows; got {rows!r}.")
    outside = (positions < 0) | (positions >= n)
    if outside.any():
        raise ValueError(f"rows must lie in 0 .. {n - 1}; got {positions[outside.argmax()]}.")
    if not 0 < len(positions) <= _MOST_ROWS:
        raise ValueError(f"rows must be 1 to {_MOST_ROWS} positions to be told apart; got {len(positions)}.")
    return positions.astype(np.int64)


def _chosen_probabilities(proba: Any, sets: IntervalSet, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    matrix = as_matrix(proba)
    if tuple(matrix.shape) != (shape := (len(sets), len(sets.classes))):
        raise ValueError(
            f"proba must have a row for each interval and a column for each class, shape {shape}; "
            f"got {tuple(matrix.shape)}."
        )
    require_column_order(proba, sets.classes)
    part = matrix[rows.tolist()]
    cells: NDArray[np.float64] = (
        to_host(part.double()) if on_device(part) else widened(part).astype(np.float64)
    )
    wrong = ~((cells >= 0).all(axis=1) & (abs(cells.sum(axis=1) - 1) <= max(SUM_TOLERANCE.values())))
    if wrong.any():
        raise_invalid_row(matrix, int(rows[wrong.argmax()]))
    return cells


def _draw_bars(axes: Axes, sets: IntervalSet, *, filled: bool) -> Any:
    """The intervals, as outlines where something is to be seen within."""
    bars = axes.barh(
        range(len(sets)),
        sets.size - 0.1,
        left=sets.lower_index - 0.45,
        height=0.66,
        facecolor=(BLUE, 0.3) if filled else "none",
        edgecolor=BLUE,
        linewidth=1.8,
        zorder=3,
        label="interval",
    )
    return bars


def _draw_cells(axes: Axes, cells: NDArray[np.float64]) -> Any:
    """Shade by transparency, so that improbable labels vanish on any background."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba
    from matplotlib.patches import Patch

    n, K = cells.shape
    shades = LinearSegmentedColormap.from_list("probability", [to_rgba(SKY, 0), to_rgba(SKY, 1)])
    edges = np.arange(K + 1) - 0.5, np.arange(n + 1) - 0.5
    axes.pcolormesh(*edges, cells, cmap=shades, vmin=0, vmax=1, zorder=1)
    return Patch(color=SKY, linewidth=0, label="probability")


def _draw_truths(axes: Axes, labels: NDArray[np.int64], sets: IntervalSet) -> list[Any]:
    row = np.arange(len(labels))
    hit = (sets.lower_index <= labels) & (labels <= sets.upper_index)
    marks = []
    for here, look, words in ((hit, _HIT, "true label"), (~hit, _MISS, "missed label")):
        if here.any():
            marks += axes.plot(labels[here], row[here], **look, **_MARK, label=words)
    return marks


def _number_rows(axes: Axes, rows: NDArray[np.int64]) -> None:
    """Each row by its position; only some where numbers would touch."""
    step = math.ceil(_line_inches() / (_inches(axes)[1] / len(rows)))
    axes.set_yticks(range(0, len(rows), step), [str(row) for row in rows[::step]])


def _on_host(sets: Any) -> IntervalSet:
    if not isinstance(sets, IntervalSet):
        raise ValueError(f"sets must be an IntervalSet; got a {type(sets).__name__}.")
    if not len(sets):
        raise ValueError("sets has no rows, so there is nothing to draw.")
    return sets.cpu()


def _axes(ax: Any, *, width: float = 6.8, height: float = 4.0, grid: bool = True) -> Axes:
    """The axes to draw on: those given, or new ones in the look of our pictures."""
    try:
        from matplotlib.axes import Axes
    except ImportError as error:
        raise ImportError(f"Pictures need matplotlib: {INSTALL_PLOTS}") from error
    if ax is not None:
        if not isinstance(ax, Axes):
            raise ValueError(
                f"ax must be one matplotlib Axes, such as plt.subplots()[1]; got a {type(ax).__name__}."
            )
        return ax
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(figsize=(width, height), layout="constrained")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    if grid:
        axes.grid(axis="y", color=GREY, alpha=0.4, linewidth=0.8)
    return axes


def _in_percent(axes: Axes) -> None:
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.6g}%")


def _name_classes(axes: Axes, classes: Classes, notes: Sequence[str] = ()) -> None:
    """Name the classes along the x axis: level if they fit, else slanted or upright.

    Where even upright names are too close, some are left out. A name is text, never mathematics.
    """
    names = [_as_text(label) for label in classes.tolist()]
    level = [f"{name}\n{note}" for name, note in zip(names, notes, strict=True)] if notes else names
    short = [_shortened(name) for name in names]
    turned = [f"{name} ({note})" for name, note in zip(short, notes, strict=True)] if notes else short
    margin = 0.1 + 0.015 * len(names)
    axes.set_xlim(-0.5 - margin, len(names) - 0.5 + margin)
    slot = _inches(axes)[0] / (len(names) + 2 * margin)
    room = {  # what a name needs from the next, by the angle it is turned
        0: max(_text_inches(line) for text in level for line in text.split("\n")) / 0.88,
        _SLANT: _line_inches() / math.sin(math.radians(_SLANT)),
        90: _line_inches(),
    }
    step, angle = min((math.ceil(needed / slot), angle) for angle, needed in room.items())
    style: dict[str, Any] = {"ha": "right", "rotation_mode": "anchor"} if angle == _SLANT else {}
    texts = turned if angle else level
    axes.set_xticks(range(0, len(texts), step), texts[::step], parse_math=False, rotation=angle, **style)


def _as_text(label: Any) -> str:
    """A label on one line."""
    return " ".join(str(label).split()) or repr(label)


def _shortened(name: str) -> str:
    """A long name without its middle, because names that are alike differ at an end."""
    if (width := _text_inches(name)) <= _LONGEST_NAME:
        return name
    at_each_end = max(1, int(len(name) * _LONGEST_NAME / width - 1) // 2)
    return f"{name[:at_each_end]}…{name[-at_each_end:]}"


def _inches(axes: Axes) -> tuple[float, float]:
    """Width and height, as they are once what is there already has found its place."""
    figure = axes.figure.figure
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)
    box = axes.get_window_extent()
    return box.width / figure.dpi, box.height / figure.dpi


def _tick_font() -> Any:
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    return FontProperties(size=rcParams["xtick.labelsize"])


def _line_inches() -> float:
    """The height of a line of tick labels, with the gap to the next."""
    return float(1.25 * _tick_font().get_size_in_points() / 72)


def _text_inches(text: str) -> float:
    """The width of a tick label."""
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(text, _tick_font(), ismath=False)
    return float(width) / 72
