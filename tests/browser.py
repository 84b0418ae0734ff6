"""A real Chromium for tests of pages; without one they are skipped, and say why."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from effort import PATIENCE

from ordinalrisk.report import render

NAMES = ("chromium", "chromium-browser", "google-chrome")
DESK = {"width": 1280, "height": 800}


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
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = driver.chromium.launch(executable_path=path, args=arguments, timeout=1000 * PATIENCE)
        yield browser
        browser.close()


class ReportPage:
    """A report, open in a tab from a file.

    One tab and one file serve for many reports, since the browser keeps the compiled scripts of an address.
    """

    def __init__(self, tab, path, summary, *, address="", viewport=DESK):
        path.write_text(render(summary), encoding="utf-8")
        self.page, self.url, self.summary = tab, path.as_uri(), summary
        self.complaints, self.fetched = [], []
        self._heard = {
            "console": lambda message: self.complaints.append((message.type, message.text)),
            "pageerror": lambda error: self.complaints.append(("exception", str(error))),
            "dialog": lambda dialog: self.complaints.append(("dialog", dialog.message)),
            "request": lambda request: self.fetched.append(request.url),
        }
        for event, hear in self._heard.items():
            tab.on(event, hear)
        tab.set_default_timeout(1000 * PATIENCE)
        tab.set_viewport_size(viewport)
        tab.goto(self.url + address)

    def close(self):
        """There were no complaints, nothing was fetched."""
        for event, hear in self._heard.items():
            self.page.remove_listener(event, hear)
        self.page.emulate_media(media="null", color_scheme="null")
        self.page.goto("about:blank")
        assert self.complaints == []
        assert {url.partition("#")[0] for url in self.fetched} <= {self.url, "data:,"}

    @property
    def slider(self):
        return self.page.locator("#alpha")

    def drawn(self, s):
        """Wait until all charts show the stop ``s``."""
        charts = "[...document.querySelectorAll('[data-chart]')]"
        self.page.wait_for_function(f"s => {charts}.every(box => box.dataset.stop === String(s))", arg=s)
        return self

    def move(self, s):
        if self.slider.input_value() == str(s):
            return self.drawn(s)
        move = "(slider, s) => { slider.value = s; slider.dispatchEvent(new Event('input')); }"
        self.slider.evaluate(move, s)
        return self.drawn(s)

    def data(self, chart):
        """What Plotly has drawn, as lists."""
        to_lists = "box => JSON.parse(JSON.stringify({data: box.data, layout: box.layout}))"
        return self.page.locator(f"[data-chart='{chart}']").evaluate(to_lists)

    def table(self, selector):
        """The cells of a table, header first, by rows."""
        read = "table => [...table.rows].map(row => [...row.cells].map(cell => cell.textContent))"
        return self.page.locator(f"{selector} table").evaluate(read)
