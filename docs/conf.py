"""The documentation: what Sphinx needs to know. ``make docs`` builds it into docs/_build/html."""

from __future__ import annotations

import sys
from pathlib import Path

import ordinalrisk

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "ordinalrisk"
author = "The ordinalrisk developers"
copyright = f"2026, {author}"
version = release = ordinalrisk.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "mathml",
    "commands",
    "schemas",
    "house_style",
]
exclude_patterns = ["_build", "pages", "**/GALLERY_HEADER.rst"]
nitpicky = True
smartquotes = False  # types and options have quotes that mean something

myst_enable_extensions = ["dollarmath", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
copybutton_exclude = ".linenos, .gp, .go"  # of an example the code, not its prompts and results

sphinx_gallery_conf = {
    "examples_dirs": ["pages/tutorial", "pages/concepts", "../examples"],
    "gallery_dirs": ["tutorial", "concepts", "gallery"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"make_\w+\.py$",
    "within_subsection_order": "house_style.in_reading_order",
    "reset_modules": ("matplotlib", "house_style.apply"),
    "image_scrapers": ("matplotlib",),
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "copyfile_regex": r".*\.(jsonl|svg|gif)",
    "show_api_usage": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "ordinalrisk"
html_static_path = ["_static"]
html_css_files = ["house.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
