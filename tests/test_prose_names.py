"""Everything that pages, docstrings and examples mention exists: names, parameters, commands, options, files.

Code that pages show is tested by running it, and links within the site by its build. This is about code in
the middle of a sentence and links of files that are read in the repository.
"""

import ast
import inspect
import re
import shlex
from collections import defaultdict
from importlib import import_module
from urllib.parse import urlsplit

import pytest
import typer
from command import APP, COMMANDS
from pages import BUILT, PAGES, ROOT, code_in_sentences, name_of

import ordinalrisk
from reproduction.command import app as reproduction

OTHER_TEXTS = (
    "docs/pages/**/*.txt",
    "examples/*.sh",
    "examples/*.txt",
    "src/**/*.py",
    "reproduction/*.py",
    "docs/*.py",
    "docs/pages/**/*.py",
    "examples/*.py",
)
TEXTS = [*PAGES, *sorted({path for pattern in OTHER_TEXTS for path in ROOT.glob(pattern)} - {*PAGES})]
NAMESPACES = ("datasets", "metrics", "plots", "probabilities", "report", "shift")
OPTIONS = {
    option
    for command in (*COMMANDS.values(), APP, typer.main.get_command(reproduction))
    for parameter in command.params
    for option in (*parameter.opts, *parameter.secondary_opts, "--help")
}
OF_OTHERS = {"--constraint", "--editable", "--numprocesses", "--fail-on-warning", "--check", "--strict"}
WRONG_USE = typer.BadParameter.__base__
SHOWN = re.compile(
    r"(?m)(?:^(?: {4}| {6}|# {4}|(?:# *)?\$ )|`|\| )ordinalrisk ([a-z]+)\b((?:\\+\n#?|[^`\n#|])*)"
)
"""A command: in a block, in a sentence, or after a pipe."""
TARGETS = {*re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text())}


def public_parameters():
    """The names of parameters, by the names of the public functions, classes and methods that take them."""
    found = defaultdict(set)
    for home in (ordinalrisk, *(import_module(f"ordinalrisk.{name}") for name in NAMESPACES)):
        for name in home.__all__:
            thing = getattr(home, name)
            if inspect.isclass(thing) and issubclass(thing, Exception):  # its methods are Python's
                continue
            members = inspect.getmembers(thing, callable) if inspect.isclass(thing) else []
            for called, each in [(name, thing), *members]:
                if callable(each) and not called.startswith("_"):
                    found[called] |= {*inspect.signature(each).parameters} - {"options"}  # of a namesake
    return found


PARAMETERS = public_parameters()


def exists(name):
    """Whether a dotted name leads to something; what only instances have is in their class's docstring."""
    thing = ordinalrisk
    for part in name.split(".")[1:]:
        if inspect.isclass(thing) and not hasattr(thing, part):
            return bool(re.search(rf"\b{part}\b", inspect.getdoc(thing)))
        try:
            thing = (
                getattr(thing, part) if hasattr(thing, part) else import_module(f"{thing.__name__}.{part}")
            )
        except ImportError:
            return False
    return True


def wrong_keywords(code):
    """Of calls in a sentence, which may leave out values and arguments: ``calibrate(.., groups=)``."""
    filled = re.sub(r"(\w)=(?=\s*[,)]|$)", r"\1=0", re.sub(r"(?<!\.)\.\.\.?(?!\.)", "0", code))
    try:
        calls = [node for node in ast.walk(ast.parse(filled)) if isinstance(node, ast.Call)]
    except SyntaxError:
        return
    for call in calls:
        name = getattr(call.func, "attr", getattr(call.func, "id", None))
        if name in PARAMETERS:
            yield from ({f"{each.arg}=" for each in call.keywords} - {f"{one}=" for one in PARAMETERS[name]})


def mistakes(text):
    text = re.sub(r"(?ms)^```diff.*?^```", "", text)  # shows what could be
    names = re.findall(r"(?<![\w/.@-])(?:orisk|ordinalrisk)(?:\.[A-Za-z_]\w*)+", text)
    yield from (
        name for name in names if not re.search(r"\.(json|md|py|html|csv)$", name) and not exists(name)
    )
    for code in code_in_sentences(text):
        yield from wrong_keywords(code)
        yield from {*re.findall(r"^--[a-z][\w-]*", code)} - OPTIONS - OF_OTHERS
        yield from {*re.findall(r"^make ([a-z]+)", code)} - TARGETS
    for command, rest in SHOWN.findall(text):
        if command not in COMMANDS:
            yield f"ordinalrisk {command}"
            continue
        known = {option for each in COMMANDS[command].params for option in (*each.opts, *each.secondary_opts)}
        wrong = {*re.findall(r"(?<=\s)--?[a-z][\w-]*", rest)} - known - {"--help"}
        yield from wrong or wrong_uses(command, re.sub(r"\\+\n#?", " ", rest))


def wrong_uses(command, rest):
    """Whether a whole command, which names a file, lacks an argument or an option that it needs."""
    if re.match(r" (?!-)\S*[./]", rest):
        try:
            COMMANDS[command].make_context(command, shlex.split(rest))
        except WRONG_USE as error:
            yield error.format_message()


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_what_is_mentioned_exists(path):
    assert [*mistakes(path.read_text())] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_and_paths_lead_to_files(page):
    text = page.read_text()
    links = re.findall(r"(?<!\\)\]\(<?([^)\s>]+)|(?m:^\[[^\]]+\]: (\S+))|(?:src|href)=[\"']([^\"']+)", text)
    paths = [urlsplit(link).path for link in map("".join, links) if not urlsplit(link).scheme]
    assert [path for path in paths if not (page.parent / path).exists()] == []
    mentioned = re.findall(r"[` ]((?:benchmarks|docs|examples|src|tests)/[\w./-]*\w\.\w+)\b(?!\*)", text)
    missing = [ROOT / path for path in mentioned if not (ROOT / path).exists()]
    assert [path for path in missing if not any(path.is_relative_to(folder) for folder in BUILT)] == []


@pytest.mark.parametrize(
    "wrong",
    [
        "`calibrate(.., group=)`",
        "`metrics.risk(y, sets, cost=1)`",
        "`RiskController(\nconfidence=0.95)`",
        "``predict_set(p, group=g)``",
        "orisk.RiskCurves",
        "{meth}`~ordinalrisk.RiskController.store`",
        "`--by-class`",
        "`make fun`",
        "    ordinalrisk forecast new.csv",
        "    ordinalrisk calibrate scores.csv \\\n        --groups site",
        "$ zcat scores.csv.gz | ordinalrisk predict cal.json - -o - --format csv",
        "`ordinalrisk calibrate scores.xlsx -o cal.json`",
        "`ordinalrisk predict cal.json -o sets.csv`",
    ],
)
def test_a_mistake_is_found(wrong):
    assert len([*mistakes(wrong)]) == 1
