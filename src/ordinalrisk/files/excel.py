"""Excel workbooks: one sheet as a table, with the column names in its first row that is not empty."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Collection, Iterator, Sequence
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ordinalrisk.files.formats import FileError, one_line
from ordinalrisk.files.label_names import listing
from ordinalrisk.files.readers import ROWS_AT_ONCE, Source, text_as_numbers
from ordinalrisk.files.spelled_numbers import Spelling, possible_spellings

_LARGEST_WHOLE = 2**53
_MOST_BYTES = 1 << 31  # of all parts, unpacked: a small file can hold very large ones
_ROWS_LOOKED_AT = 1_000
_INSTALL = 'pip install "ordinalrisk[excel]"'


class ExcelSource(Source):
    """A sheet of a workbook: the first one that is not hidden, or the one that is named.

    A sheet has at most 1,048,576 rows, and is read as a whole. Rows without any value are left out.
    """

    format, kind = "excel", "workbook of Excel"

    def _schema(self) -> pa.Schema:
        names, rows = self._named_rows()
        columns = [[row[at] for row in rows] for at in range(len(names))]
        kept = [at for at, name in enumerate(names) if name or any(v is not None for v in columns[at])]
        if len(unnamed := [at for at in kept if not names[at]]) > 1:
            letters = listing([_letters(at) for at in unnamed])
            raise FileError(
                f"{self.name}: sheet {self._sheet!r}: the first row with values must name the columns, but "
                f"columns {letters} have no name there; give each a name."
            )
        arrays = [_as_array(columns[at]) for at in kept]
        self._table = pa.Table.from_arrays(arrays, names=[names[at] for at in kept])
        self.n_rows = len(rows)
        texts = {
            names[at]: columns[at]
            for at, array in zip(kept, arrays, strict=True)
            if array.type == pa.string()
        }
        self._are_numbers = {name: pa.array(map(_is_number, cells)) for name, cells in texts.items()}
        few = {name: cells[:_ROWS_LOOKED_AT] for name, cells in texts.items()}
        self._looks = possible_spellings(
            {name: [_as_spelled(cell) for cell in cells if cell is not None] for name, cells in few.items()}
        )
        schema = self._table.schema
        return pa.schema(
            [field.with_type(pa.float64()) if field.name in self._looks else field for field in schema]
        )

    def field_as_read(self, name: str) -> pa.Field:
        field: pa.Field = self._table.schema.field(name)
        return field

    def remarks(self, columns: Collection[str]) -> list[str]:
        said = []
        if self._others and self.written.sheet is None:
            said = [f"{self.name}: sheet {self._sheet!r} is read; set `sheet` for {listing(self._others)}."]
        return [*said, *super().remarks(columns)]

    def _batches(self, columns: list[str], numbers: set[str]) -> Iterator[pa.RecordBatch]:
        spelling, n_rows = self.spelling(numbers), 0
        for batch in self._table.select(columns).to_batches(max_chunksize=ROWS_AT_ONCE):
            for name in numbers & self._are_numbers.keys():
                is_number = self._are_numbers[name].slice(n_rows, batch.num_rows)
                batch = self._as_numbers(batch, name, is_number, spelling, n_rows)
            yield batch
            n_rows += batch.num_rows

    def _as_numbers(
        self, batch: pa.RecordBatch, name: str, is_number: pa.Array, spelling: Spelling, n_before: int
    ) -> pa.RecordBatch:
        """Read the text of a column as numbers; cells that are numbers are not spelled in any way."""
        at, cells, nothing = batch.schema.names.index(name), batch.column(name), pa.scalar(None, pa.string())
        spelled = batch.set_column(at, name, pc.if_else(is_number, nothing, cells))
        read = text_as_numbers(spelled, {name}, spelling, self.name, n_before)
        numbers = pc.if_else(is_number, cells, nothing).cast(pa.float64())
        return read.set_column(at, name, pc.coalesce(numbers, read.column(name)))

    def _share_read(self) -> float:
        return 1.0

    def _named_rows(self) -> tuple[list[str], list[list[Any]]]:
        """Return the names of the columns, and the rows below them that are not empty."""
        rows = [[None if cell == "" else cell for cell in row] for row in self._cells()]
        rows = [row for row in rows if any(cell is not None for cell in row)]
        if not rows:
            raise FileError(f"{self.name}: sheet {self._sheet!r} is empty; column names and rows are needed.")
        return ["" if cell is None else _as_text(cell).strip() for cell in rows[0]], rows[1:]

    def _cells(self) -> Sequence[Sequence[Any]]:
        try:
            from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum
        except ImportError:
            raise FileError(
                f"{self.name}: Excel files are read with python-calamine, which is not installed: {_INSTALL}"
            ) from None
        with self._opened() as file:
            content = bytes(file.read())
        if _unpacked_size(content) > _MOST_BYTES:
            raise FileError(f"{self.name}: is larger than {_MOST_BYTES:,} bytes unpacked; export it as CSV.")
        try:
            with CalamineWorkbook.from_filelike(io.BytesIO(content)) as workbook:
                sheets = [sheet for sheet in workbook.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
                shown = [sheet.name for sheet in sheets if sheet.visible == SheetVisibleEnum.Visible]
                names = [sheet.name for sheet in sheets]
                asked = self.written.sheet
                if asked is not None and asked not in names:
                    raise FileError(
                        f"{self.name}: has no sheet {asked!r} (there are {listing(names)}); correct `sheet`."
                    )
                if not names:
                    raise FileError(f"{self.name}: has no sheet with cells.")
                self._sheet = asked or (shown or names)[0]
                self._others = [name for name in shown if name != self._sheet]
                return [*workbook.get_sheet_by_name(self._sheet).iter_rows()]
        except CalamineError as error:
            raise FileError(
                f"{self.name}: is not a whole Excel file ({one_line(error)}); save or export it again."
            ) from None


def _unpacked_size(content: bytes) -> int:
    """Return the size of all parts of a workbook; 0 if it is of an older kind, which is not packed."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as parts:
            return sum(part.file_size for part in parts.infolist())
    except zipfile.BadZipFile:
        return 0


def _as_array(values: list[Any]) -> pa.Array:
    """Make a column of cells: of one type if all have it, else of text."""
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pa.nulls(len(values))
    if kinds <= {int, float}:
        are_whole = all(v is None or (abs(v) < _LARGEST_WHOLE and v == int(v)) for v in values)
        kind = pa.int64() if are_whole else pa.float64()
        return pa.array([None if v is None else int(v) if are_whole else float(v) for v in values], kind)
    types = {bool: pa.bool_(), date: pa.date32(), datetime: pa.timestamp("us")}
    if len(kinds) == 1 and (only := kinds.pop()) in types:
        return pa.array(values, types[only])
    return pa.array([None if value is None else _as_text(value) for value in values], pa.string())


def _is_number(cell: Any) -> bool:
    return type(cell) in (int, float)  # not a boolean


def _as_spelled(cell: Any) -> str:
    """Return the text of a cell; a number, which has no decimal sign in a workbook, as 0."""
    return "0" if _is_number(cell) else _as_text(cell)


def _as_text(cell: Any) -> str:
    is_whole = isinstance(cell, float) and cell.is_integer() and abs(cell) < _LARGEST_WHOLE
    return str(int(cell) if is_whole else cell)


def _letters(column: int) -> str:
    """Return how Excel calls a column.

    >>> _letters(0), _letters(27)
    ('A', 'AB')
    """
    before, last = divmod(column, 26)
    return (_letters(before - 1) if before else "") + chr(ord("A") + last)
