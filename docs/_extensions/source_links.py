"""Links from the source of a name back to its entry in the reference.

Sphinx takes one prefix for all names of a module, but the reference has some as ``ordinalrisk.WeightedLoss``
and others as ``ordinalrisk.losses.IntervalLoss``.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Mend the links of the pages with source code."""
    app.connect("html-page-context", _mend_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _mend_links(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    if not page.startswith("_modules/") or "body" not in context:
        return
    known = app.env.get_domain("py").objects  # type: ignore[attr-defined]

    def mended(found: re.Match[str]) -> str:
        name = found[1]
        ending = name.removeprefix("ordinalrisk")
        return f'#{name if name in known else next((each for each in known if each.endswith(ending)), name)}"'

    context["body"] = re.sub(r'#(ordinalrisk(?:\.\w+)+)"', mended, context["body"])
