"""Tables in every format that commands read, written and read back without the code under test."""

import csv
import gzip
import io
import json
from pathlib import Path

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
