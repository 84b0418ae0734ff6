"""Links of pages that are read in the repository lead to files; the site's are checked when it is built."""

import re
from urllib.parse import urlsplit

import pytest
from prose import PAGES, ROOT


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page):
    links = re.findall(
        r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    )
    local = [urlsplit(link).path for link in links if not urlsplit(link).scheme]
    assert not [path for path in local if path and not (page.parent / path).exists()]


def test_the_readme_has_links_and_pictures():
    assert re.search(r"\]\(docs/\S+\.md\)", (ROOT / "README.md").read_text())
    assert re.search(r"!\[[^\]]+\]\(docs/\S+\.png\)", (ROOT / "README.md").read_text())
