"""What the snippets of a page print: ``output`` blocks, each below the Python that prints it.

python -m docs.outputs README.md docs/guide/*.md        writes them again

Each page runs from top to bottom in one session.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path

from sybil import Document
from sybil.parsers.myst import CodeBlockParser, PythonCodeBlockParser


def with_outputs(page: Path) -> str:
    """Run a page; return its text with what is printed since the last block in each ``output`` block."""
    shown = CodeBlockParser("output", evaluator=lambda example: None)
    document = Document.parse(str(page), PythonCodeBlockParser(), shown)
    pieces, done, printed = [], 0, io.StringIO()
    for example in document.examples():
        block = document.text[example.start : example.end]
        if block.startswith("```output"):
            pieces += [document.text[done : example.start], f"```output\n{_trimmed(printed)}```"]
            done, printed = example.end, io.StringIO()
        else:
            with contextlib.redirect_stdout(printed):
                example.evaluate()
    return "".join([*pieces, document.text[done:]])


def _trimmed(printed: io.StringIO) -> str:
    return re.sub(r"(?m) +$", "", printed.getvalue())


if __name__ == "__main__":
    pages = [Path(name).resolve() for name in sys.argv[1:]]
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            text = with_outputs(page)
            os.chdir("/")
        page.write_text(text)
