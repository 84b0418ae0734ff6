"""Names in prose: whatever README, documentation and examples call by name exists, with the parameters given.

Code that pages run is tested by running it. This is about what is only written: a name, a call or a command
in the middle of a sentence, which nothing runs and a renaming would leave behind.
"""

import ast
import inspect
import re
import shlex
from importlib import import_module
from typing import NamedTuple

import pytest
import typer
from numpydoc.docscrape import NumpyDocString
from prose import ALL, MODULES, ROOT, name_of, pieces

import ordinalrisk
from ordinalrisk.cli import app
from reproduction.command import app as reproduction

DOTTED = re.compile(r"(?<![\w/.@-])(?:orisk|ordinalrisk)(?:\.[A-Za-z_]\w*)+")
FILES = (".json", ".md", ".py", ".html", ".csv")
NAMESPACES = ("datasets", "metrics", "plots", "probabilities", "report", "shift")
# Methods that many things have: only looked up where prose, which has no other objects, mentions them.
OF_MANY = {"add", "cpu", "fit", "intervals", "levels", "load", "mask", "merge", "predict", "risk", "save"}
OF_MANY |= {"softmax", "steps", "update"}
# Options of other programs that pages mention.
OF_OTHERS = {"--constraint", "--editable", "--numprocesses", "--fail-on-warning", "--check", "--strict"}


class Fragment(NamedTuple):
    """A piece of code on a page."""

    line: int
    text: str
    inline: bool


# --- what is code on a page


def text_of(path):
    """The page without its diffs, which show what could be."""
    text = path.read_text(encoding="utf-8")
    for piece in pieces(path):
        if piece.language == "diff":
            text = text.replace(piece.text, "\n" * piece.text.count("\n"))
    return text


def fragments(path):
    for piece in pieces(path):
        if piece.kind == "code" or piece.language == "python":
            yield Fragment(piece.line, piece.text, inline=piece.kind == "code")
        elif piece.language in ("console", "indented", "shell", "text"):
            yield from (Fragment(line, code, inline=False) for line, code in joined(piece.text, piece.line))


def joined(text, line):
    """The lines of a block, those that go on in the next one together."""
    begun, start = "", line
    for number, each in enumerate(text.split("\n"), start=line):
        if not begun:
            start = number
        begun += each.rstrip()
        if begun.endswith("\\"):
            begun = begun[:-1] + " "
            continue
        yield start, begun
        begun = ""


# --- names


def resolved(name):
    """The object of a dotted name, or what its class says of an attribute that only instances have."""
    thing, parts = ordinalrisk, name.split(".")[1:]
    for part in parts:
        if inspect.isclass(thing) and not hasattr(thing, part):
            described = NumpyDocString(inspect.getdoc(thing) or "")
            listed = [each.name for section in ("Attributes", "Parameters") for each in described[section]]
            if part in {item.strip() for names in listed for item in names.split(",")}:
                return None
        try:
            thing = getattr(thing, part)
        except AttributeError:
            if not inspect.ismodule(thing):
                raise
            thing = import_module(f"{thing.__name__}.{part}")
    return thing


def wrong_names(text):
    for match in DOTTED.finditer(text):
        if match[0].endswith(FILES):
            continue
        try:
            resolved(match[0])
        except (AttributeError, ImportError):
            yield text[: match.start()].count("\n") + 1, f"{match[0]} does not exist"


# --- calls


def signatures():
    """Of everything public that is called, by its own name; several where methods share one."""
    found = {}
    homes = [ordinalrisk, *(import_module(f"ordinalrisk.{module}") for module in NAMESPACES)]
    for home in homes:
        for name in home.__all__:
            thing = getattr(home, name)
            if callable(thing):
                found.setdefault(name, []).append(inspect.signature(thing))
            if inspect.isclass(thing):
                for method in dir(thing):
                    function = inspect.getattr_static(thing, method)
                    if not method.startswith("_") and callable(getattr(thing, method)):
                        bound = isinstance(function, classmethod | staticmethod)
                        signature = inspect.signature(getattr(thing, method))
                        kept = [
                            each
                            for each in [*signature.parameters.values()][0 if bound else 1 :]
                            if each.name != "options"  # those of a method with the same name
                        ]
                        found.setdefault(method, []).append(signature.replace(parameters=kept))
    return found


