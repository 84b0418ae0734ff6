"""The folders of the library are its rooms: imports between them go one way, and three laws hold."""

import ast
import re
import textwrap
from contextlib import suppress
from itertools import combinations
from pathlib import Path

import pytest
from page_scripts import load_script

ROOMS_OF = load_script("_extensions/drawing_rooms")
PACKAGE, FRONT_DOOR, PUBLIC = ROOMS_OF.PACKAGE, ROOMS_OF.FRONT_DOOR, ROOMS_OF.PUBLIC
FILES, IMPORTS, ROOMS = ROOMS_OF.files(), ROOMS_OF.all_imports(), ROOMS_OF.load_rooms()
ARROWS = {(name, target) for name, room in ROOMS.items() for target in room.imports}

OPEN_TO_ALL = {
    "__init__.py",
    "__main__.py",
    "cli/__init__.py",
    *(
        f"{module}{ending}"
        for module in (
            "controller",
            "datasets",
            "estimator",
            "joint_controller",
            "jobs",
            "metrics",
            "plots",
            "probabilities",
            "report",
            "shift",
            "splitting",
        )
        for ending in (".py", "/__init__.py")
    ),
}
"""Files whose names are public."""
REFERENCE = "".join(
    page.read_text(encoding="utf-8")
    for page in (Path(__file__).parents[1] / "docs" / "reference").glob("*.md")
)
DOCUMENTED = {
    *re.findall(r"\bordinalrisk(?:\.\w+)+", REFERENCE),
    *map(".".join, re.findall(r"^from (ordinalrisk\.[\w.]+) import (\w+)", REFERENCE, re.MULTILINE)),
}
"""What the reference describes is public wherever it is."""
MOST_TESTS_OF_INTERNALS = 18


def internals_in(source):
    """The modules behind the front door that a file imports, patches or reaches, also in its scripts."""
    found = imports_of_internals(source)
    for node in ast.walk(ast.parse(source)):
        text = text_of(node)
        if re.fullmatch(r"ordinalrisk(\.\w+)*\.(?![A-Z][a-z])\w+", text):  # no class: a name to patch
            parts = text.split(".")
            modules = (ROOMS_OF.file_of(".".join(parts[:end])) for end in range(len(parts), 0, -1))
            found.add(next(filter(None, modules)))
        elif not isinstance(node, ast.Attribute):
            found |= imports_of_internals(textwrap.dedent(text))
    return found - OPEN_TO_ALL


def text_of(node):
    """A text without what is put into it, or a chain of attributes."""
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.JoinedStr(parts):
            return "".join(part.value if isinstance(part, ast.Constant) else "_" for part in parts)
        case ast.Attribute():
            return re.sub(r"^orisk\.", "ordinalrisk.", ast.unparse(node))
    return ""


def imports_of_internals(script):
    """The modules that a script imports; where it can't be read as a whole, line by line."""
    if "ordinalrisk" not in script:
        return set()
    with suppress(SyntaxError):
        return {each.target for each in ROOMS_OF.imports_of("", script) if not is_public(each)}
    lines = (line for line in script.splitlines() if re.match("from|import", line) and line != script)
    return {target for line in lines for target in imports_of_internals(line)}


def is_public(each):
    module = each.target.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    name = f"ordinalrisk.{module}.{each.name}".rstrip(".")
    return name in DOCUMENTED or name == "ordinalrisk.report.render"  # a function and a module have this name


@pytest.mark.parametrize(
    "source",
    [
        "import ordinalrisk.growth.rules as rules",
        "def f():\n    from ordinalrisk.growth import rules",
        "import ordinalrisk as orisk\norisk.growth.rules.as_growth('paper')",
        "monkeypatch.setattr('ordinalrisk.growth.rules.as_growth', None)",
        "import_module('ordinalrisk.growth.rules')",
        "run('''\n    from ordinalrisk.growth import rules\n    rules.RULES\n''')",
        "run(f'''\nfrom ordinalrisk.growth import rules\nrules.RULES = {RULES}\n''')",
        "run('''\nfrom ordinalrisk.growth import rules\nif rules:''' + BODY)",
    ],
)
def test_internals_are_found_however_they_are_reached(source):
    assert "growth/rules.py" in internals_in(source)


