"""What the project says to people: one list of the files, and one way to read each kind of file.

A file is read into pieces: sentences, code in them, blocks of code, headings and links. Markdown and
reStructuredText are parsed and not matched, so that a block is found wherever and however it is written.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from inspect import cleandoc
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser
from docutils.utils import new_document
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin
from mdit_py_plugins.myst_role import myst_role_plugin

ROOT = Path(__file__).parents[1]
BUILT = {ROOT / "docs" / name for name in ("_build", "concepts", "gallery", "tutorial")}


def _files(*patterns: str) -> list[Path]:
    found = chain.from_iterable(sorted(ROOT.glob(pattern)) for pattern in patterns)
    return [path for path in found if not BUILT & {path, *path.parents}]


PAGES = _files("*.md", "examples/*.md", "docs/**/*.md", "docs/**/*.rst")
MODULES = _files("src/**/*.py", "reproduction/*.py")
SCRIPTS = _files("docs/**/*.py", "examples/*.py", "examples/*.sh")
TEXTS = _files(
    "docs/pages/*/*.txt", "examples/*.txt", "docs/**/*.toml", "src/**/*.schema.json", "CITATION.cff"
)
ALL = [*PAGES, *MODULES, *SCRIPTS, *TEXTS]

# Directives whose content is Markdown again, and those that show no code of their own.
NESTED = {"grid", "grid-item-card", "important", "note", "seealso", "tip", "warning"}
PLAIN = {"all-commands", "eval-rst", "include", "rooms-diagram", "rooms-list", "schema-fields", "toctree"}
PLAIN |= {"autoclass", "autoexception", "autofunction", "automodule", "py:data", "py:function"}
DIRECTIVES = {f"{{{name}}}" for name in NESTED | PLAIN}
HIDDEN = "`"  # stands in a sentence for the code or the formula that was there


class Piece(NamedTuple):
    """Of a file. Its kind is words, code (in a sentence), block (of code in a language), heading or link."""

    line: int
    kind: str
    text: str
    language: str = ""


@cache
def pieces(path: Path) -> tuple[Piece, ...]:
    return tuple(pieces_of(path.read_text(encoding="utf-8"), path.suffix))


def pieces_of(text: str, suffix: str) -> Iterable[Piece]:
    readers = {".md": of_markdown, ".txt": of_rst, ".rst": of_rst, ".py": of_python, ".sh": of_shell}
    return readers.get(suffix, of_data)(text)


def blocks(path: Path, language: str) -> list[str]:
    """The code in a language that a file shows."""
    return [piece.text for piece in pieces(path) if piece.kind == "block" and piece.language == language]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


# --- Markdown, as MyST and GitHub read it

_MARKDOWN = MarkdownIt("commonmark").enable("table")
for _plugin in (colon_fence_plugin, deflist_plugin, dollarmath_plugin, myst_block_plugin, myst_role_plugin):
    _MARKDOWN.use(_plugin)


def of_markdown(text: str, line: int = 1) -> Iterator[Piece]:
    before = ""
    for token in _MARKDOWN.parse(text):
        at = line + (token.map[0] if token.map else 0)
        match token.type:
            case "fence" | "colon_fence":
                yield from _of_fence(token, at)
            case "code_block":
                yield Piece(at, "block", token.content, "indented")
            case "html_block":
                yield from _of_html(token.content, at)
            case "inline":
                yield from _of_inline(token.children, at)
                if before == "heading_open":
                    yield Piece(at, "heading", "".join(child.content for child in token.children))
        before = token.type


def _of_fence(token: Token, at: int) -> Iterator[Piece]:
    info = token.info.strip()
    directive = re.match(r"(\{([^}]*)\})(.*)", info)
    yield Piece(at + 1, "block", token.content, directive[1] if directive else info)
    if directive and directive[2] == "eval-rst":
        yield from of_rst(token.content, at + 1)
    elif directive and directive[2] in NESTED:
        yield from of_markdown(directive[3], at)
        yield from of_markdown(
            re.sub(r"(?m)\A(:[\w-]+:.*\n)+", lambda options: "\n" * options[0].count("\n"), token.content),
            at + 1,
        )


def _of_inline(tokens: list[Token], at: int) -> Iterator[Piece]:
    words = ""
    for token in tokens:
        match token.type:
            case "text":
                words += token.content
            case "softbreak" | "hardbreak":
                words += "\n"
            case "image":
                words += token.content
                yield Piece(at, "link", token.attrs["src"])
            case "link_open":
                yield Piece(at, "link", token.attrs["href"])
            case "html_inline":
                yield from _of_html(token.content, at)
            case "myst_role":
                words += _shown(token.content)
            case "code_inline":
                words += HIDDEN
                yield Piece(at + words.count("\n"), "code", " ".join(token.content.split()))
            case "math_inline" | "math_inline_double":
                words += HIDDEN
    yield Piece(at, "words", words)


def _of_html(html: str, at: int) -> Iterator[Piece]:
    for link in re.findall(r"""(?:src|href)\s*=\s*["']?([^"'\s>]+)""", html):
        yield Piece(at, "link", link)
    if re.search(r"<(pre|code|samp|textarea)\b", html):
        yield Piece(at, "block", html, "html")
    yield Piece(at, "words", re.sub("<[^>]*>", " ", html))


def _shown(role: str) -> str:
    """The words of a role that has some: ``the losses <reference/losses>``."""
    title = re.fullmatch(r"(.*?)\s*<[^>]*>", role, flags=re.DOTALL)
    return title[1] if title else HIDDEN


# --- reStructuredText, as far as docutils knows it without Sphinx

_RST = Parser()
_SETTINGS = get_default_settings(Parser)
_SETTINGS.report_level = _SETTINGS.halt_level = 5
_SETTINGS.syntax_highlight = "none"
_SETTINGS.file_insertion_enabled = False


def of_rst(text: str, line: int = 1) -> Iterator[Piece]:
    document = new_document("", _SETTINGS)
    _RST.parse(text, document)
    yield from _of_node(document, line)


def _of_node(node: nodes.Node, line: int) -> Iterator[Piece]:
    at = line + (node.line or 1) - 1
    match node:
        case nodes.system_message():
            text = node.astext()
            broken = re.search(r'type "([\w:-]+)"|"([\w:-]+)" directive|Literal block expected', text)
            if broken:
                yield Piece(at, "block", text, f"{{{broken[1] or broken[2] or '::'}}}")
        case nodes.doctest_block():
            yield Piece(at, "block", node.astext(), "doctest")
        case nodes.raw():
            yield from _of_html(node.astext(), at)
        case nodes.literal_block():
            kinds = [each for each in node["classes"] if each != "code"]
            yield Piece(at, "block", node.astext(), " ".join(kinds) or "literal")
        case nodes.math_block() | nodes.comment() | nodes.classifier():
            return
        case nodes.term() if node.next_node(nodes.classifier, descend=False, siblings=True):
            return  # a parameter, which has its type behind it
        case nodes.TextElement():
            yield Piece(at, "words", "".join(_sentence(node)))
            yield from (
                Piece(at, "code", " ".join(code.astext().split())) for code in node.findall(nodes.literal)
            )
        case _:
            for child in node.children:
                yield from _of_node(child, line)


def _sentence(node: nodes.Element) -> Iterator[str]:
    for child in node.children:
        match child:
            case nodes.Text():
                yield child.astext()
            case nodes.problematic():  # a role of Sphinx, which docutils does not know
                role = re.fullmatch(r":[\w:]+:`(.*)`", child.astext(), flags=re.DOTALL)
                yield _shown(role[1] if role else "")
            case nodes.literal() | nodes.math() | nodes.title_reference():
                yield HIDDEN
            case _:
                yield from _sentence(child)


# --- files in which text stands among other things


def of_python(source: str) -> Iterator[Piece]:
    """Docstrings and comments, among them the texts of an executable page, and what is printed or drawn."""
    done = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text)) as docstring):
                done.add(docstring)
                yield from of_rst(cleandoc(text), node.lineno)
            case ast.JoinedStr(values=parts):
                done.update(parts)
                texts = (part.value if isinstance(part, ast.Constant) else "0" for part in parts)
                yield from _of_string("".join(texts), node.lineno)
            case ast.Constant(value=str(text)) if node not in done:
                yield from _of_string(text, node.lineno)
    for line, text in _comments(source):
        yield from of_rst(text, line)


