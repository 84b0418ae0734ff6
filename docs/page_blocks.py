"""Pages with numbers that a script measures: blocks of text between marks, and a JSON file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def filled(page: str, texts: Mapping[str, str]) -> str:
    """The page with each block between its marks."""
    for name, text in texts.items():
        page, count = re.subn(
            rf"(<!-- {name} -->).*?(<!-- /{name} -->)",
            lambda mark, text=text: f"{mark[1]}\n\n{text}\n\n{mark[2]}",
            page,
            flags=re.DOTALL,
        )
        if count != 1:
            raise ValueError(
                f"The page must have one pair of marks <!-- {name} --> and <!-- /{name} -->; it has {count}."
            )
    return page


def table(lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; the second line has the alignments."""
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rounded(value: Any) -> Any:
    """Numbers to six digits, so that the file is read with ease."""
    if isinstance(value, Mapping):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def written(numbers: Mapping[str, Any]) -> str:
    """The numbers as JSON, lists of plain numbers in one line."""
    text = json.dumps(rounded(numbers), indent=1, ensure_ascii=False)
    return re.sub(r"\[[\d\s.,e-]*\]", lambda plain: " ".join(plain[0].split()), text) + "\n"
