"""Pictures for notebooks: each function draws one on matplotlib axes and returns them.

The numbers come from :mod:`ordinalrisk.metrics` and from the calibrated curve. Without ``ax`` a function
makes a new figure; axes that you pass keep their look and size. An invalid input raises before anything is
drawn. Matplotlib is an optional extra, imported when the first picture is drawn.
"""

from ordinalrisk.plots.class_and_group import plot_class_coverage, plot_stratum_risks
from ordinalrisk.plots.example_rows import plot_intervals
from ordinalrisk.plots.risk_curves import plot_risk_curve
from ordinalrisk.plots.set_sizes import plot_centroids, plot_set_sizes

__all__ = [
    "plot_centroids",
    "plot_class_coverage",
    "plot_intervals",
    "plot_risk_curve",
    "plot_set_sizes",
    "plot_stratum_risks",
]