def _of_string(text: str, line: int) -> Iterator[Piece]:
    """A message or a label: some words, which are no pattern of ``re``."""
    if " " in text and not re.search(r"\(\?|\][+?*]", text):
        yield Piece(
            line, "words", re.sub(r"</?\w[^>]*(>|$)|&\w+;|`[^`]*`|https?://\S+|%\w|\\\w+", HIDDEN, text)
        )


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Comments that follow each other, with the first one's line; ``# %%`` or a row of ``#`` parts them."""
    block, first, last = [], 0, -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(r"# (fmt|mypy|noqa|type)\b", token.string):
            separator = re.match("# ?%%|#{20}", token.string)
            if token.start[0] != last + 1 or separator:
                yield first, "\n".join(block)
                block, first = [], token.start[0]
            block.append(re.sub("^#+ ?(%%)? ?", "", token.string))
            last = token.start[0]
    yield first, "\n".join(block)


def of_shell(source: str) -> Iterator[Piece]:
    yield Piece(1, "block", source, "shell")
    for comment in re.finditer(r"(?m)(?:^#(?!!).*\n)+", source):
        text = re.sub("(?m)^# ?", "", comment[0])
        yield from of_markdown(text, 1 + source[: comment.start()].count("\n"))


def of_data(source: str) -> Iterator[Piece]:
    """What stands in quotation marks, if it is more than a word."""
    for line, text in enumerate(source.splitlines(), start=1):
        for quoted in re.findall(r'"((?:[^"\\]|\\.)*)"', re.sub(r"^#.*", "", text)):
            if " " in quoted:
                yield from of_markdown(quoted, line)
