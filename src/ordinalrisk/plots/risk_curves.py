"""Draw the mean calibration loss at every threshold, and the threshold of each ``alpha``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.promises import budget_of
from ordinalrisk.controller import RiskController, require_calibrated
from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.curves.strata import Stratum
from ordinalrisk.display.palette import BLUE, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, SKY, VERMILLION
from ordinalrisk.inputs.numbers import as_fraction, decimal_text
from ordinalrisk.plots.axes import axes_for, on_one_line, with_middle_cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELLS_ACROSS = 10_000  # several cells for each pixel of a wide screen
_ALPHA_COLOURS = (ORANGE, GREEN, PURPLE, VERMILLION, SKY)
_ALPHA_STYLES = ("--", "-.", ":")
_STRATUM_COLOURS = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, INK, GREY)
_STRATUM_STYLES = ("-", "--", "-.", ":")
_VISIBLE_SHARE = 0.005


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
    there is a horizontal line, a vertical line at the threshold and a mark where the vertical line meets the
    curve. An arrow at the edge stands for an infinite threshold. The band below ``alpha``, of height
    ``(B - alpha) / n``, is what the calibration reserves for the new row: at the threshold, the curve enters
    the band or jumps over it. With ``delta``, the band is the margin of the confidence bound, above the loss
    at the threshold.

    If groups or true classes have separate guarantees, each has a separate curve and thresholds.

    Parameters
    ----------
    controller : RiskController
        A calibrated controller.
    alphas : sequence of numbers, optional
        Other risks to mark, in addition to the controller's ``alpha``.
    groups, labels : sequence, optional
        The groups and true classes to draw, if they have separate curves: at most 8 curves, by default all.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

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
    chosen = _chosen_strata(controller, groups, labels)
    further = _as_alphas(alphas)
    if not controller.calibration_.strata.is_one:
        return _plot_strata(controller, chosen, further, ax)
    exact = dict.fromkeys([as_fraction(controller.alpha, "alpha"), *further])
    marks = [_Mark(alpha, controller.threshold_at(alpha)) for alpha in exact]
    curve = controller.risk_curve_
    axes = axes_for(ax)
    x, y = _drawn_steps(curve, [mark.threshold for mark in marks])
    [line] = axes.plot(x, y, drawstyle="steps-post", color=BLUE, linewidth=1.8, zorder=3)
    line.sticky_edges.x[:] = [x[0], x[-1]]
    line.sticky_edges.y[:] = [0]
    for mark, colour, style in zip(marks, cycle(_ALPHA_COLOURS), cycle(_ALPHA_STYLES), strict=False):
        _draw_mark(axes, controller, mark, colour, style)
    _name_axes(axes, controller)
    _add_legend(axes, marks, controller, bulges_up=curve.risk((x[0] + x[-1]) / 2) > y[-1] / 2)
    return axes


class _Mark(NamedTuple):
    """A risk and the threshold that guarantees it."""

    alpha: Fraction
    threshold: float


def _as_alphas(alphas: Iterable[Any] | None) -> list[Fraction]:
    if isinstance(alphas, str) or not isinstance(alphas, Iterable | None):
        raise ValueError(f"alphas must be a sequence of numbers, such as [0.05, 0.1]; got {alphas!r}.")
    return [as_fraction(alpha, "alpha") for alpha in alphas or ()]


def _drawn_steps(curve: RiskCurve, thresholds: Iterable[float]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return thresholds and the risk just above each; the first and last lie beyond all levels."""
    curve.require_whole("A picture of it")
    levels = curve.levels
    if not len(levels):
        return np.array([0.0, 1.0]), np.zeros(2)
    steps = _visible_steps(levels, thresholds)
    of_one_unit = curve.unit / curve.divisor
    risks = [float(total * of_one_unit) for total in curve.totals[steps].tolist()]
    first, last = float(levels[0]), float(levels[-1])
    # The margin exceeds the rounding errors of the levels, so that the ends lie beyond them.
    margin = max((last - first or abs(first) or 1.0) / 25, 8 * float(np.spacing(max(abs(first), abs(last)))))
    x = np.concatenate([[first - margin], levels[steps], [last + margin]])
    return x, np.array([0.0, *risks, risks[-1]])


