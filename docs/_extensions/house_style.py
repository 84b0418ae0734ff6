"""How pictures of the documentation look, in which order its pages are read, and the report among them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from ordinalrisk.palette import BLUE, FAINT, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, SKY, VERMILLION

READING_ORDER = (
    # tutorial
    "first_intervals",
    "choosing_a_loss",
    "choosing_alpha",
    "reading_the_report",
    # concepts
    "promise",
    "loss_table",
    "growth",
    "threshold",
    "frontier",
    "further_guarantees",
    "when_it_fails",
    # the gallery: any model,
    "sklearn_pipeline",
    "gradient_boosting",
    "survey_ordered_logit",
    "coral_head",
    "llm_judge",
    # any cost,
    "retina_grades",
    "clinical_costs",
    "age_in_years",
    # any promise,
    "groups_and_classes",
    "two_eyes",
    "drift_and_alarm",
    # any number of rows, and beside others
    "dask_run",
    "mapie_sets",
)
REPORT = Path(__file__).parents[1] / "pages" / "tutorial" / "report.html"


def in_reading_order(name: str) -> tuple[int, str]:
    """Sort key of a page among its neighbours."""
    stem = Path(name).stem
    return (READING_ORDER.index(stem) if stem in READING_ORDER else len(READING_ORDER), stem)


def apply(conf: Mapping[str, Any], name: str) -> None:
    """One look for all pictures, set anew before each page so that none inherits from another."""
    import matplotlib as mpl

    mpl.rcParams.update(
        {
            "figure.figsize": (7.2, 3.6),
            "figure.dpi": 100,
            "savefig.dpi": 160,
            "figure.constrained_layout.use": True,
            "axes.prop_cycle": mpl.cycler(color=[BLUE, ORANGE, GREEN, VERMILLION, SKY, PURPLE]),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": GREY,
            "axes.labelcolor": INK,
            "axes.titlelocation": "left",
            "axes.titlesize": "medium",
            "axes.grid": False,
            "grid.color": FAINT,
            "xtick.color": MUTED,
            "ytick.color": MUTED,
            "legend.frameon": False,
        }
    )


def _place_report(app: Sphinx, exception: Exception | None) -> None:
    """The tutorial writes a report where it runs; it shows it where its page is."""
    if exception is None and app.builder.format == "html":
        shutil.copy(REPORT, app.outdir / "tutorial")


def setup(app: Sphinx) -> dict[str, bool]:
    """Put the report beside its page when all is built; the other names above are for the configuration."""
    app.connect("build-finished", _place_report)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
