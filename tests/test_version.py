"""One version, wherever it is written."""

import importlib.metadata
import re
from pathlib import Path

import ordinalrisk

ROOT = Path(__file__).parents[1]


def found(pattern, file):
    return re.search(pattern, (ROOT / file).read_text(), re.MULTILINE).group(1)


def test_the_installed_package_is_this_one():
    """If not, the sources have moved on: ``touch pyproject.toml`` and run make again."""
    assert importlib.metadata.version("ordinalrisk") == ordinalrisk.__version__


def test_the_citation_has_the_version():
    assert found(r"^version: (.+)$", "CITATION.cff") == ordinalrisk.__version__


def test_the_newest_changes_are_those_of_the_version():
    assert found(r"^## (\S+) \((?:unreleased|\d{4}-\d\d-\d\d)\)$", "CHANGELOG.md") == ordinalrisk.__version__


def test_the_metadata_are_made_from_it():
    assert found(r"^dynamic = (.+)$", "pyproject.toml") == '["version", "readme"]'
