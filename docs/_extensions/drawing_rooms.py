"""The rooms of the library, read from its folders, as a picture: boxes, and arrows to what they import.

A folder of the package is a room. Modules at the top are one room, the front door. The docstring of a room's
``__init__.py`` says what belongs in it: the words before the colon stand in its box.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from html import escape
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "ordinalrisk"
FRONT_DOOR = "front door"
PUBLIC = "__init__.py"  # the public names and the version; it belongs to no room
BOX_WIDTH, BOX_HEIGHT = 196, 46
GAP_ACROSS, GAP_DOWN, LANE = 20, 30, 12
CORNER = 8
MARGIN = 4


@dataclass(frozen=True)
class Import:
    """One file imports another; when it runs, or for type hints only."""

    file: str
    target: str
    name: str
    runs: bool


@dataclass
class Room:
    """A folder: what it is for, its files, which rooms it imports, and its place in the picture."""

    about: str
    files: list[str] = field(default_factory=list)
    imports: set[str] = field(default_factory=set)
    at: tuple[int, float] = (0, 0.0)

    @property
    def short(self) -> str:
        """What stands in the box."""
        return self.about.partition("\n")[0].partition(":")[0].rstrip(".?")


Rooms = dict[str, Room]
Arrow = tuple[str, str]


def files() -> list[str]:
    """All modules of the package."""
    return sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def room_of(file: str) -> str:
    """The room of a module."""
    folder, _, rest = file.partition("/")
    return "cli" if file == "__main__.py" else folder if rest else FRONT_DOOR


def file_of(module: str) -> str | None:
    """The file of a module by its dotted name, None if that is not a module."""
    path = "/".join(module.split(".")[1:])
    candidates = [f"{path}.py", f"{path}/{PUBLIC}"] if path else [PUBLIC]
    return next((file for file in candidates if (PACKAGE / file).is_file()), None)


def imports_of(file: str, source: str) -> Iterator[Import]:
    """All imports of the library's own modules, at the top, in functions and under TYPE_CHECKING."""

    def visit(node: ast.AST, runs: bool) -> Iterator[Import]:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            assert ast.unparse(node.test) == "TYPE_CHECKING", f"{file}, line {node.lineno}: write it plainly"
            for inner in node.body:
                yield from visit(inner, False)
            for inner in node.orelse:
                yield from visit(inner, runs)
            return
        if isinstance(node, ast.Import):
            names = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}, line {node.lineno}: imports are absolute here"
            names = [(node.module or "", alias.name) for alias in node.names]
        else:
            for child in ast.iter_child_nodes(node):
                yield from visit(child, runs)
            return
        for module, name in names:
            if module.partition(".")[0] == "ordinalrisk":
                submodule = file_of(f"{module}.{name}") if name else None
                target = submodule or file_of(module)
                assert target, f"{file}, line {node.lineno}: there is no {module}"
                yield Import(file, target, "" if submodule else name, runs)

    yield from visit(ast.parse(source), True)


def all_imports() -> list[Import]:
    """The imports of all modules."""
    return [each for file in files() for each in imports_of(file, (PACKAGE / file).read_text("utf-8"))]


def load_rooms() -> Rooms:
    """The rooms as the folders and the imports have them."""
    rooms: Rooms = {}
    for file in files():
        name = room_of(file)
        if file == PUBLIC:
            continue
        if name not in rooms:
            rooms[name] = Room(_about(name))
        rooms[name].files.append(file)
    for each in all_imports():
        start, end = room_of(each.file), room_of(each.target)
        if each.runs and start != end and PUBLIC not in (each.file, each.target):
            rooms[start].imports.add(end)
    return _placed(rooms)


def _about(name: str) -> str:
    """What belongs in a room, in its own words."""
    if name == FRONT_DOOR:
        return "What users import: the modules at the top of the package."
    return ast.get_docstring(ast.parse((PACKAGE / name / PUBLIC).read_text("utf-8"))) or ""


def circles(rooms: Rooms) -> list[str]:
    """Rooms that import themselves by way of others."""
    return [name for name in rooms if name in reachable(rooms, name)]


def reachable(rooms: Rooms, start: str) -> set[str]:
    """All rooms that ``start`` imports, directly or by way of others."""
    found: set[str] = set()
    ahead = [start]
    while ahead:
        new = rooms[ahead.pop()].imports - found
        found |= new
        ahead += new
    return found


