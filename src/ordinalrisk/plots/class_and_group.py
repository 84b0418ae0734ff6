"""Draw coverage and mean loss by true class or group, with confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk import metrics
from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.labels import Classes, class_indices
from ordinalrisk.inputs.numbers import as_fraction
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.plots.axes import (
    TARGET_LINE,
    axes_for,
    draw_estimates,
    draw_target,
    name_classes,
    sets_on_host,
)
from ordinalrisk.prediction.interval_set import IntervalSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_class_coverage(
    y: Any, sets: IntervalSet, *, target: Any = None, confidence: float | None = 0.95, ax: Any = None
) -> Axes:
    r"""Draw the coverage of each true class, with exact confidence intervals.

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The prediction sets, on the host or on a GPU.
    target : number, optional
        A coverage to draw as a horizontal line for comparison, such as ``1 - alpha``.
    confidence : float or None
        Confidence of the exact binomial intervals; None leaves them out.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    Examples
    --------
    >>> sets = IntervalSet([0, 1, 2], [0, 2, 2], classes=["none", "mild", "severe"])
    >>> ax = plot_class_coverage(["none", "mild", "mild"], sets, target=0.9)
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['none\nn = 1', 'mild\nn = 2', 'severe\nn = 0']
    >>> [text.get_text() for text in ax.texts]
    ['no rows', 'target 0.9']
    """
    sets = sets_on_host(sets)
    K = len(sets.classes)
    counts = np.bincount(class_indices(to_host(y), sets.classes, len(sets)), minlength=K)
    if target is not None and not 0 <= as_fraction(target, "target") <= 1:
        raise ValueError(f"target is a coverage and must lie between 0 and 1; got {target!r}.")
    estimates = np.atleast_2d(metrics.class_coverage(y, sets, confidence=confidence))
    seen = np.flatnonzero(counts)
    axes = axes_for(ax)
    draw_estimates(axes, seen, estimates[:, seen], K)
    for k in np.flatnonzero(counts == 0).tolist():
        axes.text(
            k, 0.5, "no rows", transform=axes.get_xaxis_transform(), rotation=90, ha="center", va="center"
        )
    if target is not None:
        draw_target(axes, float(as_fraction(target, "target")), "target")
    name_classes(axes, sets.classes, [f"n = {count:,}" for count in counts])
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
    r"""Draw the mean loss in each group, or in each true class, with confidence intervals.

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The prediction sets, on the host or on a GPU.
    loss : IntervalLoss, str or table
        What a miss costs.
    by : array-like of shape (n,)
        The group of each row, or the true labels.
    alpha : number or mapping, optional
        The guaranteed risk to compare with: one for all groups, or one for each.
    confidence : float or None
        Confidence of the confidence intervals; None leaves them out.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

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
    sets = sets_on_host(sets)
    require_same_rows(y=y, by=by)
    names, number = _numbered_names(by, sets)
    alphas = _alphas_by_name(alpha, names)
    rows = [np.flatnonzero(number == k) for k in range(len(names))]
    truth = sets.classes[class_indices(to_host(y), sets.classes, len(sets))]
    risks = [metrics.risk(truth[mine], sets[mine], loss, confidence=confidence) for mine in rows]
    axes = axes_for(ax)
    draw_estimates(axes, range(len(names)), np.array(risks).T, len(names))
    if isinstance(alphas, float):
        draw_target(axes, alphas, "alpha")
    elif alphas is not None:
        at = np.arange(len(alphas))
        axes.hlines(alphas, at - 0.4, at + 0.4, **TARGET_LINE, label="alpha")
        axes.legend(frameon=False)
    name_classes(axes, names, [f"n = {len(mine):,}" for mine in rows])
    interval = "" if confidence is None else f"\n({100 * confidence:g} % intervals)"
    axes.set(ylabel=f"mean loss{interval}")
    return axes


def _numbered_names(by: Any, sets: IntervalSet) -> tuple[Classes, NDArray[np.int64]]:
    """Return the names in order (classes in class order), and the number of each row's name."""
    names = RowNames("by")
    number = names.numbered(to_host(by), len(sets))
    known, classes = [*names.known], sets.classes.tolist()
    if set(known) <= set(classes):
        order = [known.index(label) for label in classes if label in known]
        number = np.argsort(order)[number]
        known = [known[k] for k in order]
    in_order = np.empty(len(known), object)
    in_order[:] = known
    return in_order, number


def _alphas_by_name(alpha: Any, names: Classes) -> list[float] | float | None:
    """Return the risk to compare with: one for all names, or one for each."""
    if not isinstance(alpha, Mapping):
        return None if alpha is None else float(as_fraction(alpha, "alpha"))
    for name in names.tolist():
        if name not in alpha:
            raise ValueError(f"alpha has no value for {name!r}; give each of {names.tolist()} a risk.")
    return [float(as_fraction(alpha[name], "alpha")) for name in names.tolist()]
