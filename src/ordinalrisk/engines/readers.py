"""Tables of any size as Arrow record batches, a few rows at a time.

A file is opened by its name as often as it is needed; a pipe is copied to a temporary file first. Text
formats carry no types worth trusting: columns that are asked for as numbers are read as such, and in CSV all
others as the text they are.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from ordinalrisk.engines.formats import (
    PIPE,
    FileError,
    compression_of,
    format_by_first_bytes,
    format_by_name,
    one_line,
)

ROWS_AT_ONCE = 131_072
BYTES_AT_ONCE = 1 << 23


class Source:
    """A table in a file.

    Attributes
    ----------
    name : str
        What messages call it.
    schema : pyarrow.Schema
        Its columns; in text formats with the types that the first rows suggest.
    n_rows : int or None
        How many rows it has, if the format tells.
    """

    format: ClassVar[str]
    types_are_guessed: ClassVar[bool] = False
    n_rows: int | None = None

    def __init__(self, path: Path, name: str, compression: str | None) -> None:
        self.path, self.name, self.compression = path, name, compression
        self._size = max(path.stat().st_size, 1)
        self._read: Any = None
        with self._explaining():
            self.schema: pa.Schema = self._schema()
        repeated = [column for column in self.schema.names if self.schema.names.count(column) > 1]
        if repeated:
            raise FileError(f"{name}: column {repeated[0]!r} is there more than once; rename one.")

    def batches(self, columns: Sequence[str], numbers: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in order; ``numbers`` are the columns to be read as numbers."""
        with self._explaining(columns=columns, numbers=numbers):
            for batch in self._batches(list(columns), set(numbers)):
                for start in range(0, batch.num_rows, ROWS_AT_ONCE):
                    yield batch.slice(start, ROWS_AT_ONCE)

    def field_as_read(self, name: str) -> pa.Field:
        """The field of a column that is not asked for as numbers."""
        return self.schema.field(name)

    def share_read(self, n_rows: int) -> float:
        """How much of the file lies behind, given the rows that have come."""
        if self.n_rows is not None:
            return n_rows / max(self.n_rows, 1)
        return 0.0 if self._read is None or self._read.closed else min(self._read.tell() / self._size, 1.0)

    def _schema(self) -> pa.Schema:
        raise NotImplementedError

    def _batches(self, columns: list[str], numbers: set[str]) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError

    def _opened(self) -> Any:
        self._read = pa.OSFile(str(self.path), "rb")
        return pa.CompressedInputStream(self._read, self.compression) if self.compression else self._read

    def _explained(self, error: Exception, numbers: Collection[str]) -> str:
        """What an error of the reader means for this format."""
        return f"can't be read as {self.format} ({one_line(error)}); make it anew, or name its format"

    @contextmanager
    def _explaining(self, columns: Sequence[str] = (), numbers: Collection[str] = ()) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, EOFError) as error:
            if isinstance(error, FileNotFoundError | PermissionError):
                raise FileError(f"{self.name}: can't be read ({error.strerror}).") from None
            raise FileError(f"{self.name}: {self._explained(error, numbers)}.") from None


class ParquetSource(Source):
    """Row groups, a batch at a time."""

    format = "parquet"

    def _schema(self) -> pa.Schema:
        with self._file() as file:
            self.n_rows = file.metadata.num_rows
            return file.schema_arrow

    def _batches(self, columns: list[str], numbers: set[str]) -> Iterator[pa.RecordBatch]:
        with self._file() as file:
            yield from file.iter_batches(ROWS_AT_ONCE, columns=columns)

    def _file(self) -> Any:
        from pyarrow import parquet

        return parquet.ParquetFile(self._opened(), pre_buffer=False)

    def _explained(self, error: Exception, numbers: Collection[str]) -> str:
        return f"is not a whole Parquet file ({one_line(error)}); copy or export it again"


class ArrowSource(Source):
    """Arrow IPC, as a file or as a stream."""

    format = "arrow"

    def _schema(self) -> pa.Schema:
        with self._reader(None) as reader:
            schema: pa.Schema = reader.schema
            return schema

    def _batches(self, columns: list[str], numbers: set[str]) -> Iterator[pa.RecordBatch]:
        wanted = sorted(self.schema.get_field_index(column) for column in columns)
        with self._reader(pa.ipc.IpcReadOptions(included_fields=wanted)) as reader:
            if hasattr(reader, "get_batch"):
                read: Iterator[Any] = (reader.get_batch(i) for i in range(reader.num_record_batches))
            else:
                read = iter(reader)
            for batch in read:
                yield batch.select(columns)

    def _reader(self, options: Any) -> Any:
        opened = self._opened()
        if not self.compression and opened.read(6) == b"ARROW1":
            return pa.ipc.open_file(opened, options=options)
        if not self.compression:
            opened.seek(0)
        return pa.ipc.open_stream(opened, options=options)

    def _explained(self, error: Exception, numbers: Collection[str]) -> str:
        return f"is not a whole Arrow file ({one_line(error)}); copy or export it again"


