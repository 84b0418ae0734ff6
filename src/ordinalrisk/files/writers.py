"""Write record batches to files, whole or not at all, and to pipes."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from math import isfinite
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import compute

from ordinalrisk.files.atomic import replacing
from ordinalrisk.files.formats import FileError, compression_of, format_to_write, one_line
from ordinalrisk.files.interrupting import undone_if_interrupted
from ordinalrisk.files.places import PIPE, StoredBytes, StoredFile, located

ROWS_IN_A_GROUP = 1_048_576
BYTES_IN_A_GROUP = 1 << 27
ROWS_ENCODED_AT_ONCE = 1 << 16


class Writer(Protocol):
    """Takes record batches of one schema."""

    def write(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> None: ...


@contextmanager
def writing(
    place: str | Path | StoredFile,
    schema: pa.Schema,
    given_format: str | None = None,
    labels: Collection[str] = (),
    safe_csv: bool = False,
) -> Iterator[Writer]:
    """Open a writer of the file at a place, or of standard output if that is ``-``, by default as CSV.

    In Parquet, ``labels`` are columns without statistics. For ``safe_csv`` see :class:`CsvWriter`.
    """
    path, to_pipe = located(place), str(place) == PIPE
    name = "csv" if to_pipe and given_format is None else format_to_write(path.name, given_format, path)
    stored: StoredBytes | None = None
    with ExitStack() as stack:
        if to_pipe and sys.stdout is None:
            raise FileError("standard output: is closed.")
        if to_pipe:
            pipe = _Pipe()
            sink: Any = pa.PythonFile(pipe, mode="w")
        else:
            temporary = stack.enter_context(replacing(path))
            if isinstance(temporary, StoredFile):
                stored = temporary.writing()
                stack.enter_context(undone_if_interrupted(stored.abandon))
                sink = stack.enter_context(pa.PythonFile(stored, mode="w"))
            else:
                sink = stack.enter_context(pa.OSFile(str(temporary), "wb"))
            if compression := compression_of(path.name):
                sink = stack.enter_context(pa.CompressedOutputStream(sink, compression))
        try:
            writer: Writer
            if name == "parquet":
                writer = ParquetWriter(sink, schema, labels)
            elif name == "arrow":
                writer = (pa.ipc.new_stream if to_pipe else pa.ipc.new_file)(sink, schema)
            elif name == "csv":
                writer = CsvWriter(sink, schema, safe_csv)
            else:
                writer = JsonLinesWriter(sink)
            try:
                yield writer
            except BaseException:
                if to_pipe:
                    pipe.is_shut = True
                if stored is not None:
                    stored.abandon()
                with suppress(Exception):
                    writer.close()
                raise
            writer.close()
        except pa.ArrowException as error:
            raise FileError(
                f"{path}: can't be written as {name} ({one_line(error)}); leave columns out with `keep`, or "
                "write another format."
            ) from None
        if to_pipe:
            sys.stdout.buffer.flush()


class _Pipe:
    """Standard output that can be shut, so that an output that failed halfway does not look complete."""

    closed = False
    is_shut = False

    def write(self, data: bytes) -> int:
        if self.is_shut:
            raise BrokenPipeError
        return sys.stdout.buffer.write(data)

    def flush(self) -> None:
        sys.stdout.buffer.flush()

    def close(self) -> None:
        """Keep standard output open: it belongs to the caller."""


class ParquetWriter:
    """Parquet in large row groups: a group for each small batch would make a slow file."""

    def __init__(self, sink: Any, schema: pa.Schema, labels: Collection[str]) -> None:
        from pyarrow import parquet

        whole = [field.name for field in schema if pa.types.is_integer(field.type)]
        others = [field.name for field in schema if not pa.types.is_integer(field.type)]
        self._schema = _without_views(schema)
        self._writer = parquet.ParquetWriter(
            sink,
            self._schema,
            use_dictionary=others or False,
            column_encoding=dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
            write_batch_size=ROWS_ENCODED_AT_ONCE,
            write_page_checksum=True,
            write_statistics=[name for name in self._schema.names if name not in labels],
        )
        self._waiting: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch.cast(self._schema))
        rows = sum(waiting.num_rows for waiting in self._waiting)
        if rows >= ROWS_IN_A_GROUP or sum(waiting.nbytes for waiting in self._waiting) >= BYTES_IN_A_GROUP:
            self._write_group()

    def close(self) -> None:
        if self._waiting:
            self._write_group()
        try:
            self._writer.close()
        finally:
            self._writer.is_open = False  # else it would try again when it is collected, and print an error

    def _write_group(self) -> None:
        self._writer.write_table(pa.Table.from_batches(self._waiting), row_group_size=2 * ROWS_IN_A_GROUP)
        self._waiting = []


class CsvWriter:
    """Comma-separated values under a header, labels spelled out.

    If ``safe``, there is a ``'`` before text and column names that a spreadsheet would take for a formula.
    These begin with ``=``, ``+``, ``-``, ``@``, a tab or a line end, and are not numbers.
    """

    def __init__(self, sink: Any, schema: pa.Schema, safe: bool) -> None:
        from pyarrow import csv

        if safe:
            names = _as_text(pa.array(schema.names, pa.string())).to_pylist()
            schema = pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
        self._safe, self._typed = safe, _without_views(schema)
        self._schema = pa.schema([_without_dictionary(field) for field in self._typed])
        self._writer = csv.CSVWriter(sink, self._schema)

    def write(self, batch: pa.RecordBatch) -> None:
        plain = batch.rename_columns(self._typed.names).cast(self._typed).cast(self._schema)
        if self._safe:
            columns = [_as_text(column) for column in plain.columns]
            plain = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._writer.write_batch(plain)

    def close(self) -> None:
        self._writer.close()


class JsonLinesWriter:
    """A JSON object on each line; NaN and infinity are null."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink

    def write(self, batch: pa.RecordBatch) -> None:
        columns = [_null_unless_finite(column) for column in batch.columns]
        try:
            rows = pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist()
        except (ValueError, OverflowError) as error:  # of a time that Python can't hold
            raise pa.ArrowInvalid(str(error)) from None
        if any(pa.types.is_nested(field.type) for field in batch.schema):
            rows = [_finite_inside(row) for row in rows]
        lines = [json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows]
        self._sink.write("".join(lines).encode())

    def close(self) -> None:
        """There is nothing to close."""


def _without_dictionary(field: pa.Field) -> pa.Field:
    return field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field


def _without_views(schema: pa.Schema) -> pa.Schema:
    """Convert string views to plain strings, for writers without views."""

    def plain(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_dictionary(kind):
            return pa.dictionary(kind.index_type, plain(kind.value_type), kind.ordered)
        return pa.string() if pa.types.is_string_view(kind) else kind

    return pa.schema([field.with_type(plain(field.type)) for field in schema])


def _as_text(column: pa.Array) -> pa.Array:
    """Put ``'`` before text that a spreadsheet would take for a formula."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    is_number = compute.match_substring_regex(column, r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$")
    full_width = r"\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}"  # of the first four
    quoted = compute.replace_substring_regex(column, rf"^([=+\-@{full_width}\t\r\n])", r"'\1")
    return compute.if_else(is_number, column, quoted)


def _finite_inside(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite_inside(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite_inside(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _null_unless_finite(column: pa.Array) -> pa.Array:
    if not pa.types.is_floating(column.type):
        return column
    return compute.if_else(compute.is_finite(column), column, pa.scalar(None, column.type))
