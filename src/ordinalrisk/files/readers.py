"""Tables of any size as Arrow record batches, a few rows at a time.

A file is opened by its name as often as it is needed, wherever it is stored; a pipe is copied to a temporary
file first. The types of text formats can't be trusted: columns requested as numbers are read as numbers, and
in CSV all others as text. No value is used before its batch is validated in full: the offsets, sizes and
dictionary indices in a file may be wrong, by accident or on purpose.
"""

from __future__ import annotations

import io
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from ordinalrisk.files.csv_dialect import dialect_of, plural_of
from ordinalrisk.files.formats import FileError, FormatOptions, one_line
from ordinalrisk.files.json_lines import LONGEST_LINE, WholeLines
from ordinalrisk.files.places import BYTES_AHEAD, StoredFile
from ordinalrisk.files.spelled_numbers import PLAIN, Spelling, SpellingsByColumn, agreed

ROWS_AT_ONCE = 131_072
BYTES_AT_ONCE = 1 << 23
BYTES_BUFFERED = 1 << 20  # of each column; else a whole row group is read at once
STORED_BYTES_BUFFERED = 1 << 22  # the same for stored files, where each request is slow


class Source(ABC):
    """A table in a file; ``name`` is its name in messages.

    In text formats, the types of the ``schema`` are those that the first rows suggest.
    """

    format: ClassVar[str]
    kind: ClassVar[str]
    types_are_guessed: ClassVar[bool] = False
    bytes_ahead: ClassVar[int] = BYTES_AHEAD
    n_rows: int | None = None  # if the format stores it

    def __init__(
        self,
        path: Path | StoredFile,
        name: str,
        compression: str | None,
        written: FormatOptions = FormatOptions(),  # noqa: B008 - it has no state
        start: bytes = b"",
    ) -> None:
        self.path, self.name, self.compression = path, name, compression
        self.written, self._start = written, start
        self._looks: SpellingsByColumn = {}  # of columns of text that may hold numbers
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
        """Yield the rows of some columns, in order; ``numbers`` are the columns to be read as numbers."""
        self._share = 0.0
        with self._explaining(columns=columns, numbers=numbers):
            for read in self._batches(list(columns), set(numbers)):
                _validate(read)
                batch = read.select(columns)
                self._share = self._share_read()
                for start in range(0, batch.num_rows, ROWS_AT_ONCE):
                    yield batch.slice(start, ROWS_AT_ONCE)

    def field_as_read(self, name: str) -> pa.Field:
        """Return the field of a column that is not asked for as numbers."""
        return self.schema.field(name)

    def spelling(self, columns: Collection[str]) -> Spelling:
        """Return how the numbers in columns of text are written."""
        return agreed(self._looks, columns, self.written.decimal, self.name) if self._looks else PLAIN

    def written_as(self, columns: Collection[str]) -> FormatOptions:
        """Return the options of this file, for other files that must be written alike."""
        return self.written

    def remarks(self, columns: Collection[str]) -> list[str]:
        """List what is unusual about the file, if its numbers are in these columns."""
        words = [] if self.written.decimal is not None else self.spelling(columns).in_words()
        return _read_with(self.name, words, "; if that is wrong, set `decimal`")

    def share_read(self, n_rows: int) -> float:
        """Return how much of the file has been read, given the rows that have come."""
        return self._share if self.n_rows is None else n_rows / max(self.n_rows, 1)

    def _share_read(self) -> float:
        """Return how much has been read; only the reading thread asks, as another one may close the file."""
        return 1.0 if self._read.closed else min(self._read.tell() / self._size, 1.0)

    @abstractmethod
    def _schema(self) -> pa.Schema: ...

    @abstractmethod
    def _batches(self, columns: list[str], numbers: set[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some columns, and maybe others, in batches of any length."""

    def _opened(self) -> Any:
        if isinstance(self.path, Path):
            self._read = pa.OSFile(str(self.path), "rb")
        else:
            self._read = pa.PythonFile(self.path.reading(self.bytes_ahead), mode="r")
        return pa.CompressedInputStream(self._read, self.compression) if self.compression else self._read

    def _explained(self, error: Exception, columns: Sequence[str], numbers: Collection[str]) -> str:
        """What an error of the reader means for this format."""
        return f"is not a whole {self.format.title()} file ({one_line(error)}); copy or export it again"

    @contextmanager
    def _explaining(self, columns: Sequence[str] = (), numbers: Collection[str] = ()) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError:
            raise FileError(f"{self.name}: has a column name that is not UTF-8; export it again.") from None
        except (pa.ArrowException, OSError, EOFError) as error:
            if isinstance(error, FileNotFoundError | PermissionError):
                raise FileError(f"{self.name}: can't be read ({error.strerror}).") from None
            raise FileError(f"{self.name}: {self._explained(error, columns, numbers)}.") from None


class ParquetSource(Source):
    """Row groups, a batch at a time."""

    format, kind = "parquet", "Parquet file"
    bytes_ahead = 0  # columns are stored apart, so reading ahead is useless

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


class ArrowSource(Source):
    """Arrow IPC, as a file or as a stream."""

    format, kind = "arrow", "Arrow file"
    _counted: float | None = None

    def _share_read(self) -> float:
        """Count the batches of a file, because they may be read in another order than stored."""
        return super()._share_read() if self._counted is None else self._counted

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
                yield batch  # with all columns: a damaged file is refused as a whole

    def _reader(self) -> Any:
        opened = self._opened()
        if not self.compression and opened.read(6) == b"ARROW1":
            return pa.ipc.open_file(opened)
        if not self.compression:
            opened.seek(0)
        return pa.ipc.open_stream(opened)


class CsvSource(Source):
    """Values under a header, separated by commas or as the first bytes show."""

    format, kind = "csv", "CSV file"
    types_are_guessed = True

    def _schema(self) -> pa.Schema:
        from pyarrow import csv

        written = self.written
        self._dialect = dialect_of(self._start, self.name, written.delimiter, written.decimal)
        read = csv.ReadOptions(block_size=LONGEST_LINE, skip_rows=self._dialect.lines_before)
        with csv.open_csv(self._decoded(), read, self._parsing()) as reader:
            schema: pa.Schema = reader.schema
        looks = {int(at): look for at, look in self._dialect.looks.items()}
        self._looks = {schema.names[at]: look for at, look in looks.items() if at < len(schema)}
        return pa.schema(
            [
                field.with_type(pa.float64()) if i in looks and pa.types.is_string(field.type) else field
                for i, field in enumerate(schema)
            ]
        )

    def written_as(self, columns: Collection[str]) -> FormatOptions:
        decimal = self.spelling(columns).decimal
        return self.written._replace(delimiter=self._dialect.delimiter, decimal=decimal)

    def remarks(self, columns: Collection[str]) -> list[str]:
        written, spelled = self.written, self.spelling(columns).in_words()
        words = [] if written.delimiter is not None else self._dialect.in_words()
        words += [each for each in spelled if written.decimal is None or "decimal" not in each]
        return _read_with(self.name, words, "; if that is wrong, set `delimiter` or `decimal`")

    def _parsing(self) -> Any:
        from pyarrow import csv

        return csv.ParseOptions(newlines_in_values=True, delimiter=self._dialect.delimiter)

    def _decoded(self) -> Any:
        """Return the bytes of the file as UTF-8."""
        encoding = self._dialect.encoding
        return (
            self._opened()
            if encoding is None
            else pa.transcoding_input_stream(self._opened(), encoding, "utf-8")
        )

    def field_as_read(self, name: str) -> pa.Field:
        """Return a text field, so that values that pass through stay unchanged."""
        return pa.field(name, pa.string())

    def _batches(
        self, columns: list[str], numbers: set[str], threads: bool = True
    ) -> Iterator[pa.RecordBatch]:
        from pyarrow import csv

        spelling = self.spelling(numbers)
        direct = not (spelling.grouped or spelling.percent)  # Arrow reads decimal commas, but no others
        types = {column: pa.float64() if direct and column in numbers else pa.string() for column in columns}
        options = {
            "read_options": csv.ReadOptions(
                block_size=BYTES_AT_ONCE, use_threads=threads, skip_rows=self._dialect.lines_before
            ),
            "parse_options": self._parsing(),
            "convert_options": csv.ConvertOptions(
                column_types=types, include_columns=columns, decimal_point=spelling.decimal
            ),
        }
        n_rows = 0
        with csv.open_csv(self._decoded(), **options) as reader:
            for batch in reader:
                yield batch if direct else text_as_numbers(batch, numbers, spelling, self.name, n_rows)
                n_rows += batch.num_rows

    def _explained(self, error: Exception, columns: Sequence[str], numbers: Collection[str]) -> str:
        if "Empty CSV" in str(error):
            with self._opened() as file:
                if bytes(file.read(LONGEST_LINE)).strip():
                    return f"has a header longer than {LONGEST_LINE:,} bytes; shorten it"
            return "is empty; a header and rows are needed"
        text = self._with_row(columns, numbers) or one_line(error)
        if "straddl" in text:
            return f"has a row longer than {LONGEST_LINE:,} bytes, or a quote that is not closed; correct it"
        if not (parts := re.search(r"(?:column #(\d+): )?Row #(\d+): (.*)", text)):
            return f"can't be read as CSV ({text}); correct it, or export it again in UTF-8"
        column, row, problem = parts.groups()
        place = f"row {int(row) - 1 - self._dialect.lines_before}"  # the header is row 1 to the reader
        if column is not None:
            place += f", column {self.schema.names[int(column)]!r}"
        if value := re.search(r"conversion error to double: invalid value '(.*)'", problem):
            return not_a_number(place, value[1]).rstrip(".")
        if count := re.search(r"Expected (\d+) columns, got (\d+)", problem):
            expected, got = count.groups()
            return (
                f"{place}: has {got} values under {expected} column names; correct it, and check that "
                f"{plural_of(self._dialect.delimiter)} separate the values"
            )
        return f"{place}: {problem}; correct it, or export the file again in UTF-8, in Excel as 'CSV UTF-8'"

    def _with_row(self, columns: Sequence[str], numbers: Collection[str]) -> str | None:
        """Read again with a single thread, whose error has the row."""
        try:
            for _ in self._batches(list(columns), set(numbers), threads=False):
                pass
        except (pa.ArrowException, OSError) as error:
            return one_line(error)
        return None


class JsonLinesSource(Source):
    """A JSON object on each line."""

    format, kind = "jsonl", "file of JSON lines"
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
        if parts := re.search(r"(?:(.*?)\.? in row|.*(Invalid UTF8) sequence at string index) (\d+)", text):
            problem, row = parts[1] or parts[2], self._rows_before + int(parts[3]) + 1
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
                "columns with `keep`"
            )
        if place := self._first_not_whole(columns):
            row, column, value = place
            return (
                f"row {row}, column {column!r}: is {value}, where whole numbers stand above; write all alike"
            )
        return f"can't be read as JSON lines ({text}); each line must be one whole object"

    def _first_not_whole(self, columns: Sequence[str]) -> tuple[int, str, Any] | None:
        """Find the first number with a point in a column of whole numbers, as the reader does not name it."""
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
    """Refuse offsets, sizes, indices, text and nulls that no valid file has."""
    batch.validate(full=True)
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if not field.nullable and column.null_count:
            raise pa.ArrowInvalid(f"column {field.name!r} has nulls, which its type excludes")


def _read_with(name: str, words: list[str], remedy: str) -> list[str]:
    if not words:
        return []
    *some, last = words
    return [f"{name} has {', '.join(some)} and {last}{remedy}." if some else f"{name} has {last}{remedy}."]


def text_as_numbers(
    batch: pa.RecordBatch, columns: Collection[str], spelling: Spelling, name: str, n_before: int
) -> pa.RecordBatch:
    """Convert columns of text to numbers."""
    for at, column in enumerate(batch.schema.names):
        if column in columns and not pa.types.is_floating(batch.schema.field(at).type):
            numbers, wrong = spelling.plain(batch.column(at))
            if wrong is not None:
                value = batch.column(at)[wrong].as_py()
                raise FileError(not_a_number(f"{name}: row {n_before + wrong + 1}, column {column!r}", value))
            batch = batch.set_column(at, pa.field(column, pa.float64()), numbers.cast(pa.float64()))
    return batch


def not_a_number(place: str, value: str) -> str:
    """Say that a value is not a number, and what helps if it may be one in another spelling."""
    spelled = re.search("[0-9],[0-9]", value)
    remedy = (
        "correct it, change `scores`, or set the decimal sign with `decimal`"
        if spelled
        else "correct it, or change `scores`"
    )
    return f"{place}: {value!r} is not a number; {remedy}."


def _as_written(kind: pa.DataType) -> pa.DataType:
    """Replace times by text: the reader recognizes them, but they would be written in another way."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_as_written(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_as_written(field.type)) for field in kind])
    return kind