def _visible_steps(levels: NDArray[np.float64], thresholds: Iterable[float]) -> NDArray[np.int64]:
    """Choose the levels to draw; of many, only the first and last in each cell too narrow to see.

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
    label = f"alpha {decimal_text(alpha)}: {_threshold_text(mark, part, controller)}"
    axes.axhline(float(alpha), **line, label=label)
    axes.axhspan(_largest_mean_loss(mark, controller), float(alpha), color=colour, alpha=0.15, linewidth=0)
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


def _largest_mean_loss(mark: _Mark, controller: RiskController) -> float:
    """Return the largest mean calibration loss that ``alpha`` allows; 0 if it allows none."""
    alpha, threshold = mark
    curve = controller.risk_curve_
    if controller.delta is not None:
        return float(curve.risk(threshold))
    own = curve.weight / curve.n_rows
    return max(0.0, float(budget_of(curve, alpha, own) / curve.divisor))


def _threshold_text(mark: _Mark, part: Stratum, controller: RiskController) -> str:
    alpha, threshold = mark
    if math.isfinite(threshold):
        return f"threshold {threshold:.4g}"
    if threshold > 0:
        return "single labels suffice"
    needed = controller.spec.promise.rows_needed(part, alpha)
    sets = "full sets" if part.label is None else "always in the set"
    return f"{sets}; {needed:,} {controller.calibration_.unit}s are needed"


def _name_axes(axes: Axes, controller: RiskController) -> None:
    calibration = controller.calibration_
    weighted = "" if calibration.shift is None else "weighted "
    loss = "loss, as a share of what could be lost," if controller.relative else f"{weighted}mean loss"
    axes.set(xlabel="threshold", ylabel=f"{loss} of the calibration {calibration.unit}s")


def _chosen_strata(
    controller: RiskController, groups: Iterable[Any] | None, labels: Iterable[Any] | None
) -> list[int]:
    """Return the positions of the strata to draw, at most one for each colour."""
    require_calibrated(controller)
    strata, classes = controller.calibration_.strata, controller.classes_.tolist()
    of_groups = _positions_of_names(groups, None if strata.groups is None else [*strata.groups], "groups")
    of_labels = _positions_of_names(labels, classes if strata.n_labels > 1 else None, "labels")
    chosen = [
        i
        for i, part in enumerate(strata.parts)
        if (part.group is None or part.group in of_groups) and (part.label is None or part.label in of_labels)
    ]
    if len(chosen) > len(_STRATUM_COLOURS):
        raise ValueError(
            f"At most {len(_STRATUM_COLOURS)} curves fit in one picture; got {len(chosen)}. Choose some with "
            "groups= or labels=."
        )
    return chosen


def _positions_of_names(chosen: Iterable[Any] | None, known: list[Any] | None, option: str) -> list[int]:
    """Return the positions of the chosen names among the known names; all by default."""
    if chosen is None:
        return [*range(len(known or ()))]
    if known is None:
        raise ValueError(
            f"The calibration has one curve for all {option}, so you can't choose some of them; leave out "
            f"{option}."
        )
    names = [chosen] if isinstance(chosen, str) or not isinstance(chosen, Iterable) else [*chosen]
    for name in names:
        if name not in known:
            raise ValueError(f"{option} has {name!r}, which is not one of {known}.")
    if not names:
        raise ValueError(f"{option} is empty; choose some of {known}.")
    return [known.index(name) for name in names]


def _plot_strata(controller: RiskController, chosen: list[int], further: list[Fraction], ax: Any) -> Axes:
    """Draw a curve for each stratum, with a mark at its threshold for each alpha."""
    calibration, guarantee = controller.calibration_, controller.guarantee()
    others = [(alpha, controller.spec.thresholds(calibration, alpha).values) for alpha in further]
    marks_of: dict[int, list[_Mark]] = {}
    for i in chosen:
        own = _Mark(guarantee.parts[i].alpha, controller.thresholds_[i])
        marks_of[i] = [*dict.fromkeys([own, *(_Mark(alpha, values[i]) for alpha, values in others)])]
    every_mark = [mark for marks in marks_of.values() for mark in marks]
    axes = axes_for(ax)
    ends = []
    for (i, marks), colour, style in zip(
        marks_of.items(), _STRATUM_COLOURS, cycle(_STRATUM_STYLES), strict=False
    ):
        stratum, part = calibration.strata.parts[i], guarantee.parts[i]
        name = " / ".join(on_one_line(each) for each in (part.group, part.label) if each is not None)
        label = f"{with_middle_cut(name)}: {_threshold_text(marks[0], stratum, controller)}"
        axes.plot([], [], color=colour, linestyle=style, marker="o", label=label.replace("$", r"\$"))
        if not stratum.curve.divisor:
            continue
        x, y = _drawn_steps(stratum.curve, [mark.threshold for mark in every_mark])
        ends += [x[0], x[-1]]
        axes.plot(x, y, drawstyle="steps-post", color=colour, linestyle=style, linewidth=1.8, zorder=3)
        for mark in marks:
            _draw_threshold(axes, stratum.curve, mark, {"color": colour, "linestyle": ":", "linewidth": 1.2})
    for alpha in dict.fromkeys(mark.alpha for mark in every_mark):
        axes.axhline(float(alpha), color=MUTED, linestyle="--", linewidth=1.2, zorder=1)
    if ends:
        axes.set_xlim(min(ends), max(ends))
    axes.set_ylim(bottom=0)
    _name_axes(axes, controller)
    axes.legend(loc="upper left", framealpha=0.95)
    return axes


def _add_legend(axes: Axes, marks: Sequence[_Mark], controller: RiskController, *, bulges_up: bool) -> None:
    """Add a legend in a corner that the curve leaves free; include the band if it is visible."""
    from matplotlib.patches import Patch

    handles, _ = axes.get_legend_handles_labels()
    low, high = axes.get_ylim()
    widest = max(float(mark.alpha) - _largest_mean_loss(mark, controller) for mark in marks)
    band = "reserved for the new row" if controller.delta is None else "margin of the bound"
    if widest > _VISIBLE_SHARE * (high - low):
        handles.append(Patch(color=GREY, alpha=0.4, linewidth=0, label=band))
    axes.legend(handles=handles, loc="lower right" if bulges_up else "upper left", framealpha=0.95)