SIGNATURES = signatures()
PARAMETERS = {name for many in SIGNATURES.values() for each in many for name in each.parameters}


def parsed(text):
    """The code, with what prose leaves out filled in; None if it is none."""
    filled = re.sub(r"(?<!\.)\.\.(?!\.)", "...", text)
    filled = re.sub(r"(\w)=(?=\s*[,)])", r"\1=...", filled)
    for code in (text, filled):
        try:
            return ast.parse(code)
        except (SyntaxError, ValueError):
            continue
    return None


def wrong_calls(fragment):
    tree = parsed(fragment.text)
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree else []:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)
        if name not in SIGNATURES or (not fragment.inline and name in OF_MANY):
            continue
        if problem := misfit(call, SIGNATURES[name]):
            yield f"{ast.unparse(call)}: {problem}"


def misfit(call, candidates):
    """Why none of the signatures takes this call."""
    keywords = {each.arg: None for each in call.keywords if each.arg is not None}
    some_left_out = any(
        isinstance(each, ast.Starred) or (isinstance(each, ast.Constant) and each.value is ...)
        for each in call.args
    )
    problems = []
    for signature in candidates:
        try:
            signature.bind_partial(*([] if some_left_out else [None] * len(call.args)), **keywords)
        except TypeError as error:
            problems.append(str(error))
        else:
            return None
    return problems[0]


def wrong_keywords(fragment):
    """``condition_on="label"`` alone: some public signature must have it."""
    match = re.fullmatch(r"([a-z_]{3,})=([^=].*)?", fragment.text, re.DOTALL)
    if fragment.inline and match and match[1] not in PARAMETERS:
        yield f"nothing public has a parameter {match[1]}"


# --- commands


GROUP = typer.main.get_command(app)
OPTIONS = {
    name: {"--help", *(option for each in command.params for option in (*each.opts, *each.secondary_opts))}
    for name, command in [
        *GROUP.commands.items(),
        ("python -m reproduction", typer.main.get_command(reproduction)),
    ]
}
OF_ALL = {"--help", *(option for each in GROUP.params for option in each.opts)}


def wrong_commands(fragment):
    match = re.search(
        r"(?:^|[\s/|;&$(])(?<!import )(?:python -m )?ordinalrisk (?=[a-z-]|COMMAND)(.*)", fragment.text
    )
    if match and (fragment.inline is False or match.start() == 0):
        yield from wrong_command(match[1])
    elif fragment.inline and (option := re.match(r"--[a-z][\w-]*", fragment.text)):
        known = OF_ALL.union(OF_OTHERS, *OPTIONS.values())
        if option[0] not in known:
            yield f"no command has {option[0]}"


def wrong_command(line):
    try:
        words = shlex.split(line.split(" #")[0], comments=False)
    except ValueError:
        return
    ends = [i for i, word in enumerate(words) if re.match(r"[|;&<>]", word)]
    words = words[: ends[0]] if ends else words
    name, rest = (words[0], words[1:]) if words else ("", [])
    if name.startswith("-"):
        name, rest = "", words
    if name not in OPTIONS and name not in ("", "COMMAND"):
        yield f"there is no command {name!r}"
        return
    known = OPTIONS.get(name, OF_ALL)
    for word in rest:
        option = word.split("=")[0]
        if re.match(r"--?[a-z]", option) and option not in known:
            yield f"{name} has no option {option}"


TARGETS = {*re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)}


def wrong_targets(fragment):
    command = re.match(r"(?:\$ )?make ([^#|;&]*)", fragment.text)
    for target in command[1].split() if command else ():
        if re.fullmatch(r"\w[\w-]*", target) and target not in TARGETS:
            yield f"there is no target {target!r}"


# --- all of them


