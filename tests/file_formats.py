"""Tables in every format that commands read, written and read back without the code under test."""

import csv
import gzip
import io
import json
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import parquet

NAMES = {
    "csv": "rows.csv",
    "compressed csv": "rows.csv.gz",
    "parquet": "rows.parquet",
    "arrow file": "rows.arrow",
    "arrow stream": "stream.arrow",
    "json lines": "rows.jsonl",
}


def score_table(proba, labels, names=None, **kept):
    """Columns of scores, the label, and before them whatever else is to be kept."""
    scores = dict(zip(names or [f"p{k}" for k in range(proba.shape[1])], proba.T, strict=True))
    return pa.table({**kept, **scores, "y": labels})


def write_table(table, path):
    """The table in the format of the file's name; ``stream.arrow`` is a stream. Gives the path back."""
    path = Path(path)
    path.write_bytes(encoded(table, path.name))
    return path


def encoded(table, name):
    sink = io.BytesIO()
    if name.endswith(".csv") or name.endswith(".csv.gz"):
        arrow_csv.write_csv(table, sink)
    elif name.endswith(".parquet"):
        parquet.write_table(table, sink, row_group_size=100)
    elif name.endswith(".arrow"):
        kind = pa.ipc.new_stream if name.startswith("stream") else pa.ipc.new_file
        with kind(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=70)
    else:
        sink.write("".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode())
    return gzip.compress(sink.getvalue()) if name.endswith(".gz") else sink.getvalue()


def read_rows(content, name):
    """The rows as dicts: of text in CSV, of Python's values in other formats."""
    if name.endswith(".gz"):
        content = gzip.decompress(content)
    if ".csv" in name:
        return list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    if name.endswith(".parquet"):
        return parquet.read_table(io.BytesIO(content)).to_pylist()
    if name.endswith(".arrow"):
        opened = pa.ipc.open_stream if content[:4] == b"\xff\xff\xff\xff" else pa.ipc.open_file
        return opened(io.BytesIO(content)).read_all().to_pylist()
    return [json.loads(line) for line in content.decode().splitlines()]


_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_RELATIONS = f"{_PACKAGE}/relationships"
_CELLS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def workbook(sheets, hidden=()):
    """The bytes of an Excel file, written by hand: rows of cells by the name of the sheet."""
    places = range(1, len(sheets) + 1)
    listed = "".join(
        f'<sheet name="{name}" sheetId="{i}" r:id="rId{i}" '
        f'state="{"hidden" if name in hidden else "visible"}"/>'
        for i, name in zip(places, sheets, strict=True)
    )
    targets = "".join(
        f'<Relationship Id="rId{i}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in places
    )
    main = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    kinds = "".join(
        f'<Override PartName="/xl/worksheets/sheet{i}.xml" ContentType="{main}.worksheet+xml"/>'
        for i in places
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
        f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override '
        f'PartName="/xl/workbook.xml" ContentType="{main}.sheet.main+xml"/>{kinds}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="rId1" '
        f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_CELLS}" xmlns:r="{_OFFICE}"><sheets>{listed}'
        "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_RELATIONS}">{targets}</Relationships>',
    }
    for i, rows in zip(places, sheets.values(), strict=True):
        lines = "".join(
            f'<row r="{r}">{"".join(_cell(r, c, value) for c, value in enumerate(row))}</row>'
            for r, row in enumerate(rows, 1)
        )
        parts[f"xl/worksheets/sheet{i}.xml"] = (
            f'<worksheet xmlns="{_CELLS}"><sheetData>{lines}</sheetData></worksheet>'
        )
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            file.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return content.getvalue()


def _cell(row, column, value):
    place = f"{chr(ord('A') + column)}{row}"
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{value:d}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value!r}</v></c>'
