"""Every word that the project says is in the dictionary, or in docs/words.txt."""

import gc
import re
import warnings
from functools import cache

import pytest
from prose import HEADERS, MODULES, PAGES, ROOT, SCRIPTS, prose_of
from spylls.hunspell import Dictionary

WORDS = ROOT / "docs" / "words.txt"
FILES = [*PAGES, *HEADERS, *SCRIPTS, *MODULES]


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
    found = re.findall(r"(?<![\w./@\\-])[A-Za-z]+(?:'[a-z]+)?(?![\w@\\]|\.\w)", text)
    return {
        re.sub(r"'s?$", "", word)
        for word in found
        if not re.search("[a-z][A-Z]", word) and not word.isupper()
    }


@pytest.mark.parametrize("word", ["threshhold", "calibraton", "teh", "recieves"])
def test_a_slip_is_found(word):
    assert not is_known(word)


def test_words_in_code_are_not_prose():
    assert words_of("Use n_rows, README.md, ValueError and the `K` classes; it's 3x.") == {
        "Use",
        "and",
        "the",
        "classes",
        "it",
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_words_are_spelt_as_in_the_dictionary(path):
    unknown = sorted(word for word in words_of(prose_of(path)) if not is_known(word))
    assert not unknown, f"not in the dictionary; if they are right, add them to {WORDS.name}"


def test_own_words_are_sorted_and_needed():
    words = own_words()
    assert words == sorted(set(words), key=str.lower)
    said = set().union(*(words_of(prose_of(path)) for path in FILES))
    said |= {word.lower() for word in said}
    assert [word for word in words if word not in said] == []
