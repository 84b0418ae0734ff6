"""How pictures of the documentation look, in which order its pages are read, and the report among them."""

from __future__ import annotations

import re
import shutil
import textwrap
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from ordinalrisk.display.palette import BLUE, FAINT, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, SKY, VERMILLION

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
    "from_excel_to_sets",
    # any cost,
    "retina_grades",
    "clinical_costs",
    "treat_refer_wait",
    "age_in_years",
    # any promise,
    "groups_and_classes",
    "two_eyes",
    "triage_grades",
    "drift_and_alarm",
    # any number of rows, and beside others
    "dask_run",
    "mapie_sets",
)
DRAWING = "How the picture is drawn"
FILM = "A film of what the picture before it shows step by step"
REPORT = Path(__file__).parents[1] / "pages" / "tutorial" / "report.html"


def in_reading_order(name: str) -> tuple[int, str]:
    """Sort key of a page among its neighbours."""
    stem = Path(name).stem
    return (READING_ORDER.index(stem) if stem in READING_ORDER else len(READING_ORDER), stem)


def apply(conf: Mapping[str, Any], name: str) -> None:
    """Set the style of pictures, again before each page, so that no page changes that of the next."""
    import matplotlib as mpl
    from matplotlib import animation

    # A film would ask another host for icons that the theme has too, and has no words for its picture.
    animation.JS_INCLUDE = re.sub("<link[^>]*>", "", animation.JS_INCLUDE)
    animation.DISPLAY_TEMPLATE = animation.DISPLAY_TEMPLATE.replace("<img id", f'<img alt="{FILM}" id')
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
            "animation.writer": "pillow",  # others are looked for, and their absence said
        }
    )
    warnings.formatwarning = _shown_warning


def _shown_warning(message: Warning | str, category: type[Warning], *_: object) -> str:
    """A warning as pages show it: short lines, and not the path of the file on this machine."""
    return textwrap.fill(f"{category.__name__}: {message}", 80) + "\n"


def _fold_drawing(app: Sphinx, doctree: nodes.document) -> None:
    """Code that only draws is folded, so that a page reads on; one click opens it."""
    for block in list(doctree.findall(nodes.literal_block)):
        if block.astext().lstrip().startswith(f"# {DRAWING}\n"):
            at = block.parent.index(block)
            opening = f'<details class="drawing"><summary>{DRAWING}</summary>'
            block.parent.insert(at, nodes.raw("", opening, format="html"))
            block.parent.insert(at + 2, nodes.raw("", "</details>", format="html"))


def _place_report(app: Sphinx, exception: Exception | None) -> None:
    """The tutorial writes a report where it runs; it shows it where its page is."""
    if exception is None and app.builder.format == "html":
        shutil.copy(REPORT, app.outdir / "tutorial")


def setup(app: Sphinx) -> dict[str, bool]:
    """Fold code that only draws, and copy the report next to its page."""
    app.connect("doctree-read", _fold_drawing)
    app.connect("build-finished", _place_report)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
