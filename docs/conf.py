"""The documentation: what Sphinx needs to know. ``make docs`` builds it into docs/_build/html."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import ordinalrisk

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

# Examples train small models: many threads for each would wait for one another on a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# One example needs scores that are not ours to pass on. Where they are absent it is shown, and not run.
DATA = Path(os.environ.get("ORDINALRISK_DATA", HERE.parents[1] / "shared" / "data")).resolve()
os.environ["ORDINALRISK_DATA"] = str(DATA)  # the example runs in a folder of its own
HAS_SCORES = (DATA / "paper_scores" / "diabetic_retinopathy.csv").is_file()
if not HAS_SCORES:
    print(f"examples/two_eyes.py is shown without being run: no paper_scores in {DATA} (ORDINALRISK_DATA).")

project = "ordinalrisk"
author = "The ordinalrisk developers"
copyright = f"2026, {author}"
version = release = ordinalrisk.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "mathml",
    "commands",
    "families",
    "page_sources",
    "schemas",
    "house_style",
    "rooms",
    "source_links",
]
exclude_patterns = ["_build", "pages"]
nitpicky = True
smartquotes = False  # types and options have quotes that mean something

myst_enable_extensions = ["dollarmath", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autodoc_typehints = "none"
autodoc_member_order = "bysource"
maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
copybutton_exclude = ".linenos, .gp, .go"  # of an example the code, not its prompts and results

sphinx_gallery_conf = {
    "examples_dirs": ["pages/tutorial", "pages/concepts", "../examples"],
    "gallery_dirs": ["tutorial", "concepts", "gallery"],
    "filename_pattern": r"\.py$" if HAS_SCORES else r"(?<!two_eyes)\.py$",
    "ignore_pattern": r"make_\w+\.py$",
    "within_subsection_order": "house_style.in_reading_order",
    "reset_modules": ("matplotlib", "house_style.apply"),
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": (True, "jshtml"),
    "abort_on_example_error": True,
    "run_stale_examples": True,  # the library may have changed where the example has not
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "copyfile_regex": r".*\.(jsonl|xlsx)",
    "show_api_usage": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "ordinalrisk"
html_context = {
    "default_mode": "auto",
    "versions": [version],  # newest first
    # such as https://github.com/someone/ordinalrisk: with it, each page links to its editor
    "repository": os.environ.get("ORDINALRISK_REPOSITORY", "").rstrip("/"),
}
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["house.css", "choice.css"]
html_copy_source = False
html_show_sourcelink = False
html_search_scorer = str(HERE / "search_scorer.js")
html_show_search_summary = False  # which a page that was opened as a file can't load
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["versions", "theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc", "page-source"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
