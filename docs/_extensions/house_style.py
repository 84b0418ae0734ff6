"""How pictures of the documentation look, and the order in which its pages are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from ordinalrisk.palette import BLUE, FAINT, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, SKY, VERMILLION

READING_ORDER: tuple[str, ...] = (
    "loss_table",
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


def setup(app: Sphinx) -> dict[str, bool]:
    """Nothing to register: the names above are used by the configuration."""
    return {"parallel_read_safe": True, "parallel_write_safe": True}
