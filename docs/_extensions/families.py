"""An entry in the reference for each growth rule and each loss, from the lists in the code.

``.. autoclasses:: ordinalrisk.losses.kinds.LOSSES`` makes an ``autoclass`` of each class in the dictionary.
"""

from __future__ import annotations

from importlib import import_module

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class AutoClasses(SphinxDirective):
    """Document every class in a dictionary under its public name."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the entries, in the order of the dictionary."""
        module, _, listed = self.arguments[0].rpartition(".")
        classes = getattr(import_module(module), listed).values()
        entries = [f".. autoclass:: ordinalrisk.{each.__name__}" for each in classes]
        return self.parse_text_to_nodes("\n\n".join(entries))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("autoclasses", AutoClasses)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
