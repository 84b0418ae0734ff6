"""JSON lines, checked as bytes first: a long or deep line can take all memory or crash the process."""

from __future__ import annotations

from typing import Any

import numpy as np

from ordinalrisk.files.formats import FileError

LONGEST_LINE = 1 << 23
DEEPEST_NESTING = 64

_OPEN, _CLOSE, _QUOTE, _LINE_END = b"{[", b"}]", b'"', b"\n"
_OTHERS = bytes(set(range(256)).difference(_OPEN + _CLOSE + _QUOTE + _LINE_END))
_OTHERS_AND_QUOTE = _OTHERS + _QUOTE
_STEPS = np.array([(code in _OPEN) - (code in _CLOSE) for code in range(256)], np.int32)


class WholeLines:
    """The bytes of a stream, while each line closes all its brackets, within limits of length and depth."""

    def __init__(self, stream: Any, name: str) -> None:
        self._stream, self._name = stream, name
        self._depth = self._in_string = self._length = self._rows = 0
        self._escape, self._last = b"", _LINE_END[0]

    @property
    def closed(self) -> bool:
        return bool(self._stream.closed)

    def close(self) -> None:
        self._stream.close()

    def read(self, size: int) -> bytes:
        content: bytes = self._stream.read(size)
        first, last = content.find(_LINE_END) + 1, content.rfind(_LINE_END) + 1
        if self._length + (first or len(content)) > LONGEST_LINE + 1:
            raise self._error(self._rows + 1, f"is longer than {LONGEST_LINE:,} bytes; shorten it")
        self._length = len(content) - last if last else self._length + len(content)
        self._require_whole(content[:first])
        n_rows = self._count_flat(content[first:last])
        if n_rows is None:
            self._require_whole(content[first:last])
        self._rows += n_rows or 0
        self._require_whole(content[last:] if content else _LINE_END)
        return content

    @staticmethod
    def _count_flat(lines: bytes) -> int | None:
        """Return the number of lines if each has one pair of brackets and ends with it, as in most files.

        The last bracket could only be in a string that continues on the next line, which no parser accepts.
        """
        n_rows = lines.count(b"}\n")
        return n_rows if lines.translate(None, _OTHERS_AND_QUOTE) == b"{}\n" * n_rows else None

    def _require_whole(self, content: bytes) -> None:
        text = (self._escape + content).replace(rb"\\", b"")  # the rest of a run escapes the next character
        self._escape = text[-1:] if text.endswith(b"\\") else b""
        marks = np.frombuffer(text.replace(rb"\"", b"").translate(None, _OTHERS), np.uint8)
        if not len(marks):
            return
        ends = marks == _LINE_END[0]
        in_string = (self._in_string + np.cumsum(marks == _QUOTE[0], dtype=np.int32)) & 1
        depth = self._depth + np.cumsum(np.where(in_string, 0, _STEPS[marks]), dtype=np.int32)
        is_row = ends & (np.concatenate([[self._last], marks[:-1]]) != _LINE_END[0])
        wrong = (depth > DEEPEST_NESTING) | (depth < 0) | (ends & ((depth != 0) | (in_string != 0)))
        if wrong.any():
            at = int(wrong.argmax())
            problem = (
                "can't be read as JSON (brackets or quotes don't match); write one whole object on each line"
            )
            if depth[at] > DEEPEST_NESTING:
                problem = f"is nested more than {DEEPEST_NESTING} levels deep; flatten it"
            raise self._error(self._rows + int(is_row[:at].sum()) + 1, problem)
        self._depth, self._in_string, self._last = int(depth[-1]), int(in_string[-1]), int(marks[-1])
        self._rows += int(is_row.sum())

    def _error(self, row: int, problem: str) -> FileError:
        return FileError(f"{self._name}: row {row}: {problem}.")
