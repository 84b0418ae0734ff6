"""The pages that the project shows to people, and the code on them."""

import re
from pathlib import Path

from sybil import Document
from sybil.parsers.myst import CodeBlockParser

ROOT = Path(__file__).parents[1]
BUILT = [ROOT / "docs" / name for name in ("_build", "concepts", "gallery", "tutorial")]
PAGES = sorted(
    page
    for pattern in ("*.md", "examples/*.md", "docs/**/*.md")
    for page in ROOT.glob(pattern)
    if not any(page.is_relative_to(folder) for folder in BUILT)
)


def name_of(path):
    return str(path.relative_to(ROOT))


def blocks(page, language):
    """The blocks of code in a language on a page."""
    document = Document.parse(str(page), CodeBlockParser(language, evaluator=lambda example: None))
    return [str(example.parsed) for example in document.examples()]


def code_in_sentences(text):
    """The code between backticks, single or double, in a text of any markup."""
    text = re.sub(r"(?ms)^[ >]*(```+|~~~+).*?^[ >]*\1", "", text)
    return [" ".join(code[1].split()) for code in re.findall(r"(?<!`)(``?)([^`]+)\1(?!`)", text)]