class CsvSource(Source):
    """Comma-separated values under a header."""

    format = "csv"
    types_are_guessed = True

    def _schema(self) -> pa.Schema:
        from pyarrow import csv

        with csv.open_csv(self._opened()) as reader:
            return reader.schema

    def field_as_read(self, name: str) -> pa.Field:
        """Text, whatever it looks like: nothing that passes through is changed."""
        return pa.field(name, pa.string())

    def _batches(self, columns: list[str], numbers: set[str]) -> Iterator[pa.RecordBatch]:
        from pyarrow import csv

        types = {column: pa.float64() if column in numbers else pa.string() for column in columns}
        convert = csv.ConvertOptions(column_types=types, include_columns=columns)
        read = csv.ReadOptions(block_size=BYTES_AT_ONCE)
        with csv.open_csv(self._opened(), read_options=read, convert_options=convert) as reader:
            yield from reader

    def _explained(self, error: Exception, numbers: Collection[str]) -> str:
        text = one_line(error)
        if "Empty CSV" in text:
            return "is empty; a header and rows are needed"
        if "conversion error to double" in text and (place := self._first_text(numbers)):
            row, column, value = place
            return f"row {row}, column {column!r}: {value!r} is not a number; correct it, or change --scores"
        if found := re.search(r"Expected (\d+) columns, got (\d+): (.*)", text):
            expected, got, line = found.groups()
            return (
                f"a row has {got} values under {expected} column names ({line[:60]}); "
                "correct it, and check that commas separate the values"
            )
        return f"can't be read as CSV ({text}); correct it, or export it again in UTF-8"

    def _first_text(self, numbers: Collection[str]) -> tuple[int, str, str] | None:
        """The first row with a score that is not a number: its number, from 1, the column and the value."""
        from pyarrow import compute

        before = 0
        for batch in self._batches(sorted(numbers, key=self.schema.names.index), set()):
            places = []
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                for i, value in enumerate(compute.utf8_trim_whitespace(column).to_pylist()):
                    if not _is_number(value):
                        places.append((before + i + 1, name, value))
                        break
            if places:
                return min(places, key=lambda place: place[0])
            before += batch.num_rows
        return None


class JsonLinesSource(Source):
    """A JSON object on each line."""

    format = "jsonl"
    types_are_guessed = True

    def _schema(self) -> pa.Schema:
        from pyarrow import json

        with json.open_json(self._opened()) as reader:
            return reader.schema

    def _batches(self, columns: list[str], numbers: set[str]) -> Iterator[pa.RecordBatch]:
        from pyarrow import json

        typed = [field.with_type(pa.float64()) if field.name in numbers else field for field in self.schema]
        schema = pa.schema([field for field in typed if field.name in columns])
        parse = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        read = json.ReadOptions(block_size=BYTES_AT_ONCE)
        self._rows_before = 0
        with json.open_json(self._opened(), read_options=read, parse_options=parse) as reader:
            for batch in reader:
                yield batch.select(columns)
                self._rows_before += batch.num_rows

    def _explained(self, error: Exception, numbers: Collection[str]) -> str:
        text = one_line(error)
        if "Empty JSON" in text:
            return "is empty; an object on each line is needed"
        if found := re.search(r"Column\(/(.*)\) changed from (\w+) to (\w+) in row (\d+)", text):
            column, before, after, row = found.groups()
            place = f"row {int(row) + 1 + getattr(self, '_rows_before', 0)}, column {column!r}"
            return f"{place}: is a {after}, where a {before} was expected; correct it"
        return f"can't be read as JSON lines ({text}); each line must be one whole object"


_SOURCES: dict[str, type[Source]] = {
    source.format: source for source in (CsvSource, ParquetSource, ArrowSource, JsonLinesSource)
}


@contextmanager
def opened(path: Path, given_format: str | None = None) -> Iterator[Source]:
    """The table in the file ``path``, or in standard input if that is ``-``."""
    if path != PIPE:
        yield _source(path, str(path), given_format or format_by_name(path), compression_of(path))
        return
    with tempfile.TemporaryDirectory(prefix="ordinalrisk-") as folder:
        copy = Path(folder) / "piped"
        with open(copy, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, BYTES_AT_ONCE)
        yield _source(copy, "standard input", given_format, None)


def _source(path: Path, name: str, given_format: str | None, compression: str | None) -> Source:
    if path.is_dir():
        raise FileError(f"{name}: is a folder; name a file in it.")
    try:
        with pa.input_stream(str(path), compression=compression) as stream:
            start = bytes(stream.read(16))
    except (OSError, pa.ArrowException) as error:
        raise FileError(f"{name}: can't be read ({one_line(error)}).") from None
    if not start:
        raise FileError(f"{name}: is empty.")
    return _SOURCES[given_format or format_by_first_bytes(start)](path, name, compression)


def _is_number(text: str) -> bool:
    if text in ("", "NA", "N/A", "NULL", "null", "#N/A", "n/a"):  # missing values, which are found later
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True
