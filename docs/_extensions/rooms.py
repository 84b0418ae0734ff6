"""Two directives for the page on the architecture: ``rooms-diagram`` and ``rooms-list``."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from drawing_rooms import PACKAGE, Room, anchor, diagram, files, load_rooms
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class _OfRooms(SphinxDirective):
    def _rooms(self) -> dict[str, Room]:
        """The rooms; the page is made anew whenever a module changes."""
        for file in files():
            self.env.note_dependency(str(PACKAGE / file))
        return load_rooms()


class Diagram(_OfRooms):
    """The picture, drawn in the page itself, so that it takes on the colours of light and dark."""

    def run(self) -> list[nodes.Node]:
        """Draw it."""
        return [nodes.raw("", f'<div class="rooms">{diagram(self._rooms())}</div>', format="html")]


class Listing(_OfRooms):
    """What each room is, which files it has, and what it imports."""

    def run(self) -> list[nodes.Node]:
        """One entry for each room, from the command line down."""
        entries = (_entry(self, *room) for room in self._rooms().items())
        return [nodes.definition_list("", *entries, classes=["rooms-list"])]


def _entry(directive: SphinxDirective, name: str, room: Room) -> nodes.Node:
    term = nodes.term("", "", nodes.strong("", name), ids=[anchor(name)])
    shown = [nodes.literal("", file) for file in room.files if not file.endswith("__init__.py")]
    others = [nodes.reference("", other, refid=anchor(other)) for other in sorted(room.imports)]
    return nodes.definition_list_item(
        "",
        term,
        nodes.definition(
            "",
            *directive.parse_text_to_nodes(room.about.replace("``", "`")),
            nodes.paragraph("", "", *_with_commas("Files: ", shown)),
            nodes.paragraph("", "", *_with_commas("Imports: ", others)),
        ),
    )


def _with_commas(begin: str, items: list[Any]) -> list[nodes.Node]:
    found: list[nodes.Node] = [nodes.Text(begin if items else f"{begin}nothing.")]
    for i, item in enumerate(items):
        found += [item, nodes.Text(", " if i < len(items) - 1 else ".")]
    return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Register both."""
    app.add_directive("rooms-diagram", Diagram)
    app.add_directive("rooms-list", Listing)
    app.add_css_file("rooms.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