def test_few_tests_look_behind_the_front_door():
    """All others say what holds through public names, so that a room can be rebuilt without editing them.

    Tests that use internals test what public names can't show: kernels, exact sums, the search among parts,
    bounds, summaries, readers. Others patch a size or a failure. Before you add one, look for a way to say
    the same with ``ordinalrisk`` or with a command, or put the test next to similar ones.
    """
    tests = sorted({*Path(__file__).parent.glob("*.py")} - {Path(__file__)})
    inside = [test.name for test in tests if internals_in(test.read_text(encoding="utf-8"))]
    assert len(inside) <= MOST_TESTS_OF_INTERNALS, inside


def test_only_public_names_are_imported_by_text():
    """``import_module`` would go past what the tests here see."""
    by_text = [file for file in FILES if "import_module" in (PACKAGE / file).read_text()]
    assert by_text == [PUBLIC, "report/__init__.py", "report/render.py"]


@pytest.mark.parametrize("name", [name for name in ROOMS if name != FRONT_DOOR])
def test_each_room_says_what_belongs_in_it(name):
    room = ROOMS[name]
    assert re.match(r"[A-Z][^:\n]+: ", room.about), "a few words, a colon, then what belongs in it"
    assert len(room.short) <= 28  # the box of the picture holds no more


def test_few_modules_are_at_the_top():
    assert len([file for file in FILES if "/" not in file]) <= 10


def test_the_page_about_rooms_names_the_modules_at_the_top():
    page = (Path(__file__).parents[1] / "docs" / "design" / "rooms.md").read_text(encoding="utf-8")
    listed = page.partition("**At the top** are the modules that users import by name: ")[2].partition(".")[0]
    modules = {file.removesuffix(".py") for file in FILES if "/" not in file and not file.startswith("__")}
    assert {*re.findall(r"`(\w+)`", listed)} == modules


def test_imports_for_type_hints_are_arrows():
    hints = {
        (ROOMS_OF.room_of(each.file), ROOMS_OF.room_of(each.target))
        for each in IMPORTS
        if not each.runs and PUBLIC not in (each.file, each.target)
    }
    assert {(start, end) for start, end in hints if start != end} <= ARROWS


def test_no_room_imports_itself_by_way_of_others():
    assert ROOMS_OF.circles(ROOMS) == []


def import_graph(imports):
    """What each module imports: also for type hints, and the ``__init__`` of a room that it enters."""
    graph = {}
    for each in imports:
        if PUBLIC in (each.file, each.target):
            continue
        folders = [*Path(each.target).parents][:-1]
        entered = {
            f"{folder.as_posix()}/{PUBLIC}" for folder in folders if folder not in Path(each.file).parents
        }
        graph.setdefault(each.file, set()).update({each.target} | entered)
    return graph


def import_circles(graph):
    def reached(start):
        found, ahead = set(), [start]
        while ahead:
            new = graph.get(ahead.pop(), set()) - found
            found |= new
            ahead += new
        return found

    return sorted(file for file in graph if file in reached(file))


def test_no_module_imports_itself_by_way_of_others():
    """Not inside functions either, not for type hints, and not by way of the ``__init__`` of a room."""
    assert import_circles(import_graph(IMPORTS)) == []


@pytest.mark.parametrize(
    "imports",
    [
        [
            ("losses/kinds.py", "losses/cost_table.py", True),
            ("losses/cost_table.py", "losses/kinds.py", False),
        ],
        [("curves/steps.py", "losses/kinds.py", True), ("losses/__init__.py", "curves/steps.py", True)],
    ],
    ids=["a type hint", "an __init__"],
)
def test_circles_are_seen(imports):
    found = import_circles(import_graph(ROOMS_OF.Import(file, to, "", runs) for file, to, runs in imports))
    assert found == sorted(file for file, _, _ in imports)


