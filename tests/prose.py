"""What the project says to people, file by file: pages, text of executable pages, docstrings, messages."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("examples/*.md")),
    *sorted(path for path in ROOT.glob("docs/**/*.md") if "_build" not in path.parts),
]
SCRIPTS = [*sorted(ROOT.glob("docs/pages/*/*.py")), *sorted(ROOT.glob("examples/*.py"))]
HEADERS = [*sorted(ROOT.glob("docs/pages/*/GALLERY_HEADER.*")), ROOT / "examples" / "GALLERY_HEADER.txt"]
MODULES = sorted(ROOT.glob("src/**/*.py"))


def fenced_blocks(page: str) -> list[tuple[str, str]]:
    """The blocks of a Markdown page: what their fence says, and what is in them."""
    return re.findall(r"^```([^\n`]*)\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)


def text_blocks(script: str) -> list[str]:
    """The texts of an executable page: its docstring, and the comments below ``# %%``."""
    docstring = ast.get_docstring(ast.parse(script)) or ""
    cells = re.findall(r"^# %%.*\n((?:#.*\n)*)", script, flags=re.MULTILINE)
    return [docstring, *(re.sub(r"^# ?", "", cell, flags=re.MULTILINE) for cell in cells)]


def sentences(module: str) -> Iterator[str]:
    """What a module says: its docstrings without their examples, its messages, the help of its commands."""
    for node in ast.walk(ast.parse(module)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") >= 3:
            text = re.sub(r"^ *(>>>|\.\.\. ).*(\n(?! *\n).*)*", "", node.value, flags=re.MULTILINE)
            yield re.sub(r"--[\w-]+|%\w|\\\w", " ", text)


def prose_of(path: Path) -> str:
    """The sentences of a file, without its code."""
    text = path.read_text()
    if path.suffix == ".py":
        parts = sentences(text) if "src" in path.relative_to(ROOT).parts else text_blocks(text)
        return _without_rst("\n\n".join(parts))
    return _without_rst(text) if path.suffix == ".rst" else _without_markdown(text)


def _without_markdown(text: str) -> str:
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"(?m)^(    |\t).*$", "", text)  # an indented block, or what goes on in a list
    text = re.sub(r"<[^>]*>|\{[\w:]+\}(?=`)|\$\$.*?\$\$|\$[^$\n]+\$|`[^`]*`", " ", text, flags=re.DOTALL)
    return re.sub(r"\]\([^)]*\)|https?://\S+", " ", text)


def _without_rst(text: str) -> str:
    text = re.sub(r"(?m)^( *)\.\. (math|code-block|raw|image|figure)::.*(\n(\1 +.*| *))*", "", text)
    text = re.sub(r":\w+(:\w+)?:`[^`]*`|``.*?``|`[^`]*`_?|https?://\S+", " ", text, flags=re.DOTALL)
    return re.sub(r"(?m)^\w[\w, *.]* : .*$", " ", text)  # a parameter and its type
