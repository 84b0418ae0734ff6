"""Draw a few rows, one below the other: sets, true labels and probabilities."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.display.palette import BLUE, GREEN, SKY, VERMILLION
from ordinalrisk.inputs.arrays import SUM_TOLERANCE, to_numpy, widened
from ordinalrisk.inputs.device import on_device, to_host
from ordinalrisk.inputs.labels import class_indices, require_column_order
from ordinalrisk.inputs.probability_matrix import as_matrix, raise_invalid_row
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.plots.axes import axes_for, inches, line_inches, name_classes, sets_on_host
from ordinalrisk.prediction.interval_set import IntervalSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROWS_SHOWN, _MOST_ROWS = 12, 200
_HIT: dict[str, Any] = {"marker": "o", "color": GREEN, "markersize": 8}
_MISS: dict[str, Any] = {"marker": "X", "color": VERMILLION, "markersize": 9}
_MARK: dict[str, Any] = {"linestyle": "", "markeredgecolor": "white", "zorder": 4}


def plot_intervals(
    sets: IntervalSet, y: Any = None, proba: Any = None, *, rows: Any = None, ax: Any = None
) -> Axes:
    """Draw a few rows, one below the other, each as a bar over the labels of its set.

    Parameters
    ----------
    sets : IntervalSet
        The prediction sets, on the host or on a GPU.
    y : array-like of shape (n,), optional
        The true labels, drawn as a disc if the set includes the label and as a cross if it misses it.
    proba : array-like of shape (n, K), optional
        Class probabilities, drawn as shaded cells: the more probable the label, the darker the cell.
    rows : sequence of int or mask, optional
        Positions of the rows to draw, in that order; by default the first 12.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    Examples
    --------
    >>> sets = IntervalSet([0, 1], [0, 2], classes=["none", "mild", "severe"])
    >>> ax = plot_intervals(sets, ["none", "none"])
    >>> [(float(bar.get_x()), float(bar.get_width())) for bar in ax.patches]
    [(-0.45, 0.9), (0.55, 1.9)]
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['set', 'true label', 'missed label']
    """
    sets = sets_on_host(sets)
    chosen = _row_positions(rows, len(sets))
    require_same_rows(y=y, proba=proba)
    labels = None if y is None else class_indices(to_host(y), sets.classes, len(sets))[chosen]
    cells = None if proba is None else _chosen_probabilities(proba, sets, chosen)
    shown = sets[chosen]
    axes = axes_for(ax, width=7.8, height=1.3 + 0.3 * len(chosen), grid=False)
    key = [_draw_bars(axes, shown, filled=cells is None)]
    if cells is not None:
        key.append(_draw_cells(axes, cells))
    if labels is not None:
        key += _draw_labels(axes, labels, shown)
    axes.legend(handles=key, loc="upper left", bbox_to_anchor=(1, 1), frameon=False, borderaxespad=0.2)
    axes.set(ylim=(len(chosen) - 0.5, -0.5), ylabel="row")
    name_classes(axes, sets.classes)
    step = math.ceil(line_inches() / (inches(axes)[1] / len(chosen)))  # skip numbers that would overlap
    axes.set_yticks(range(0, len(chosen), step), [str(row) for row in chosen[::step]])
    return axes


def _row_positions(rows: Any, n: int) -> NDArray[np.int64]:
    """Return the positions of the rows to draw."""
    if rows is None:
        return np.arange(min(n, _ROWS_SHOWN))
    positions = to_numpy(to_host(rows), "rows")
    if positions.dtype == bool and positions.shape == (n,):
        positions = np.flatnonzero(positions)
    if positions.ndim != 1 or (positions.dtype.kind not in "iu" and len(positions)):
        raise ValueError(f"rows must be positions (whole numbers) or a mask of all {n} rows; got {rows!r}.")
    outside = (positions < 0) | (positions >= n)
    if outside.any():
        raise ValueError(f"rows must lie in 0 .. {n - 1}; got {positions[outside.argmax()]}.")
    if not 0 < len(positions) <= _MOST_ROWS:
        raise ValueError(f"rows must be 1 to {_MOST_ROWS} positions; got {len(positions)}.")
    return positions.astype(np.int64)


def _chosen_probabilities(proba: Any, sets: IntervalSet, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    matrix = as_matrix(proba)
    if tuple(matrix.shape) != (shape := (len(sets), len(sets.classes))):
        raise ValueError(
            f"proba must have a row for each set and a column for each class, so shape {shape}; "
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
    """Draw the sets as bars, or as outlines if ``filled`` is False, so that probabilities stay visible."""
    return axes.barh(
        range(len(sets)),
        sets.size - 0.1,
        left=sets.lower_index - 0.45,
        height=0.66,
        facecolor=(BLUE, 0.3) if filled else "none",
        edgecolor=BLUE,
        linewidth=1.8,
        zorder=3,
        label="set",
    )


def _draw_cells(axes: Axes, cells: NDArray[np.float64]) -> Any:
    """Shade the probabilities by transparency, so that improbable labels vanish on any background."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba
    from matplotlib.patches import Patch

    n, K = cells.shape
    shades = LinearSegmentedColormap.from_list("probability", [to_rgba(SKY, 0), to_rgba(SKY, 1)])
    edges = np.arange(K + 1) - 0.5, np.arange(n + 1) - 0.5
    axes.pcolormesh(*edges, cells, cmap=shades, vmin=0, vmax=1, zorder=1)
    return Patch(color=SKY, linewidth=0, label="probability")


def _draw_labels(axes: Axes, labels: NDArray[np.int64], sets: IntervalSet) -> list[Any]:
    row = np.arange(len(labels))
    hit = (sets.lower_index <= labels) & (labels <= sets.upper_index)
    marks = []
    for here, look, words in ((hit, _HIT, "true label"), (~hit, _MISS, "missed label")):
        if here.any():
            marks += axes.plot(labels[here], row[here], **look, **_MARK, label=words)
    return marks
