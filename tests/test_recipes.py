"""The pages for maintainers name what is there, and what a recipe asks for has been done for all there is."""

import ast
import json
import re
import tomllib
from typing import get_type_hints

import pytest
from pages import PAGES, ROOT, blocks, code_in_sentences
from strategies import GROWTH_RULES, LOSSES

import ordinalrisk as orisk
from ordinalrisk import cli
from ordinalrisk.calibration import confidence_bounds, guarantees
from ordinalrisk.cli import options
from ordinalrisk.controller import RiskController
from ordinalrisk.display import wording
from ordinalrisk.growth import rules as growth
from ordinalrisk.growth.kernels import RULES
from ordinalrisk.losses import kinds as losses
from ordinalrisk.report.render import _RULES as RULES_IN_REPORTS
from ordinalrisk.selection import compare as comparing
from reproduction import figures

RECIPES = [page for page in PAGES if page.parent.name == "maintaining"]
CODE = "\n".join(path.read_text() for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py"))
NAMES = {*re.findall(r"\w+", CODE)}

each_page = pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)


def applied(diff):
    """The file of a diff, and its text with the diff's lines added and taken away.

    Lines that are kept or taken away are looked for in their order, with others between them; what is added
    stands right after the line before it in the diff, or at first right before the line after it.
    """
    header, *lines = diff.splitlines()
    assert header.startswith("--- ")
    path = ROOT / header[4:]
    before, after, new = path.read_text().splitlines(), [], []
    for line in lines:
        if line.startswith("+"):
            (after if after else new).append(line[1:])
            continue
        assert line[1:] in before, f"{line!r} is not in {path.name}, or not there"
        found = before.index(line[1:])
        after += [*before[:found], *new, *([line[1:]] if line.startswith(" ") else [])]
        before, new = before[found + 1 :], []
    return path, "\n".join([*after, *before])


@each_page
def test_files_that_are_named_are_there(page):
    for name in code_in_sentences(page.read_text()):
        if not re.fullmatch(r"[\w./-]+\.(?:py|md|toml|cff|json)", name):
            continue
        assert (ROOT / name).is_file() or (ROOT / "src" / "ordinalrisk" / name).is_file(), name


@each_page
def test_names_are_those_of_the_code_or_of_the_recipe(page):
    """Words in backticks that look like names of Python: with an underscore, or capitals inside."""
    new = {*re.findall(r"\w+", " ".join([*blocks(page, "python"), *blocks(page, "diff")]))}
    quoted = " ".join(
        text for text in code_in_sentences(page.read_text()) if not text.endswith(".py") and "::" not in text
    )
    named = {word for word in re.findall(r"\b[A-Za-z_]\w+\b", quoted) if re.search(r"_|[a-z][A-Z]", word)}
    assert named - NAMES - new == set()


@each_page
def test_diffs_start_from_what_is_there_and_make_something_that_can_be_read(page):
    for diff in blocks(page, "diff"):
        path, text = applied(diff)
        {".py": ast.parse, ".json": json.loads, ".toml": tomllib.loads}[path.suffix](text)


def test_a_diff_that_is_out_of_date_is_found():
    with pytest.raises(AssertionError, match="LOSSES"):
        applied("--- tests/strategies.py\n+new\n-LOSSES = {\n-LOSSES = {\n")


def test_a_diff_that_breaks_its_file_is_found():
    path, text = applied("--- tests/strategies.py\n-_LOSSES = {\n+_LOSSES = \n")
    assert path == ROOT / "tests" / "strategies.py"
    with pytest.raises(SyntaxError):
        ast.parse(text)


# what the recipes ask for


SCHEMAS = {
    kind: json.loads((ROOT / f"src/ordinalrisk/saving/schemas/{kind}.schema.json").read_text())["$defs"]
    for kind in ("calibration", "online", "monitor")
}


def test_schemas_list_every_loss_rule_and_bound():
    for definitions in SCHEMAS.values():
        defined = [one["$ref"].rpartition("/")[2] for one in definitions["loss"]["oneOf"]]
        assert {definitions[name]["properties"]["kind"]["const"] for name in defined} == {*losses.LOSSES}
    for kind in ("calibration", "online"):
        assert {*SCHEMAS[kind]["growth"]["properties"]["name"]["enum"]} == {*growth.GROWTH_RULES}
    bounds = SCHEMAS["calibration"]["options"]["properties"]["bound"]["enum"]
    assert {*bounds} == {"auto", *confidence_bounds.BOUNDS}


def test_each_loss_is_under_the_laws_and_public():
    assert {type(loss(4)) for loss in LOSSES.values()} == {*losses.LOSSES.values()}
    for loss in losses.LOSSES.values():
        assert getattr(orisk, loss.__name__) is loss


def test_each_growth_rule_is_under_the_laws_and_public():
    assert {type(rule) for rule in GROWTH_RULES} == {*growth.GROWTH_RULES.values()}
    for rule in growth.GROWTH_RULES.values():
        assert getattr(orisk, rule.__name__) is rule


def words_of_help(parameter):
    """Of an option of ``ordinalrisk calibrate``."""
    (option,) = get_type_hints(cli.calibrate, include_extras=True)[parameter].__metadata__
    return re.findall(r"\w+", option.help)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
def test_each_loss_is_read_as_it_was_saved_and_can_be_asked_for_on_the_command_line(loss):
    assert losses.loss_from_dict(json.loads(json.dumps(loss(4).to_dict()))) == loss(4)
    assert loss(4).kind in words_of_help("loss") or loss(4).kind == "table"  # which is a file


@pytest.mark.parametrize("name", growth.GROWTH_RULES)
def test_each_growth_rule_is_known_wherever_people_meet_it(name):
    assert name in RULES
    assert name in comparing.GROWTHS
    assert name in RULES_IN_REPORTS
    assert name in figures._LINE
    assert name in words_of_help("growth")
    assert f'"{name}"' in RiskController.__doc__


@pytest.mark.parametrize("name", confidence_bounds.BOUNDS)
def test_each_bound_is_known_wherever_people_meet_it(name):
    assert name in [*options.Bound]
    assert name in guarantees._BOUNDS
    assert name in wording._BOUNDS
    assert f'"{name}"' in RiskController.__doc__
