"""Tables of any size as Arrow record batches, a few rows at a time.

A file is opened by its name as often as it is needed, wherever it is stored; a pipe is copied to a temporary
file first. Text
formats carry no types worth trusting: columns that are asked for as numbers are read as such, and in CSV all
others as the text they are. No value is used before its batch is validated in full: the offsets, sizes and
dictionary indices in a file may be wrong, by accident or on purpose.
"""

from __future__ import annotations

import io
import re
import shutil
import sys
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from math import inf
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from ordinalrisk.files.formats import (
    PIPE,
    FileError,
    compression_by_first_bytes,
    format_by_first_bytes,
    format_by_name,
    one_line,
)
from ordinalrisk.files.interrupting import temporary_folder
from ordinalrisk.files.json_lines import LONGEST_LINE, WholeLines
from ordinalrisk.files.places import BYTES_AHEAD, BYTES_AT_THE_START, StoredFile, located

ROWS_AT_ONCE = 131_072
BYTES_AT_ONCE = 1 << 23
BYTES_BUFFERED = 1 << 20  # of each column: without, a whole row group is read at once
STORED_BYTES_BUFFERED = 1 << 22  # the same where each piece is a request, which takes its time


class Source(ABC):
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
    bytes_ahead: ClassVar[int] = BYTES_AHEAD
    n_rows: int | None = None

    def __init__(self, path: Path | StoredFile, name: str, compression: str | None) -> None:
        self.path, self.name, self.compression = path, name, compression
        size = path.stat().st_size if isinstance(path, Path) else path.size()
        self._size = inf if size is None else max(size, 1)
        self._read: Any = None
        self._share = 0.0
        with self._explaining():
            self.schema: pa.Schema = self._schema()
            repeated = [column for column, times in Counter(self.schema.names).items() if times > 1]
        if repeated:
            raise FileError(f"{name}: column {repeated[0]!r} is there more than once; rename one.")

    def batches(self, columns: Sequence[str], numbers: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in order; ``numbers`` are the columns to be read as numbers."""
        self._share = 0.0
        with self._explaining(columns=columns, numbers=numbers):
            for read in self._batches(list(columns), set(numbers)):
                _validate(read)
                batch = read.select(columns)
                self._share = self._share_behind()
                for start in range(0, batch.num_rows, ROWS_AT_ONCE):
                    yield batch.slice(start, ROWS_AT_ONCE)

    def field_as_read(self, name: str) -> pa.Field:
        """The field of a column that is not asked for as numbers."""
        return self.schema.field(name)

    def share_read(self, n_rows: int) -> float:
        """How much of the file lies behind, given the rows that have come."""
        return self._share if self.n_rows is None else n_rows / max(self.n_rows, 1)

    def _share_behind(self) -> float:
        """How much of the file lies behind; asked by the thread that reads it, lest another closes it."""
        return 1.0 if self._read.closed else min(self._read.tell() / self._size, 1.0)

    @abstractmethod
    def _schema(self) -> pa.Schema:
        """The columns of the file."""

    @abstractmethod
    def _batches(self, columns: list[str], numbers: set[str]) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, and maybe others, in batches of any length."""

    def _opened(self) -> Any:
        if isinstance(self.path, Path):
            self._read = pa.OSFile(str(self.path), "rb")
        else:
            self._read = pa.PythonFile(self.path.reading(self.bytes_ahead), mode="r")
        return pa.CompressedInputStream(self._read, self.compression) if self.compression else self._read

    @abstractmethod
    def _explained(self, error: Exception, columns: Sequence[str], numbers: Collection[str]) -> str:
        """What an error of the reader means for this format."""

    @contextmanager
    def _explaining(self, columns: Sequence[str] = (), numbers: Collection[str] = ()) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError:
            raise FileError(f"{self.name}: has a column name that is not UTF-8; export it anew.") from None
        except (pa.ArrowException, OSError, EOFError) as error:
            if isinstance(error, FileNotFoundError | PermissionError):
                raise FileError(f"{self.name}: can't be read ({error.strerror}).") from None
            raise FileError(f"{self.name}: {self._explained(error, columns, numbers)}.") from None


class ParquetSource(Source):
    """Row groups, a batch at a time."""

    format = "parquet"
    bytes_ahead = 0  # columns lie apart, and what follows a piece of one is not what is read next

    def _schema(self) -> pa.Schema:
        with self._file() as file:
            self.n_rows = file.metadata.num_rows
            return file.schema_arrow

    def _batches(self, columns: list[str], numbers: set[str]) -> Iterator[pa.RecordBatch]:
        with self._file() as file:
            yield from file.iter_batches(ROWS_AT_ONCE, columns=columns)

    def _file(self) -> Any:
        from pyarrow import parquet

        buffered = BYTES_BUFFERED if isinstance(self.path, Path) else STORED_BYTES_BUFFERED
        return parquet.ParquetFile(
            self._opened(), pre_buffer=False, buffer_size=buffered, page_checksum_verification=True
        )

    def _explained(self, error: Exception, columns: Sequence[str], numbers: Collection[str]) -> str:
        return f"is not a whole Parquet file ({one_line(error)}); copy or export it again"


class ArrowSource(Source):
    """Arrow IPC, as a file or as a stream."""

    format = "arrow"
    _counted: float | None = None

    def _share_behind(self) -> float:
        """A file's batches are read wherever they lie, so they are counted."""
        return super()._share_behind() if self._counted is None else self._counted

    def _schema(self) -> pa.Schema:
        with self._reader() as reader:
            schema: pa.Schema = reader.schema
            return schema

    def _batches(self, columns: list[str], numbers: set[str]) -> Iterator[pa.RecordBatch]:
        with self._reader() as reader:
            n_batches = getattr(reader, "num_record_batches", None)  # of a file; a stream does not know
            batches = reader if n_batches is None else map(reader.get_batch, range(n_batches))
            for i, batch in enumerate(batches):
                self._counted = n_batches and (i + 1) / n_batches
                yield batch  # with columns that nobody asked for: a damaged file is refused as a whole

    def _reader(self) -> Any:
        opened = self._opened()
        if not self.compression and opened.read(6) == b"ARROW1":
            return pa.ipc.open_file(opened)
        if not self.compression:
            opened.seek(0)
        return pa.ipc.open_stream(opened)

    def _explained(self, error: Exception, columns: Sequence[str], numbers: Collection[str]) -> str:
        return f"is not a whole Arrow file ({one_line(error)}); copy or export it again"


class CsvSource(Source):
    """Comma-separated values under a header."""

    format = "csv"
    types_are_guessed = True

    def _schema(self) -> pa.Schema:
        from pyarrow import csv

        read, parse = csv.ReadOptions(block_size=LONGEST_LINE), csv.ParseOptions(newlines_in_values=True)
        with csv.open_csv(self._opened(), read, parse) as reader:
            schema: pa.Schema = reader.schema
        if len(schema) == 1 and (found := re.search("[;\t|]", schema.names[0])):
            raise FileError(f"{self.name}: {found[0]!r} seems to separate the values; commas must.")
        return schema

    def field_as_read(self, name: str) -> pa.Field:
        """Text, whatever it looks like: nothing that passes through is changed."""
        return pa.field(name, pa.string())

    def _batches(
        self, columns: list[str], numbers: set[str], threads: bool = True
    ) -> Iterator[pa.RecordBatch]:
        from pyarrow import csv

        types = {column: pa.float64() if column in numbers else pa.string() for column in columns}
        options = {
            "read_options": csv.ReadOptions(block_size=BYTES_AT_ONCE, use_threads=threads),
            "parse_options": csv.ParseOptions(newlines_in_values=True),
            "convert_options": csv.ConvertOptions(column_types=types, include_columns=columns),
        }
        with csv.open_csv(self._opened(), **options) as reader:
            yield from reader

    def _explained(self, error: Exception, columns: Sequence[str], numbers: Collection[str]) -> str:
        if "Empty CSV" in str(error):
            with self._opened() as file:
                if bytes(file.read(LONGEST_LINE)).strip():
                    return f"has a header longer than {LONGEST_LINE:,} bytes; shorten it"
            return "is empty; a header and rows are needed"
        text = self._with_row(columns, numbers) or one_line(error)
        if "straddl" in text:
            return f"has a row longer than {LONGEST_LINE:,} bytes, or a quote that is not closed; correct it"
        if not (found := re.search(r"(?:column #(\d+): )?Row #(\d+): (.*)", text)):
            return f"can't be read as CSV ({text}); correct it, or export it again in UTF-8"
        column, row, problem = found.groups()
        place = f"row {int(row) - 1}"  # the header is row 1 to the reader
        if column is not None:
            place += f", column {self.schema.names[int(column)]!r}"
        if value := re.search(r"conversion error to double: invalid value '(.*)'", problem):
            return f"{place}: {value[1]!r} is not a number; correct it, or change --scores"
        if count := re.search(r"Expected (\d+) columns, got (\d+)", problem):
            expected, got = count.groups()
            return (
                f"{place}: has {got} values under {expected} column names; correct it, and check that commas "
                "separate the values"
            )
        return f"{place}: {problem}; correct it, or export the file again in UTF-8"

    def _with_row(self, columns: Sequence[str], numbers: Collection[str]) -> str | None:
        """The error once more, by a single thread: that one knows the row."""
        try:
            for _ in self._batches(list(columns), set(numbers), threads=False):
                pass
        except (pa.ArrowException, OSError) as error:
            return one_line(error)
        return None


class JsonLinesSource(Source):
    """A JSON object on each line."""

    format = "jsonl"
    types_are_guessed = True

    def _schema(self) -> pa.Schema:
        from pyarrow import json

        self._rows_before = 0
        with json.open_json(self._opened(), json.ReadOptions(block_size=LONGEST_LINE)) as reader:
            return pa.schema([field.with_type(_as_written(field.type)) for field in reader.schema])

    def _batches(self, columns: list[str], numbers: set[str]) -> Iterator[pa.RecordBatch]:
        from pyarrow import json

        typed = [field.with_type(pa.float64()) if field.name in numbers else field for field in self.schema]
        wanted = set(columns)
        schema = pa.schema([field for field in typed if field.name in wanted])
        all_wanted = len(schema) == len(self.schema)  # then a column that comes later is wanted too
        parse = json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="error" if all_wanted else "ignore"
        )
        read = json.ReadOptions(block_size=BYTES_AT_ONCE)
        self._rows_before = 0
        with json.open_json(self._opened(), read_options=read, parse_options=parse) as reader:
            for batch in reader:
                yield batch
                self._rows_before += batch.num_rows

    def _opened(self) -> Any:
        return pa.PythonFile(WholeLines(super()._opened(), self.name), mode="r")

    def _explained(self, error: Exception, columns: Sequence[str], numbers: Collection[str]) -> str:
        text = one_line(error)
        if "Empty JSON" in text:
            return "is empty; an object on each line is needed"
        if found := re.search(r"(?:(.*?)\.? in row|.*(Invalid UTF8) sequence at string index) (\d+)", text):
            problem, row = found[1] or found[2], self._rows_before + int(found[3]) + 1
            if changed := re.search(r"Column\(/(.*)\) changed from (\w+) to (\w+)", problem):
                column, before, after = changed.groups()
                return (
                    f"row {row}, column {column!r}: is of type {after}, where {before} was expected; correct "
                    "it, or leave the column out"
                )
            return f"row {row}: can't be read as JSON ({problem}); each line must be one whole object"
        if "unexpected field" in text:
            return (
                f"has a column that the first rows lack ({text}); give all rows all columns, or choose "
                "columns with --keep"
            )
        if place := self._first_not_whole(columns):
            row, column, value = place
            return (
                f"row {row}, column {column!r}: is {value}, where whole numbers stand above; write all alike"
            )
        return f"can't be read as JSON lines ({text}); each line must be one whole object"

    def _first_not_whole(self, columns: Sequence[str]) -> tuple[int, str, Any] | None:
        """The first number with a point in a column of whole numbers, which the reader does not place."""
        import json

        whole = [name for name in columns if pa.types.is_integer(self.schema.field(name).type)]
        with self._opened() as stream, suppress(ValueError, TypeError):  # of another kind of line
            for row, line in enumerate(io.TextIOWrapper(stream, "utf-8"), 1):
                values = dict(json.loads(line))
                for name in whole:
                    if isinstance(values.get(name), float):
                        return row, name, values[name]
        return None


