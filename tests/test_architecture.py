"""The rooms of the library are those of the diagram, and imports go along its arrows only."""

import ast
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest
from page_scripts import load_script

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "ordinalrisk"
DRAWING = load_script("_extensions/drawing_rooms")
ROOMS = DRAWING.load_rooms()
PUBLIC = "__init__.py"  # the public names; it belongs to no room

TYPES_ONLY = {
    ("sets", "controller"): "a controller shows itself in notebooks as its sets do",
    ("sets", "calibration"): "and so does its guarantee",
    ("parts", "controller"): "parts are calibrated for a controller that is given",
}
"""Names in type hints of a room above, and why."""


@dataclass(frozen=True)
class Import:
    """One file imports another; when it runs, or for type hints only."""

    file: str
    target: str
    name: str
    runs: bool


def files():
    return sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))


def file_of(module):
    """The file of ``ordinalrisk.a.b``, None if that is not a module."""
    path = "/".join(module.split(".")[1:])
    candidates = [f"{path}.py", f"{path}/__init__.py"] if path else ["__init__.py"]
    return next((file for file in candidates if (PACKAGE / file).is_file()), None)


def imports_of(file, source):
    """All imports of the library's own modules, at the top, in functions and under TYPE_CHECKING."""

    def visit(node, runs):
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
            names = [(node.module, alias.name) for alias in node.names]
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


IMPORTS = [each for file in files() for each in imports_of(file, (PACKAGE / file).read_text())]


def rooms_of(file):
    return [
        name
        for name, room in ROOMS.items()
        if any(file == held or (held.endswith("/") and file.startswith(held)) for held in room["holds"])
    ]


def between_rooms(runs):
    """``{(room, other): imports}``."""
    found = {}
    for each in IMPORTS:
        if each.runs == runs and PUBLIC not in (each.file, each.target):
            (start,), (end,) = rooms_of(each.file), rooms_of(each.target)
            if start != end:
                found.setdefault((start, end), []).append(each)
    return found


ARROWS = {(name, target) for name, room in ROOMS.items() for target in room["imports"]}


def test_only_public_names_are_imported_by_text():
    """``import_module`` would go past what the tests here see."""
    by_text = [file for file in files() if "import_module" in (PACKAGE / file).read_text()]
    assert by_text == [PUBLIC, "report/__init__.py", "report/render.py"]


@pytest.mark.parametrize("file", [file for file in files() if file != PUBLIC])
def test_each_module_is_in_one_room(file):
    assert len(rooms_of(file)) == 1


def test_rooms_hold_what_is_there():
    for room in ROOMS.values():
        for held in room["holds"]:
            assert (PACKAGE / held).is_dir() if held.endswith("/") else (PACKAGE / held).is_file()


def test_imports_go_along_arrows():
    assert {pair: found for pair, found in between_rooms(runs=True).items() if pair not in ARROWS} == {}


def test_each_arrow_has_an_import():
    assert ARROWS - between_rooms(runs=True).keys() == set()


def test_imports_for_type_hints_are_arrows_or_excused():
    assert between_rooms(runs=False).keys() - ARROWS == TYPES_ONLY.keys()


def test_no_room_imports_itself_by_way_of_others():
    assert [name for name in ROOMS if name in DRAWING.reachable(ROOMS, name)] == []


def test_only_the_version_is_taken_from_the_public_names():
    assert {each.name for each in IMPORTS if each.target == PUBLIC} == {"__version__"}
    assert not any(each.runs for each in IMPORTS if each.file == PUBLIC)


def seen_from(*rooms):
    """Every file that is imported by these rooms, directly or by way of others, and not one of theirs."""
    found, ahead = set(), [file for file in files() if {*rooms_of(file)} & {*rooms}]
    own = {*ahead}
    while ahead:
        file = ahead.pop()
        new = {each.target for each in IMPORTS if each.file == file and each.runs} - found - own
        found |= new
        ahead += new
    return found


def test_losses_never_see_data():
    assert {room for file in seen_from("losses") for room in rooms_of(file)} == {"basics"}


def test_growth_rules_never_see_alpha():
    seen = {room for file in seen_from("growth") for room in rooms_of(file)}
    assert seen == {"basics", "curves", "kernels", "losses", "rows"}


def test_calibrations_never_see_probabilities():
    seen = seen_from("calibration")
    assert {room for file in seen for room in rooms_of(file)} == {"basics", "curves", "kernels", "losses"}
    kernels = {file for file in seen if rooms_of(file) == ["kernels"]}
    assert kernels == {"kernels/compiling.py"}  # bets are compiled, too


def printed(code):
    """What a new process prints."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}"], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_the_import_is_light():
    wanted = "name.partition('.')[0] in {'ordinalrisk', 'numpy'}"
    assert printed(f"import ordinalrisk; print(*[name for name in sys.modules if {wanted}])") == [
        "ordinalrisk"
    ]


def test_a_controller_needs_no_extra():
    extras = {"torch", "triton", "dask", "distributed", "pyarrow", "fsspec", "matplotlib", "jinja2", "plotly"}
    assert printed(f"from ordinalrisk import RiskController; print(*{extras} & sys.modules.keys())") == []


def test_the_diagram_draws_every_room_and_arrow():
    svg = DRAWING.diagram(ROOMS)
    assert svg.count("<rect") == len(ROOMS)
    drawn = set(re.findall(r'data-from="(.*?)" data-to="(.*?)"', svg))
    assert drawn <= ARROWS
    by_drawn = {name: {"imports": [end for start, end in drawn if start == name]} for name in ROOMS}
    for name in ROOMS:  # what is not drawn follows from what is
        assert DRAWING.reachable(by_drawn, name) == DRAWING.reachable(ROOMS, name)


def test_arrows_point_down_and_boxes_have_a_place_of_their_own():
    assert all(ROOMS[start]["at"][0] < ROOMS[end]["at"][0] for start, end in ARROWS)
    assert all(one["at"] != other["at"] for one, other in combinations(ROOMS.values(), 2))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f():\n    from ordinalrisk.growth.rules import as_growth", ("growth.py", "as_growth", True)),
        ("from ordinalrisk.growth import rules as growth", ("growth.py", "", True)),
        ("import ordinalrisk.growth.kernels.cpu as cpu", ("kernels/cpu.py", "", True)),
        ("if TYPE_CHECKING:\n    import ordinalrisk.growth.rules", ("growth.py", "", False)),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    import ordinalrisk.growth.rules", ("growth.py", "", True)),
        (
            "try:\n    import ordinalrisk.growth.kernels\nexcept ImportError: pass",
            ("kernels/__init__.py", "", True),
        ),
    ],
)
def test_imports_are_found_wherever_they_are(source, found):
    assert [*imports_of("x.py", source)] == [Import("x.py", *found)]
