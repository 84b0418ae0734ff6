"""The pages for maintainers name files that exist, and their recipes work."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
from pages import PAGES, ROOT, blocks, code_in_sentences
from strategies import GROWTH_RULES, LOSSES, as_rule

import ordinalrisk as orisk

RECIPES = [page for page in PAGES if page.parent.name == "maintaining"]
CODE = "\n".join(path.read_text() for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py"))
NAMES = {*re.findall(r"\w+", CODE)}

each_page = pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)


def file_of(diff):
    header = diff.splitlines()[0]
    assert header.startswith("--- ")
    return header[4:]


def applied(diff, root=ROOT):
    """The file of a diff, and its text with the diff's lines added and taken away.

    Lines that are kept or taken away are looked for in their order, with others between them; what is added
    stands right after the line before it in the diff, or at first right before the line after it.
    """
    path = root / file_of(diff)
    before, after, new = path.read_text().splitlines(), [], []
    for line in diff.splitlines()[1:]:
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
        if not re.fullmatch(r"[\w./-]+\.(?:py|md|toml|cff|json|c|h)", name):
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
        readers = {".py": ast.parse, ".json": json.loads, ".toml": tomllib.loads}
        readers.get(path.suffix, str)(text)


def test_a_diff_that_is_out_of_date_is_found():
    with pytest.raises(AssertionError, match="LOSSES"):
        applied("--- tests/strategies.py\n+new\n-LOSSES = {\n-LOSSES = {\n")


def test_a_diff_that_breaks_its_file_is_found():
    path, text = applied("--- tests/strategies.py\n-_LOSSES = {\n+_LOSSES = \n")
    assert path == ROOT / "tests" / "strategies.py"
    with pytest.raises(SyntaxError):
        ast.parse(text)


# the recipes work

PLACES = {"add-a-growth-rule": 4, "add-a-loss": 3, "add-a-guarantee": 4}
"""The largest number of files that each recipe edits."""


def test_recipes_touch_few_places():
    for name, at_most in PLACES.items():
        diffs = blocks(ROOT / "docs" / "maintaining" / f"{name}.md", "diff")
        assert 1 <= len({*map(file_of, diffs)}) <= at_most, name


@pytest.fixture
def copied(tmp_path):
    """Apply a recipe to a copy of the project; return what runs Python there and gives its output."""

    def run(*arguments):
        there = os.environ | {"PYTHONPATH": f"{tmp_path}/src:{tmp_path}/tests"}
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=there, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def apply(recipe):
        for folder in ("src", "tests", "docs/maintaining"):
            shutil.copytree(ROOT / folder, tmp_path / folder)
        for file in ("pyproject.toml", "hatch_build.py", "docs/choose.md"):
            shutil.copy(ROOT / file, tmp_path / file)
        compiled = False
        for diff in blocks(ROOT / "docs" / "maintaining" / f"{recipe}.md", "diff"):
            path, text = applied(diff, tmp_path)
            path.write_text(f"{text}\n")
            compiled |= path.suffix == ".c"
        if compiled:
            run("hatch_build.py", "--strict")
        return run

    return apply


PYTEST = "-m", "pytest", "-q", "-p", "no:cacheprovider", "--doctest-modules"
HELP = "-m", "ordinalrisk", "calibrate", "--help"
DATA = """
import numpy as np
import ordinalrisk as orisk

rng = np.random.default_rng(0)
proba = rng.dirichlet(np.ones(4), size=200)
y = (proba.cumsum(axis=1)[:, :-1] < rng.random((200, 1))).sum(axis=1)

def saved(controller):
    controller.calibrate(proba, y).save("saved.json")
    return orisk.RiskController.load("saved.json")
"""


@pytest.mark.no_cover
def test_the_recipe_for_a_growth_rule_gives_kernels_that_agree(copied):
    run = copied("add-a-growth-rule")
    kernels = ["tests/test_kernels.py", "tests/test_gpu_kernels.py", "src/ordinalrisk/growth/rules.py"]
    passed = run(*PYTEST, *kernels, "-k", "TailGrowth and (divergence or rules) or tails and many_classes")
    assert int(re.search(r"(\d+) passed", passed)[1]) >= 11
    assert re.search(r"--growth RULE .*\btails\b", run(*HELP))
    run("-c", DATA + USE_THE_RULE)


USE_THE_RULE = """
controller = saved(orisk.RiskController(growth="tails"))
assert controller.growth == orisk.TailGrowth()
assert "TailGrowth" in orisk.__all__
assert "tails" in {found.growth for found in orisk.compare(proba, y, losses={"any miss": "coverage"})}
assert "cuts both tails alike" in orisk.report.render(orisk.report.summarise(controller, proba, y))
"""


@pytest.mark.no_cover
def test_the_recipe_for_a_loss_gives_one_that_is_calibrated_saved_and_named(copied):
    run = copied("add-a-loss")
    run(*PYTEST, "src/ordinalrisk/losses/kinds.py", "tests/test_choose_page.py")
    assert re.search(r"--loss LOSS .*\bhuber\b", run(*HELP))
    run("-c", DATA + USE_THE_LOSS)


USE_THE_LOSS = """
controller = saved(orisk.RiskController(orisk.HuberLoss(2)))
assert controller.loss == orisk.HuberLoss(2)
assert "HuberLoss" in orisk.__all__
assert orisk.RiskController("huber").loss == orisk.HuberLoss()
total = controller.risk_curve_.total_loss(controller.threshold_)
assert 0 < total + controller.loss.bound(4) <= (len(y) + 1) / 10
from strategies import LOSSES
assert orisk.HuberLoss in {type(loss(4)) for loss in LOSSES.values()}
words = orisk.report.summarise(controller, proba, y)["loss"]["description"]
assert words == "A miss costs half the squared distance up to 2, then grows in proportion to it."
"""


@pytest.mark.no_cover
def test_the_recipe_for_a_guarantee_gives_one_that_is_wider_and_named(copied):
    run = copied("add-a-guarantee")
    run(*PYTEST, "tests/test_promises_page.py", "src/ordinalrisk/calibration/confidence_bounds.py")
    run(*PYTEST, "tests/test_confidence_bounds.py", "-k", "hoeffding")
    assert re.search(r"--confidence-bound BOUND .*\bhoeffding\b", run(*HELP))
    run("-c", DATA + USE_THE_BOUND)


USE_THE_BOUND = """
wide, tight = (
    saved(orisk.RiskController(alpha=0.3, delta=0.1, confidence_bound=bound))
    for bound in ("hoeffding", "binomial")
)
assert -np.inf < wide.threshold_ <= tight.threshold_
assert "Hoeffding bound" in " ".join(str(wide.guarantee()).split())
"""


# what holds for each that is there


def test_each_growth_rule_that_has_a_name_is_public_and_under_the_laws():
    with pytest.raises(ValueError, match="the growth rules are") as error:
        orisk.RiskController(growth="none")
    named = {name: as_rule(name) for name in re.findall(r"'(\w+)'", str(error.value))[1:]}
    assert {type(rule) for rule in GROWTH_RULES} == {*map(type, named.values())}
    for name, rule in named.items():
        assert rule.name == name
        assert getattr(orisk, type(rule).__name__) is type(rule)


def test_each_loss_is_under_the_laws():
    public = {getattr(orisk, name) for name in orisk.__all__ if name.endswith("Loss")}
    assert {type(loss(4)) for loss in LOSSES.values()} == public
