"""Formulas as MathML, which browsers draw themselves: no script, nothing from elsewhere."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging


def _mathml(node: nodes.Element, display: str) -> str:
    formula = convert(node.astext(), display=display)
    if "\\" in formula:
        logging.getLogger(__name__).warning("not all of %r was understood", node.astext(), location=node)
    return formula


def _inline(translator: Any, node: nodes.Element) -> None:
    translator.body.append(_mathml(node, "inline"))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.Element) -> None:
    formula = _mathml(node, "block")
    translator.body.append(translator.starttag(node, "div", CLASS="formula") + formula + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
