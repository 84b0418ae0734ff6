"""Each page names the file that it was made from, and links to an editor if the repository has an address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
# pages that sphinx-gallery makes, and the folder of their scripts
SCRIPTS = {"tutorial": "docs/pages/tutorial", "concepts": "docs/pages/concepts", "gallery": "examples"}


def source_of(page: str) -> str | None:
    """Return the file of a page, relative to the repository; None for pages without one.

    Examples
    --------
    >>> source_of("faq"), source_of("gallery/dask_run"), source_of("genindex")
    ('docs/faq.md', 'examples/dask_run.py', None)
    """
    folder, _, name = page.rpartition("/")
    if folder in SCRIPTS:
        file = f"{SCRIPTS[folder]}/{'GALLERY_HEADER.txt' if name == 'index' else f'{name}.py'}"
    else:
        file = f"docs/{page}.md"
    return file if (ROOT / file).is_file() else None


def _add_source(app: Sphinx, page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    context["source_of_page"] = source_of(page)


def setup(app: Sphinx) -> dict[str, bool]:
    """Give the templates the file of each page."""
    app.connect("html-page-context", _add_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
