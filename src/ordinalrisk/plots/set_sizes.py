"""Draw the sizes of the sets, and where on the scale they lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ordinalrisk import metrics
from ordinalrisk.display.palette import ORANGE
from ordinalrisk.plots.axes import axes_for, draw_shares, name_classes, sets_on_host
from ordinalrisk.prediction.interval_set import IntervalSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_set_sizes(sets: IntervalSet, *, ax: Any = None) -> Axes:
    """Draw the share of sets with each size ``1 .. K``, and the mean size.

    Parameters
    ----------
    sets : IntervalSet
        The prediction sets, on the host or on a GPU.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    Examples
    --------
    >>> ax = plot_set_sizes(IntervalSet([0, 1], [0, 2], classes=["none", "mild", "severe"]))
    >>> [float(bar.get_height()) for bar in ax.patches]
    [0.5, 0.5, 0.0]
    >>> ax.texts[0].get_text()
    'mean 1.5 labels'
    """
    sets = sets_on_host(sets)
    K = len(sets.classes)
    mean = metrics.mean_size(sets)
    axes = axes_for(ax)
    draw_shares(axes, range(1, K + 1), metrics.size_histogram(sets), width=0.8, xlabel="labels in a set")
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
    axes.margins(y=0.15)  # room for the text
    if K <= 20:
        axes.set_xticks(range(1, K + 1))
    axes.set_xlim(0.4, K + 0.6)
    return axes


def plot_centroids(sets: IntervalSet, *, ax: Any = None) -> Axes:
    """Draw the share of sets centred on each label and between each two neighbouring labels.

    Figures 4, 6 and 8 of the paper show this picture at a given mean size.

    Parameters
    ----------
    sets : IntervalSet
        The prediction sets, on the host or on a GPU.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    Examples
    --------
    >>> ax = plot_centroids(IntervalSet([0, 1], [0, 2], classes=["none", "mild", "severe"]))
    >>> [float(bar.get_height()) for bar in ax.patches]
    [0.5, 0.0, 0.0, 0.5, 0.0]
    """
    sets = sets_on_host(sets)
    shares = metrics.centroid_histogram(sets)
    axes = axes_for(ax)
    draw_shares(axes, np.arange(len(shares)) / 2, shares, width=0.42, xlabel="middle of the set")
    name_classes(axes, sets.classes)
    return axes
