"""Open a table wherever it is: find its format, and copy a pipe to a temporary file."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa

from ordinalrisk.files.csv_dialect import BYTES_LOOKED_AT, is_utf_16
from ordinalrisk.files.excel import ExcelSource
from ordinalrisk.files.formats import (
    FileError,
    FormatOptions,
    compression_by_first_bytes,
    format_by_first_bytes,
    format_by_name,
    one_line,
)
from ordinalrisk.files.interrupting import temporary_folder
from ordinalrisk.files.places import BYTES_AT_THE_START, PIPE, StoredFile, located
from ordinalrisk.files.readers import (
    BYTES_AT_ONCE,
    ArrowSource,
    CsvSource,
    JsonLinesSource,
    ParquetSource,
    Source,
)

_AS_NOTHING_ELSE = FormatOptions()
_SURE = ("parquet", "arrow", "excel")  # known by their first bytes, whatever the name
_SOURCES: dict[str, type[Source]] = {
    source.format: source for source in (CsvSource, ParquetSource, ArrowSource, JsonLinesSource, ExcelSource)
}


@contextmanager
def opened(place: str | Path | StoredFile, written: FormatOptions = _AS_NOTHING_ELSE) -> Iterator[Source]:
    """Open the table at a place; ``-`` and other pipes are copied to a temporary file."""
    path, is_pipe = located(place), str(place) == PIPE
    if isinstance(path, StoredFile) or (not is_pipe and (path.is_file() or path.is_dir())):
        yield _as_said(source_at(path, written), written)
        return
    name = "standard input" if is_pipe else str(path)
    if is_pipe and sys.stdin is None:
        raise FileError(f"{name}: is closed.")
    with temporary_folder() as folder, ExitStack() as stack:
        copy = Path(folder) / "piped"
        stream = sys.stdin.buffer if is_pipe else stack.enter_context(open(path, "rb"))
        try:
            with open(copy, "wb") as file:
                shutil.copyfileobj(stream, file, BYTES_AT_ONCE)
        except OSError as error:
            raise FileError(
                f"{name}: can't be copied to {tempfile.gettempdir()} ({error.strerror})."
            ) from None
        yield _as_said(_source(copy, name, written), written)


def _as_said(source: Source, written: FormatOptions) -> Source:
    """Refuse options that have no meaning for the format of a file."""
    for option, formats in (("delimiter", ["csv"]), ("decimal", ["csv", "excel"]), ("sheet", ["excel"])):
        if getattr(written, option) is not None and source.format not in formats:
            raise ValueError(f"`{option}` has no meaning for {source.name}, a {source.kind}; leave it out.")
    return source


def source_at(place: str | Path | StoredFile, written: FormatOptions = _AS_NOTHING_ELSE) -> Source:
    """Open the table in a file, which can be read more than once."""
    path = located(place)
    return _source(path, str(path), written, format_by_name(path.name))


def _source(path: Path | StoredFile, name: str, written: FormatOptions, by_name: str | None = None) -> Source:
    if path.is_dir():
        raise FileError(f"{name}: is a folder; name a file in it.")
    try:
        with open(path, "rb") if isinstance(path, Path) else path.reading(BYTES_AT_THE_START) as file:
            compression = compression_by_first_bytes(file.read(4))
            file.seek(0)
            with pa.input_stream(pa.PythonFile(file, mode="r"), compression=compression) as stream:
                start = bytes(stream.read(BYTES_LOOKED_AT))
    except (OSError, pa.ArrowException) as error:
        raise FileError(f"{name}: can't be read ({one_line(error)}).") from None
    if not start:
        raise FileError(f"{name}: is empty.")
    by_bytes = format_by_first_bytes(start)
    file_format = written.format or (by_bytes if by_bytes in _SURE else by_name or by_bytes)
    if start.startswith((b"PK\x03\x04", b"\xfd7zXZ")) and file_format != "excel":
        raise FileError(f"{name}: is compressed in a way that is not read here; decompress it first.")
    if is_utf_16(start) and file_format != "csv":
        raise FileError(f"{name}: is text in UTF-16; export it again in UTF-8.")
    if start.lstrip().startswith(b"["):
        raise FileError(f"{name}: is a JSON array; write one object on each line, without commas between.")
    if compression and (file_format == "parquet" or start.startswith(b"ARROW1")):
        raise FileError(f"{name}: is compressed as a whole, and can't be read in parts; decompress it first.")
    return _SOURCES[file_format](path, name, compression, written, start)
