"""Links and paths of pages that are read in the repository lead to files and headings.

Those of the site alone, such as roles, are checked when it is built.
"""

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from prose import BUILT, PAGES, ROOT, name_of, pieces, pieces_of

# A path from the root of the repository: what begins like one of its folders.
PATH = re.compile(r"(?<![\w./-])(?:\.ci|benchmarks|docs|examples|src|tests)/[\w./-]*\w\.\w+\b(?!\*)")


@cache
def anchors(page: Path) -> set[str]:
    """What ``#`` may lead to: headings as GitHub and MyST name them, and names given by hand."""
    text = page.read_text(encoding="utf-8")
    found = {
        *re.findall(r"^\(([\w-]+)\)=$", text, flags=re.MULTILINE),
        *re.findall(r"""\bid=["']([^"']+)""", text),
    }
    for heading in (piece.text for piece in pieces(page) if piece.kind == "heading"):
        slug = re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")
        again = (f"{slug}-{i}" for i in range(1, 100))
        found.add(slug if slug not in found else next(name for name in again if name not in found))
    return found


def leads_somewhere(link: str, page: Path) -> bool:
    url = urlsplit(link)
    target = page.parent / unquote(url.path) if url.path else page
    return bool(url.scheme) or (
        target.exists() and (not url.fragment or target.suffix != ".md" or url.fragment in anchors(target))
    )


def dead_ends(found, page):
    for piece in found:
        if piece.kind == "link" and not leads_somewhere(piece.text, page):
            yield piece.text
        if piece.kind == "words":  # what looks like a link and was not read as one
            yield from re.findall(r"\[[^\]]*\][\[(].*?[\])]", piece.text)
        if piece.kind == "code" or piece.language in ("console", "indented"):
            paths = [ROOT / path for path in PATH.findall(piece.text)]
            yield from (path for path in paths if not path.exists() and not BUILT & {*path.parents})


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files(page):
    assert [*dead_ends(pieces(page), page)] == []


@pytest.mark.parametrize(
    "text",
    [
        "[x](nowhere.md)",
        "[x](docs/speed.md#nowhere)",
        "[x](#nowhere)",
        '![x](nowhere.png "A title")',
        "[x][y]\n\n[y]: nowhere.md",
        "[x][y]",
        "[x](<no where.md>)",
        "[x](no where.md)",
        '<img src="nowhere.png">',
        "It is <a href='nowhere.md'>here</a>.",
        "> - [x](nowhere.md)",
        "`docs/nowhere.md`",
        "Text:\n\n    python docs/nowhere.py > docs/_build/nowhere.txt\n",
    ],
)
def test_a_dead_end_is_found(text):
    assert len([*dead_ends(pieces_of(text, ".md"), ROOT / "README.md")]) == 1


def test_the_readme_has_links_and_pictures():
    links = [piece.text for piece in pieces(ROOT / "README.md") if piece.kind == "link"]
    assert any(re.fullmatch(r"docs/\S+\.md", link) for link in links)
    assert any(re.fullmatch(r"docs/\S+\.png", link) for link in links)
