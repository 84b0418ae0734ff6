"""Examples in docstrings may write files: each runs in an empty folder."""

import pytest


@pytest.fixture(autouse=True)
def _empty_folder(request, tmp_path_factory, monkeypatch):
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path_factory.mktemp("example"))
