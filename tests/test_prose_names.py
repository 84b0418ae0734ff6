"""Names in prose: whatever README, documentation and examples call by name exists, with the parameters given.

Code that pages run is tested by running it. This is about what is only written: a name, a call or a command
in the middle of a sentence, which nothing runs and a renaming would leave behind.
"""

import ast
import inspect
import re
import shlex
import tokenize
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest
import typer
from numpydoc.docscrape import NumpyDocString

import ordinalrisk
from ordinalrisk.cli import app

ROOT = Path(__file__).parents[1]
BUILT = ("_build", "tutorial", "concepts", "gallery", "generated")
PAGES = [
    ROOT / "README.md",
    *(
        p
        for p in sorted(ROOT.glob("docs/**/*.md"))
        if not {*p.relative_to(ROOT / "docs").parts[:-1]} & {*BUILT}
    ),
    *sorted(ROOT.glob("docs/pages/**/*.py")),
    *sorted(ROOT.glob("examples/*.py")),
    *sorted(ROOT.glob("examples/*.md")),
    *sorted(ROOT.glob("examples/*.sh")),
]
DOTTED = re.compile(r"(?<![\w/.@-])(?:orisk|ordinalrisk)(?:\.[A-Za-z_]\w*)+")
FILES = (".json", ".md", ".py", ".html", ".csv")
MODULES = ("datasets", "metrics", "plots", "probabilities", "report", "shift")
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
    diffs = re.compile(r"^```diff\n.*?^```$", re.MULTILINE | re.DOTALL)
    return diffs.sub(lambda match: "\n" * match[0].count("\n"), path.read_text(encoding="utf-8"))


def fragments(path):
    text = text_of(path)
    if path.suffix == ".py":
        yield Fragment(1, text, inline=False)
        for line, prose in comments(text):
            yield from spans(prose, line, ticks=r"``")
    elif path.suffix == ".sh":
        yield from (Fragment(line, code, inline=False) for line, code in joined(text, 1))
    else:
        yield from of_markdown(text)


def of_markdown(text):
    fence = re.compile(r"^(`{3,})([^`\n]*)\n(.*?)^\1[ ]*$", re.MULTILINE | re.DOTALL)
    blanked = text
    for match in fence.finditer(text):
        line = text[: match.start(3)].count("\n") + 1
        is_python = match[2].strip().startswith("python")
        parts = [(line, match[3])] if is_python else joined(match[3], line)
        yield from (Fragment(number, code, inline=False) for number, code in parts)
        blanked = blanked.replace(match[0], "\n" * match[0].count("\n"), 1)
    indented = re.compile(r"(?:(?<=\n\n)|\A)((?:(?: {4}).*\n|\n(?= {4}))+)")
    for match in indented.finditer(blanked):
        line = blanked[: match.start()].count("\n") + 1
        yield from (Fragment(number, code.strip(), inline=False) for number, code in joined(match[0], line))
    yield from spans(indented.sub(lambda match: "\n" * match[0].count("\n"), blanked), 1, ticks=r"`+")


def spans(prose, line, ticks):
    """Inline code, not what a role wraps: that is a link, which the build resolves."""
    for match in re.finditer(
        rf"(?<![`}}:\w])({ticks})(?!`)((?:(?!\n\s*\n).)+?)(?<!`)\1(?!`)", prose, re.DOTALL
    ):
        yield Fragment(line + prose[: match.start()].count("\n"), " ".join(match[2].split()), inline=True)


def comments(source):
    """The docstring of a script and its blocks of comments, with the line of each."""
    module = ast.parse(source)
    if ast.get_docstring(module) is not None:
        yield module.body[0].lineno, ast.get_docstring(module, clean=False)
    block, first, last = [], 0, -1
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1:
                yield first, "\n".join(block)
                block, first = [], token.start[0]
            block.append(token.string.lstrip("#").strip())
            last = token.start[0]
    yield first, "\n".join(block)


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
    homes = [ordinalrisk, *(import_module(f"ordinalrisk.{module}") for module in MODULES)]
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
    for name, command in GROUP.commands.items()
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


ALL_CHECKS = (wrong_calls, wrong_keywords, wrong_commands)


def is_of_engineers(path):
    """Notes on the inside mention parameters of compilers and build tools too."""
    return {"design", "maintaining"} & {*path.parts}


def mistakes(path):
    text = text_of(path)
    found = [f"{line}: {problem}" for line, problem in wrong_names(text)]
    for fragment in fragments(path):
        checks = (wrong_calls, wrong_commands) if is_of_engineers(path) else ALL_CHECKS
        if path.suffix == ".py" and not fragment.inline:
            checks = (wrong_calls,)
        found += [f"{fragment.line}: {problem}" for check in checks for problem in check(fragment)]
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_on_a_page_exist(path):
    assert mistakes(path) == []


RIGHT = """
Take `RiskController(alpha=0.1, delta=0.05)` and `calibrate(.., groups=)`, `predict_set(proba, groups=site)`,
`orisk.metrics.risk(y, sets, loss=controller.loss, confidence=0.95)`, `condition_on="label"`, `--per-class`,
{meth}`~ordinalrisk.RiskController.save` and `RiskController.load("cal.json")`, `orisk.RiskCurve`.

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


def test_mistakes_in_the_prose_of_a_script_are_found(tmp_path):
    script = tmp_path / "script.py"
    code = (
        '"""\nTitle\n=====\n\n``predict_set(p, {0}=g)``.\n"""\n\nx = 1\n# %%\n# ``calibrate(p, y, {0}=g)``.\n'
    )
    script.write_text(code.format("groups"), encoding="utf-8")
    assert mistakes(script) == []
    script.write_text(code.format("group"), encoding="utf-8")
    assert len(mistakes(script)) == 2