def test_only_the_version_is_taken_from_the_public_names():
    assert {each.name for each in IMPORTS if each.target == PUBLIC} == {"__version__"}
    assert not any(each.runs for each in IMPORTS if each.file == PUBLIC)


def seen_from(room):
    """Every file that a room imports, directly or by way of others, and that is not its own."""
    return seen_by({file for file in FILES if ROOMS_OF.room_of(file) == room})


def seen_by(own):
    found, ahead = set(), [*own]
    while ahead:
        file = ahead.pop()
        imported = {each.target for each in IMPORTS if each.file == file and each.runs}
        new = imported - found - own - {PUBLIC}  # which has the version, and imports nothing
        found |= new
        ahead += new
    return found


def rooms_seen_from(room):
    return {ROOMS_OF.room_of(file) for file in seen_from(room)}


def test_losses_never_see_data():
    assert seen_from("losses") == {"inputs/numbers.py", "inputs/arrays.py"}


def test_growth_rules_never_see_alpha():
    assert rooms_seen_from("growth") == {"inputs", "losses", "curves"}


def test_calibrations_never_see_probabilities():
    """Thresholds follow from losses: neither rows nor growth rules are within reach."""
    from_losses = ["promises", "confidence_bounds", "bets", "binomial_tails", "guarantees", "combinations"]
    seen = seen_by({f"calibration/{name}.py" for name in from_losses})
    assert {file for file in seen if ROOMS_OF.room_of(file) in ("inputs", "growth")} == {
        "inputs/numbers.py",
        "growth/kernels/library.py",  # bets are in C, too
    }


def test_nothing_below_the_controller_receives_a_controller():
    below = seen_by({"controller.py"})
    receiving = {
        file
        for file in below
        for node in ast.walk(ast.parse((PACKAGE / file).read_text(encoding="utf-8")))
        if isinstance(node, ast.arg) and "controller" in node.arg.lower()
    }
    assert "calibration/spec.py" in below
    assert receiving == set()


def test_the_diagram_draws_every_room_and_arrow():
    svg = ROOMS_OF.diagram(ROOMS)
    assert svg.count("<rect") == len(ROOMS)
    drawn = set(re.findall(r'data-from="(.*?)" data-to="(.*?)"', svg))
    assert drawn <= ARROWS
    only_drawn = {
        name: ROOMS_OF.Room("", [], {end for start, end in drawn if start == name}) for name in ROOMS
    }
    for name in ROOMS:  # what is not drawn follows from what is
        assert ROOMS_OF.reachable(only_drawn, name) == ROOMS_OF.reachable(ROOMS, name)


def test_arrows_point_down_and_boxes_have_a_place_of_their_own():
    assert all(ROOMS[start].at[0] < ROOMS[end].at[0] for start, end in ARROWS)
    assert all(one.at != other.at for one, other in combinations(ROOMS.values(), 2))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (
            "def f():\n    from ordinalrisk.growth.rules import as_growth",
            ("growth/rules.py", "as_growth", True),
        ),
        ("from ordinalrisk.growth import rules as growth", ("growth/rules.py", "", True)),
        ("import ordinalrisk.growth.kernels.cpu as cpu", ("growth/kernels/cpu.py", "", True)),
        ("if TYPE_CHECKING:\n    import ordinalrisk.growth.rules", ("growth/rules.py", "", False)),
        (
            "if TYPE_CHECKING:\n    pass\nelse:\n    import ordinalrisk.growth.rules",
            ("growth/rules.py", "", True),
        ),
        (
            "try:\n    import ordinalrisk.growth.kernels\nexcept ImportError: pass",
            ("growth/kernels/__init__.py", "", True),
        ),
    ],
)
def test_imports_are_found_wherever_they_are(source, found):
    assert [*ROOMS_OF.imports_of("x.py", source)] == [ROOMS_OF.Import("x.py", *found)]