def _validate(batch: pa.RecordBatch) -> None:
    """Refuse offsets, sizes, indices, text and nulls that no right file has."""
    batch.validate(full=True)
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if not field.nullable and column.null_count:
            raise pa.ArrowInvalid(f"column {field.name!r} has nulls, which its type excludes")


def _as_written(kind: pa.DataType) -> pa.DataType:
    """Text where the reader takes it for a time, which it would write in another way."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_as_written(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_as_written(field.type)) for field in kind])
    return kind


_SOURCES: dict[str, type[Source]] = {
    source.format: source for source in (CsvSource, ParquetSource, ArrowSource, JsonLinesSource)
}


@contextmanager
def opened(place: str | Path | StoredFile, given_format: str | None = None) -> Iterator[Source]:
    """The table in the file at a place, or in standard input if that is ``-``."""
    path = located(place)
    if isinstance(path, StoredFile) or (path != PIPE and (path.is_file() or path.is_dir())):
        yield _source(path, str(path), given_format, format_by_name(path.name))
        return
    name = "standard input" if path == PIPE else str(path)
    if path == PIPE and sys.stdin is None:
        raise FileError(f"{name}: is closed.")
    with temporary_folder() as folder, ExitStack() as stack:
        copy = Path(folder) / "piped"
        stream = sys.stdin.buffer if path == PIPE else stack.enter_context(open(path, "rb"))
        try:
            with open(copy, "wb") as file:
                shutil.copyfileobj(stream, file, BYTES_AT_ONCE)
        except OSError as error:
            raise FileError(
                f"{name}: can't be copied to {tempfile.gettempdir()} ({error.strerror})."
            ) from None
        yield _source(copy, name, given_format)


def _source(
    path: Path | StoredFile, name: str, given_format: str | None, by_name: str | None = None
) -> Source:
    if path.is_dir():
        raise FileError(f"{name}: is a folder; name a file in it.")
    try:
        with open(path, "rb") if isinstance(path, Path) else path.reading(BYTES_AT_THE_START) as file:
            compression = compression_by_first_bytes(file.read(4))
            file.seek(0)
            with pa.input_stream(pa.PythonFile(file, mode="r"), compression=compression) as stream:
                start = bytes(stream.read(16))
    except (OSError, pa.ArrowException) as error:
        raise FileError(f"{name}: can't be read ({one_line(error)}).") from None
    if not start:
        raise FileError(f"{name}: is empty.")
    if start.startswith((b"PK\x03\x04", b"\xfd7zXZ")):
        raise FileError(f"{name}: is compressed in a way that is not read here; decompress it first.")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileError(f"{name}: is text in UTF-16; export it again in UTF-8.")
    if start.lstrip().startswith(b"["):
        raise FileError(f"{name}: is a JSON array; write one object on each line, without commas between.")
    by_bytes = format_by_first_bytes(start)
    file_format = given_format or (by_bytes if by_bytes in ("parquet", "arrow") else by_name or by_bytes)
    if compression and (file_format == "parquet" or start.startswith(b"ARROW1")):
        raise FileError(f"{name}: is compressed as a whole, and can't be read in parts; decompress it first.")
    return _SOURCES[file_format](path, name, compression)
