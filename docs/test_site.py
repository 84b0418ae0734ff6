"""The built site, as a reader meets it: links lead somewhere, all is local, no page is too wide.

``make docs`` runs this after the build; ``python -m pytest docs/test_site.py`` does so alone.
"""

import os
import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from browser import running_chromium
from effort import PATIENCE

SITE = Path(os.environ.get("ORDINALRISK_SITE", Path(__file__).parent / "_build" / "html"))
PAGES = sorted(
    page for page in SITE.rglob("*.html") if page.name != "report.html" and "_static" not in page.parts
)
LOADED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "video": "src", "link": "href"}
# Wherever a page could break: tables, formulas, code, cards, pictures, the report.
LOOKED_AT = [
    "index",
    "tutorial/index",
    "tutorial/first_intervals",
    "tutorial/choosing_a_loss",
    "tutorial/reading_the_report",
    "concepts/frontier",
    "concepts/growth",
    "gallery/index",
    "gallery/from_excel_to_sets",
    "reference/index",
    "reference/checks",
    "reference/losses",
    "reference/command_line",
    "choose",
    "guide/guarantee",
    "messages",
    "peers",
    "faq",
    "glossary",
    "reading_the_paper",
    "guarantees",
    "reproduction",
    "scale",
    "maintaining/architecture",
]


def name(page):
    return str(page.relative_to(SITE).with_suffix(""))


class Tags(HTMLParser):
    """The tags of a page, each with its attributes."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page.read_text())

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@cache
def tags(page):
    return Tags(page).found


@cache
def anchors(page):
    return {given["id"] for _, given in tags(page) if "id" in given}


def test_the_site_is_built():
    assert SITE / "index.html" in PAGES
    assert len(PAGES) > 40


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    dead = []
    for link in [given["href"] for tag, given in tags(page) if tag == "a" and "href" in given]:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        named = unquote(parts.fragment)
        if not target.is_file() or (named and target.suffix == ".html" and named not in anchors(target)):
            dead.append(link)
    assert not dead


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_nothing_is_loaded_from_elsewhere(page):
    loaded = [given[LOADED[tag]] for tag, given in tags(page) if tag in LOADED and LOADED[tag] in given]
    assert not [address for address in loaded if urlsplit(address).netloc]
    local = [unquote(urlsplit(address).path) for address in loaded if not urlsplit(address).scheme]
    assert not [path for path in local if not (page.parent / path).exists()]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_pictures_say_what_they_show(page):
    """A thumbnail needs no text, because its title is next to it."""
    pictures = [given for tag, given in tags(page) if tag == "img" and "thumb" not in given.get("src", "")]
    assert not [given.get("src") for given in pictures if not given.get("alt", "").strip()]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_page_has_a_path_of_this_machine(page):
    assert str(Path(__file__).parents[1]) not in page.read_text()


@pytest.mark.parametrize("page", ["faq", "tutorial/first_intervals", "gallery/index", "reference/losses"])
def test_pages_name_the_file_to_edit(page):
    [file] = re.findall(r"To edit this page, change <code>(.*?)</code>", (SITE / f"{page}.html").read_text())
    assert (Path(__file__).parents[1] / file).is_file()


def test_the_index_of_names_is_on_the_list_of_pages():
    assert 'href="genindex.html"' in (SITE / "more.html").read_text()


@pytest.fixture(scope="session")
def browser():
    yield from running_chromium()


@pytest.mark.parametrize(
    "text",
    [
        "is not one of the classes",
        "can't be used together",
        "weights are all zero",
        "strictly between 0 and 1",
    ],
)
def test_a_search_for_an_error_finds_the_page_on_errors_first(browser, text):
    context = browser.new_context()
    context.set_default_timeout(1000 * PATIENCE)
    tab = context.new_page()
    tab.goto(f"{(SITE / 'search.html').as_uri()}?q={quote(text)}")
    assert tab.locator("#search-results li a").first.inner_text().startswith("Error messages")
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_in_a_browser(browser, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    context.set_default_timeout(1000 * PATIENCE)
    tab = context.new_page()
    complaints = []
    tab.on(
        "console",
        lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None,
    )
    tab.on(
        "request", lambda request: complaints.append(request.url) if request.url.startswith("http") else None
    )
    tab.on("requestfailed", lambda request: complaints.append(request.url))
    for page in LOOKED_AT:
        tab.goto((SITE / f"{page}.html").as_uri())
        tab.wait_for_function("document.documentElement.dataset.theme")
        assert tab.evaluate("document.documentElement.dataset.theme") == scheme
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, page
        assert not complaints, page
    context.close()
