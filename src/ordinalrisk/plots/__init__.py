"""Pictures for notebooks: each function draws one picture on matplotlib axes and returns the axes.

The numbers come from :mod:`ordinalrisk.metrics` and from the risk curve. Without ``ax``, a function makes a
new figure. Axes that you pass keep their style and size. An invalid input raises an error before anything is
drawn. Matplotlib is an optional extra, which the first picture imports.
"""

from ordinalrisk.plots.class_and_group import plot_class_coverage, plot_stratum_risks
from ordinalrisk.plots.example_rows import plot_intervals
from ordinalrisk.plots.risk_curves import plot_risk_curve
from ordinalrisk.plots.set_sizes import plot_centroids, plot_set_sizes
from ordinalrisk.plots.share_curves import plot_share_accepted

__all__ = [
    "plot_centroids",
    "plot_class_coverage",
    "plot_intervals",
    "plot_risk_curve",
    "plot_set_sizes",
    "plot_share_accepted",
    "plot_stratum_risks",
]
