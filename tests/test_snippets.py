"""Every snippet of the README and the documentation runs, in order, in one session a file."""

import ast
import json
import re
import shlex
from textwrap import dedent

import numpy as np
import pytest
from prose import ALL, DIRECTIVES, MODULES, PAGES, ROOT, blocks, name_of, pieces, pieces_of
from typer.testing import CliRunner

import ordinalrisk as orisk
from ordinalrisk.cli import app

README = ROOT / "README.md"
# What a file may show. Python of a page runs below and that of docstrings with the doctests; commands are
# held against the command line and diffs against their files by other tests; directives are Sphinx's.
OF_PAGES = {"python", "console", "diff", "indented", "json", "text", *DIRECTIVES}
OF_TEXTS = {"console"}
ALLOWED = {".md": OF_PAGES, ".sh": {"indented", "shell"}}


def test_the_readme_has_snippets():
    assert blocks(README, "python")


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name_of)
def test_snippets_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session = {}
    for snippet in blocks(page, "python"):
        exec(compile(snippet, page.name, "exec"), session)


def is_python(code):
    """Whether it could be Python that does something: it calls, or imports."""
    try:
        found = ast.walk(ast.parse(code))
    except SyntaxError:
        return False
    return any(isinstance(node, ast.Call | ast.Import | ast.ImportFrom) for node in found)


def shows_no_python(code):
    lines = [re.sub(r"^\s*(\$|>>>|\.\.\.)?\s*", "", line) for line in code.splitlines()]
    return not any(is_python(each) or "orisk." in each for each in [dedent(code), *lines])


def is_json(code):
    try:
        return json.loads(code) is not None
    except ValueError:
        return False


def is_diff(code):
    header, *lines = code.splitlines()
    is_there = header.startswith("--- ") and (ROOT / header[4:]).is_file()
    return is_there and all(line[:1] in "+- @" for line in lines)


IS_WHAT_IT_SAYS = {"json": is_json, "diff": is_diff} | dict.fromkeys(
    ("console", "indented", "text"), shows_no_python
)


def not_run(found, allowed):
    """Blocks that show code, or could, and that nothing runs."""
    for block in (piece for piece in found if piece.kind == "block"):
        check = IS_WHAT_IT_SAYS.get(block.language)
        if block.language not in allowed or (check and not check(block.text)):
            yield block


@pytest.mark.parametrize("path", ALL, ids=name_of)
def test_no_python_hides_where_nothing_runs_it(path):
    allowed = ALLOWED.get(path.suffix, OF_TEXTS)
    assert [*not_run(pieces(path), allowed | {"doctest"} if path in MODULES else allowed)] == []