def _placed(rooms: Rooms) -> Rooms:
    """The rooms from top to bottom, each above all that it imports; in a row, each near what imports it."""
    if found := circles(rooms):
        raise ValueError(f"Rooms import themselves by way of others: {', '.join(found)}.")
    height: dict[str, int] = {}
    for name in sorted(rooms, key=lambda name: len(reachable(rooms, name))):
        height[name] = max((height[other] + 1 for other in rooms[name].imports), default=0)
    rows: list[list[str]] = [[] for _ in range(max(height.values()) + 1)]
    for name in rooms:
        rows[max(height.values()) - height[name]].append(name)
    widest = max(map(len, rows))
    placed: Rooms = {}
    for number, row in enumerate(rows):
        row.sort(key=partial(_wish, placed=placed))
        for position, name in enumerate(row):
            rooms[name].at = number, position + (widest - len(row)) / 2
        placed |= {name: rooms[name] for name in row}
    return placed


def _wish(name: str, placed: Rooms) -> float:
    """The mean column of what imports a room."""
    above = [room.at[1] for room in placed.values() if name in room.imports]
    return sum(above) / len(above) if above else 0


def drawn_arrows(rooms: Rooms) -> list[Arrow]:
    """The arrows without those that follow from others: nothing is drawn twice."""
    return [
        (name, target)
        for name, room in rooms.items()
        for target in sorted(room.imports)
        if not any(target in reachable(rooms, other) for other in room.imports if other != target)
    ]


def anchor(name: str) -> str:
    """Where a room is described."""
    return f"room-{name.replace(' ', '-')}"


def diagram(rooms: Rooms) -> str:
    """The picture as SVG; a style sheet gives it its colours."""
    right = max(_corner(room)[0] for room in rooms.values()) + BOX_WIDTH
    drawn = drawn_arrows(rooms)
    long = [(start, end) for start, end in drawn if rooms[end].at[0] - rooms[start].at[0] > 1]
    lanes = {arrow: right + LANE * (i + 1) for i, arrow in enumerate(long)}
    width = right + LANE * len(lanes) + MARGIN
    height = MARGIN + max(_corner(room)[1] for room in rooms.values()) + BOX_HEIGHT
    arrows = [_arrow(rooms[start], rooms[end], start, end, lanes.get((start, end))) for start, end in drawn]
    boxes = [_box(name, room) for name, room in rooms.items()]
    return "\n".join(
        [
            f'<svg viewBox="0 0 {width:g} {height:g}" style="max-width: {width:g}px" role="img" '
            'aria-labelledby="rooms-title">',
            '<title id="rooms-title">The rooms of the library; arrows point to what is imported</title>',
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
            'orient="auto-start-reverse"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>',
            *arrows,
            *boxes,
            "</svg>",
        ]
    )


def _corner(room: Room) -> tuple[float, float]:
    row, column = room.at
    return MARGIN + column * (BOX_WIDTH + GAP_ACROSS), MARGIN + row * (BOX_HEIGHT + GAP_DOWN)


def _box(name: str, room: Room) -> str:
    x, y = _corner(room)
    middle = x + BOX_WIDTH / 2
    return (
        f'<a href="#{anchor(name)}">'
        f'<rect x="{x:g}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="5"/>'
        f'<text class="name" x="{middle:g}" y="{y + 19}">{escape(name)}</text>'
        f'<text x="{middle:g}" y="{y + 36}">{escape(room.short)}</text></a>'
    )


def _arrow(start: Room, end: Room, name: str, target: str, lane: float | None) -> str:
    """To the top of another box: in the next row by a curve, further down by a lane outside all boxes."""
    (x0, y0), (x1, y1) = _corner(start), _corner(end)
    if lane is None:
        aside = (x1 > x0) - (x1 < x0)
        entry = x1 + BOX_WIDTH * (0.5 - 0.3 * aside), y1 - 1
        leave = x0 + BOX_WIDTH * (0.5 + 0.3 * aside), y0 + BOX_HEIGHT
        below, above = leave[1] + GAP_DOWN / 2, entry[1] - GAP_DOWN / 2
        path = f"M{_at(leave)} C{leave[0]:g} {below:g} {entry[0]:g} {above:g} {_at(entry)}"
    else:
        leave = x0 + BOX_WIDTH * 0.9, y0 + BOX_HEIGHT
        entry = x1 + BOX_WIDTH * 0.9, y1 - 1
        below, above = leave[1] + GAP_DOWN / 2, y1 - GAP_DOWN / 2
        corners = [(leave[0], below), (lane, below), (lane, above), (entry[0], above)]
        path = _rounded([leave, *corners, entry])
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
