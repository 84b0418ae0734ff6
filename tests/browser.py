"""A real Chromium for tests of pages; without one they are skipped, and say why."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium_path() -> str | None:
    """ORDINALRISK_CHROMIUM if set, else the usual place, else what is on the path."""
    if named := os.environ.get("ORDINALRISK_CHROMIUM"):
        return named
    usual = "/usr/bin/chromium"
    return usual if Path(usual).exists() else next(filter(None, map(shutil.which, NAMES)), None)


def running_chromium() -> Iterator["Browser"]:  # noqa: F821
    """For a fixture: ``yield from running_chromium()``."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = chromium_path()
    if path is None:
        pytest.skip("no Chromium: set ORDINALRISK_CHROMIUM to the path of one")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
