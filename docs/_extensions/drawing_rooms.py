"""The rooms of the library as a picture: boxes, and arrows to what they import."""

from __future__ import annotations

import tomllib
from html import escape
from pathlib import Path
from typing import Any

ROOMS = Path(__file__).parents[1] / "maintaining" / "rooms.toml"
BOX_WIDTH, BOX_HEIGHT = 164, 46
GAP_ACROSS, GAP_DOWN = 20, 30
CORNER = 8
MARGIN = 4

Rooms = dict[str, dict[str, Any]]
Arrow = tuple[str, str]


def load_rooms() -> Rooms:
    """What ``rooms.toml`` says."""
    return tomllib.loads(ROOMS.read_text(encoding="utf-8"))


def reachable(rooms: Rooms, start: str) -> set[str]:
    """All rooms that ``start`` imports, directly or by way of others."""
    found: set[str] = set()
    ahead = [start]
    while ahead:
        new = set(rooms[ahead.pop()]["imports"]) - found
        found |= new
        ahead += new
    return found


def drawn_arrows(rooms: Rooms) -> list[Arrow]:
    """The arrows without those that follow from others: nothing is drawn twice."""
    return [
        (name, target)
        for name, room in rooms.items()
        for target in room["imports"]
        if not any(target in reachable(rooms, other) for other in room["imports"] if other != target)
    ]


def anchor(name: str) -> str:
    """Where a room is described."""
    return f"room-{name.replace(' ', '-')}"


def diagram(rooms: Rooms) -> str:
    """The picture as SVG; a style sheet gives it its colours."""
    width = MARGIN + max(_corner(room)[0] for room in rooms.values()) + BOX_WIDTH
    height = MARGIN + max(_corner(room)[1] for room in rooms.values()) + BOX_HEIGHT
    arrows = [_arrow(rooms[start], rooms[end], start, end) for start, end in drawn_arrows(rooms)]
    boxes = [_box(name, room) for name, room in rooms.items()]
    return "\n".join(
        [
            f'<svg viewBox="0 0 {width} {height}" role="img" aria-labelledby="rooms-title">',
            '<title id="rooms-title">The rooms of the library; arrows point to what is imported</title>',
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
            'orient="auto-start-reverse"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>',
            *arrows,
            *boxes,
            "</svg>",
        ]
    )


def _corner(room: dict[str, Any]) -> tuple[float, float]:
    row, column = room["at"]
    return MARGIN + column * (BOX_WIDTH + GAP_ACROSS), MARGIN + row * (BOX_HEIGHT + GAP_DOWN)


def _box(name: str, room: dict[str, Any]) -> str:
    x, y = _corner(room)
    middle = x + BOX_WIDTH / 2
    return (
        f'<a href="#{anchor(name)}"><rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="5"/>'
        f'<text class="name" x="{middle}" y="{y + 19}">{escape(name)}</text>'
        f'<text x="{middle}" y="{y + 36}">{escape(room["short"])}</text></a>'
    )


def _arrow(start: dict[str, Any], end: dict[str, Any], name: str, target: str) -> str:
    """To the top of another box: in the next row by a curve, further down by a gap between columns."""
    (x0, y0), (x1, y1) = _corner(start), _corner(end)
    aside = (x1 > x0) - (x1 < x0)
    entry = x1 + BOX_WIDTH * (0.5 - 0.3 * aside), y1 - 1
    if aside and end["at"][0] - start["at"][0] > 1:
        exit_at = x0 + BOX_WIDTH * (0.5 + 0.5 * aside), y0 + BOX_HEIGHT / 2
        gap = exit_at[0] + aside * GAP_ACROSS / 2
        above = y1 - GAP_DOWN / 2
        path = _rounded([exit_at, (gap, exit_at[1]), (gap, above), (entry[0], above), entry])
    else:
        exit_at = x0 + BOX_WIDTH * (0.5 + 0.3 * aside), y0 + BOX_HEIGHT
        below, above = exit_at[1] + GAP_DOWN / 2, entry[1] - GAP_DOWN / 2
        path = f"M{_at(exit_at)} C{exit_at[0]:g} {below:g} {entry[0]:g} {above:g} {_at(entry)}"
    return f'<path class="arrow" d="{path}" data-from="{name}" data-to="{target}" marker-end="url(#head)"/>'


def _rounded(points: list[tuple[float, float]]) -> str:
    """A line through the points, with its corners rounded."""
    path = f"M{_at(points[0])}"
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        path += f" L{_at(_towards(corner, before))} Q{_at(corner)} {_at(_towards(corner, after))}"
    return f"{path} L{_at(points[-1])}"


def _towards(corner: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    distance = abs(other[0] - corner[0]) + abs(other[1] - corner[1])  # lines go across or down
    share = min(CORNER, distance / 2) / distance
    return corner[0] + share * (other[0] - corner[0]), corner[1] + share * (other[1] - corner[1])


def _at(point: tuple[float, float]) -> str:
    return f"{point[0]:g} {point[1]:g}"