def is_of_engineers(path):
    """Notes on the inside mention parameters of compilers and build tools too."""
    return {"design", "maintaining"} & {*path.parts}


def mistakes(path):
    text = text_of(path)
    found = [f"{line}: {problem}" for line, problem in wrong_names(text)]
    if path.suffix == ".py" and path not in MODULES:  # which call their own functions of the same names
        found += wrong_calls(Fragment(1, text, inline=False))
    checks = [wrong_calls, wrong_commands, wrong_targets]
    checks += [] if is_of_engineers(path) else [wrong_keywords]
    for fragment in fragments(path):
        found += [f"{fragment.line}: {problem}" for check in checks for problem in check(fragment)]
    return found


@pytest.mark.parametrize("path", ALL, ids=name_of)
def test_names_on_a_page_exist(path):
    assert mistakes(path) == []


RIGHT = """
Take `RiskController(alpha=0.1, delta=0.05)` and `calibrate(.., groups=)`, `predict_set(proba, groups=site)`,
`orisk.metrics.risk(y, sets, loss=controller.loss, confidence=0.95)`, `condition_on="label"`, `--per-class`,
{meth}`~ordinalrisk.RiskController.save` and `RiskController.load("cal.json")`, `orisk.RiskCurve`;
`make demo PYTHON=python3.12`.

    make test docs   # nothing
    ordinalrisk calibrate scores.csv --alpha 0.1 \\
        --group site -o cal.json   # --nothing
    ordinalrisk predict cal.json new.csv -o - | head --lines 3

```python
controller = orisk.RiskController(alpha=0.1).calibrate(proba, y, clusters=patient)
```

```diff
+    orisk.LossThatCouldBe(2)
```
"""
WRONG = {
    "a parameter of a class": ("delta=0.05", "confidence=0.95"),
    "a parameter of a method": ("groups=)", "group=)"),
    "a parameter in a sentence": ("groups=site", "group=site"),
    "a parameter of a function": ("loss=controller.loss", "cost=controller.loss"),
    "too many arguments": ('load("cal.json")', 'load("cal.json", 1)'),
    "a name": ("orisk.RiskCurve", "orisk.RiskCurves"),
    "a method": ("RiskController.save", "RiskController.store"),
    "a parameter alone": ('condition_on="label"', 'conditional_on="label"'),
    "an option alone": ("--per-class", "--by-class"),
    "an option": ("--alpha 0.1", "--risk 0.1"),
    "an option on the next line": ("--group site", "--groups site"),
    "a command": ("ordinalrisk predict", "ordinalrisk forecast"),
    "a target": ("make demo", "make fun"),
    "a target in a block": ("test docs", "test pages"),
    "a parameter in a block": ("clusters=patient", "cluster=patient"),
}


def test_a_page_without_mistakes_has_none(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(RIGHT, encoding="utf-8")
    assert mistakes(page) == []


@pytest.mark.parametrize("mistake", WRONG)
def test_each_kind_of_mistake_is_found_once(mistake, tmp_path):
    right, wrong = WRONG[mistake]
    assert RIGHT.count(right) == 1
    page = tmp_path / "page.md"
    page.write_text(RIGHT.replace(right, wrong), encoding="utf-8")
    assert len(mistakes(page)) == 1


SCRIPT = """
def predict():
    '''
    Title
    =====

    ``predict_set(p, {0}=g)``.
    '''

# %%
# ``calibrate(p, y, {0}=g)``.
"""


@pytest.mark.parametrize(
    ("suffix", "text", "number"), [(".py", SCRIPT, 2), (".txt", "``predict_set(p, {0}=g)``", 1)]
)
def test_mistakes_in_other_texts_are_found(suffix, text, number, tmp_path):
    right, wrong = tmp_path / f"right{suffix}", tmp_path / f"wrong{suffix}"
    right.write_text(text.format("groups"), encoding="utf-8")
    wrong.write_text(text.format("group"), encoding="utf-8")
    assert mistakes(right) == []
    assert len(mistakes(wrong)) == number