HIDING = {
    "another name": ".md ```py\nf(x)\n```",
    "no name": ".md ```\nf(x)\n```",
    "a name and more": ".md ```python title\nf(x)\n```",
    "a longer fence": ".md ````py\nf(x)\n````",
    "a directive": ".md ```{code-block} python\nf(x)\n```",
    "a short directive": ".md ```{code} python\nf(x)\n```",
    "a directive with colons": ".md :::{code-block} python\nf(x)\n:::",
    "a directive in another": ".md ::::{grid} 2\n:::{code-block} python\nf(x)\n:::\n::::",
    "a directive of the other markup": ".md ```{eval-rst}\nSo::\n\n   f(x)\n```",
    "a list": ".md - One:\n\n  ~~~py\n  f(x)\n  ~~~",
    "a quotation": ".md > ```py\n> f(x)\n> ```",
    "a note": ".md ```{note}\n    sets.contains(y)\n```",
    "an indented block": ".md Text:\n\n    sets.contains(y)\n",
    "a block indented by a tab": ".md Text:\n\n\tsets = f(x)\n",
    "a call on two lines": ".md Text:\n\n    sets = f(\n        x)\n",
    "text": ".md ```text\nsets.contains(y)\n```",
    "a session": ".md ```console\n>>> sets.contains(y)\n```",
    "raw HTML": ".md <pre>\nf(x)\n</pre>",
    "raw HTML in a sentence": ".md It is <code>f(x)</code>.",
    "JSON": ".md ```json\nf(x)\n```",
    "a diff of nothing": ".md ```diff\nf(x)\n```",
    "a diff with other lines": ".md ```diff\n--- README.md\nf(x)\n```",
    "a header": ".txt Title\n=====\n\n.. code-block:: python\n\n   f(x)\n",
    "a page of the other markup": ".rst .. code:: python\n\n   f(x)\n",
    "options": ".rst .. code-block:: console\n   :unknown:\n\n   f(x)\n",
    "an unknown directive": ".rst .. testcode::\n\n   f(x)\n",
    "a docstring": '.py def f():\n    """It is so.\n\n    .. code-block:: python\n\n       f(x)\n    """',
    "a cell": ".py # %%\n# .. sourcecode:: python\n#\n#    f(x)\n",
    "a cell with a session": ".py # %%\n# It is so.\n#\n# >>> f(x)\n",
    "a literal with markup": ".py # %%\n# .. parsed-literal::\n#\n#    f(x)\n",
    "a cell with raw HTML": ".py # %%\n# .. raw:: html\n#\n#    <pre>f(x)</pre>\n",
    "a cell below a line": f".py {'#' * 60}\n# So::\n#\n#    f(x)\n",
    "a note in a cell": ".py # %%\n# .. note:: do this::\n#\n#       f(x)\n#\n#    and that.\n",
    "a literal that is none": ".py # %%\n# .. note:: do this::\n#\n#       f(x)\n",
    "a file": ".rst .. include:: f.py\n   :code: python\n",
    "a console that is none": ".py # %%\n# .. code-block:: console\n#\n#    sets.contains(y)\n",
}


@pytest.mark.parametrize("hiding", HIDING.values(), ids=HIDING)
def test_python_that_hides_is_found(hiding):
    suffix, _, text = hiding.partition(" ")
    assert len([*not_run(pieces_of(text, suffix), ALLOWED.get(suffix, OF_TEXTS))]) == 1


@pytest.mark.parametrize(
    "text",
    [
        "```python\nf(x)\n```",
        "- A:\n\n  ~~~python\n  f(x)\n  ~~~",
        "> ```python\n> f(x)\n> ```",
        "````python\nf(x)\n````",
        "```{note}\n~~~python\nf(x)\n~~~\n```",
        "```{eval-rst}\n.. code-block:: python\n\n   f(x)\n```",
    ],
)
def test_python_is_run_wherever_it_stands(text):
    found = [piece.text.strip() for piece in pieces_of(text, ".md") if piece.language == "python"]
    assert found == ["f(x)"]


@pytest.mark.parametrize(
    "text", ["    make demo  # f(x)", "```json\n{}\n```", "```console\n$ pip install .\n```"]
)
def test_what_is_no_python_may_be_shown(text):
    assert [*not_run(pieces_of(text, ".md"), OF_PAGES)] == []


def test_commands_of_the_readme_run_in_their_order(tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    for file in ("scores", "new", "test", "march", "choose"):
        proba = random.dirichlet([1, 2, 1], size=300)
        table = pd.DataFrame(proba, columns=["p_0", "p_1", "p_2"])
        if file != "new":
            table["label"] = [random.choice(3, p=row) for row in proba]
        table.to_parquet(f"{file}.parquet")
    shown = "".join(blocks(README, "indented"))
    commands = re.findall(r"^ordinalrisk (.*?)(?: +#.*)?$", shown, flags=re.MULTILINE)
    assert [command.split()[0] for command in commands] == [
        "calibrate",
        "predict",
        "evaluate",
        "report",
        "compare",
        "monitor",
    ]
    for command in commands:
        done = CliRunner().invoke(app, shlex.split(command))
        assert done.exit_code == 0, done.output
    assert orisk.RiskController.load("cal.json").n_rows_ == 300
    assert {"sets.parquet", "report.html", "state.json"} <= {path.name for path in tmp_path.iterdir()}
