"""Draw the share of rows that triage accepts at each ``alpha``."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

from ordinalrisk.display.palette import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION
from ordinalrisk.plots.axes import axes_for
from ordinalrisk.triage.controller import ShareCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY)


def plot_share_accepted(curve: ShareCurve, *, ax: Any = None) -> Axes:
    """Draw the share of calibration rows that triage accepts at each ``alpha``.

    The band is the interval of the share of new rows, with confidence 0.95 at each ``alpha`` by itself. Each
    group has its own line.

    Parameters
    ----------
    curve : ShareCurve
        What :meth:`~ordinalrisk.TriageController.share_curve` returns.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    Examples
    --------
    >>> import ordinalrisk as orisk
    >>> proba, y = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]] * 100, [0, 1, 0] * 100
    >>> triage = orisk.TriageController(alpha=0.05, delta=0.05).calibrate(proba, y)
    >>> ax = plot_share_accepted(triage.share_curve([0.05, 0.2, 0.4]))
    >>> ax.get_lines()[0].get_ydata().round(2).tolist()
    [0.67, 0.67, 1.0]
    """
    if not isinstance(curve, ShareCurve):
        raise ValueError(f"curve must be a ShareCurve, from share_curve; got a {type(curve).__name__}.")
    axes = axes_for(ax)
    guarantees = sorted(curve.guarantees, key=lambda each: each.alpha)
    alphas = [float(each.alpha) for each in guarantees]
    groups = zip(*(each.parts for each in guarantees), strict=True)
    for parts, colour in zip(groups, cycle(_COLOURS), strict=False):
        values, low, high = zip(*(part.share for part in parts), strict=True)
        axes.fill_between(alphas, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(alphas, values, "o-", color=colour, label=str(parts[0].group))
    if guarantees[0].parts[0].group is not None:
        axes.legend(title="group", frameon=False)
    axes.set(xlabel="largest expected loss of accepted rows, alpha", ylabel="share accepted", ylim=(0, 1.02))
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.6g}%")
    return axes
