"""Every word that the project says is in the dictionary, or in docs/words.txt, and is said once."""

import gc
import re
import warnings
from functools import cache

import pytest
from prose import ALL, ROOT, name_of, pieces, pieces_of
from spylls.hunspell import Dictionary

WORDS = ROOT / "docs" / "words.txt"


def own_words() -> list[str]:
    return WORDS.read_text().split()


@cache
def dictionary():
    with warnings.catch_warnings(action="ignore"):  # about files that it leaves for the collector to close
        words = Dictionary.from_files("en_US")
        gc.collect()
    return words


@cache
def is_known(word: str) -> bool:
    return word in known() or word.lower() in known() or dictionary().lookup(word)


@cache
def known() -> frozenset[str]:
    return frozenset(own_words())


def words_of(text: str) -> set[str]:
    """Plain words: no numbers, no names of code such as n_rows or ValueError, no abbreviations."""
    found = re.findall(
        r"(?<![\w/@\\])(?<!--|`-)(?<!\.(?=[a-z]))[A-Za-z]+(?:'[a-z]+)?(?![\w/@\\(\[=]|\.[a-z])", text
    )
    return {re.sub(r"'s?$", "", word) for word in found if not re.search("[a-zA-Z][A-Z]", word)}


def sentences(found):
    return [piece.text for piece in found if piece.kind == "words"]


def slips(found):
    """Words that are in no dictionary, and those that are said twice in a row."""
    for text in sentences(found):
        yield from (word for word in words_of(text) if not is_known(word))
        yield from (match[0] for match in re.finditer(r"\b([a-z]{2,})\s+\1\b(?![\w-])", text, re.IGNORECASE))


@cache
def said() -> frozenset[str]:
    return frozenset().union(*(words_of(text) for path in ALL for text in sentences(pieces(path))))


SLIPS = {
    "a sentence": (".md", "A threshhold."),
    "a list that goes on": (".md", "- One.\n\n    A calibraton.\n"),
    "a directive": (".md", "```{note}\nTeh losses.\n```"),
    "a directive with colons": (".md", "::::{grid} 2\n:::{grid-item-card} Teh losses\n:link: x\n:::\n::::"),
    "the title of a role": (".md", "{doc}`teh losses <losses>`"),
    "a picture's text": (".md", "![Teh losses](losses.png)"),
    "a table": (".md", "| Teh |\n|---|\n| 1 |\n"),
    "behind a hyphen": (".md", "It is well-mispeled."),
    "a sentence without a space behind it": (".md", "It recieves.Then it goes on."),
    "a word twice": (".md", "It is\nis so."),
    "a header": (".txt", "Gallery\n=======\n\nTeh losses, :doc:`/concepts/promise`.\n"),
    "a docstring": (".py", 'def f():\n    """Teh losses."""\n'),
    "a cell": (".py", "x = 1\n# %%\n# Teh losses.\n"),
    "a cell below a line": (".py", f"x = 1\n{'#' * 60}\n# Teh losses.\n"),
    "a title": (".py", 'ax.set_title(f"Teh {n}th loss")\n'),
    "a message": (".py", 'raise ValueError("use" " teh losses")\n'),
    "a comment of a shell script": (".sh", "#!/bin/sh\n# Teh losses.\nls\n"),
    "data": (".json", '{"description": "Teh losses."}\n'),
}


@pytest.mark.parametrize(("suffix", "text"), SLIPS.values(), ids=SLIPS)
def test_a_slip_is_found(suffix, text):
    assert len([*slips(pieces_of(text, suffix))]) == 1


def test_words_in_code_are_not_prose():
    text = (
        "Use n_rows, README.md, ValueError and `K` and $teh$ classes; it's 3x, f(3) and docs/teh.\n\n    teh"
    )
    (sentence,) = sentences(pieces_of(text, ".md"))
    assert words_of(sentence) == {"Use", "and", "classes", "it"}


@pytest.mark.parametrize("path", ALL, ids=name_of)
def test_words_are_spelt_as_in_the_dictionary(path):
    found = sorted({*slips(pieces(path))})
    assert not found, f"said twice, or not in the dictionary; if a word is right, add it to {WORDS.name}"


def test_own_words_are_sorted_and_needed():
    words = own_words()
    assert words == sorted(set(words), key=str.lower)
    needed = said() | {word.lower() for word in said()}
    assert [word for word in words if word not in needed] == []
