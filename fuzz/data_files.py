"""Files of scores in every format, spoilt by the byte or by the cell, through the commands."""

import gzip
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from click.testing import CliRunner
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv
from pyarrow import parquet
from typer.main import get_command

from fuzz.checking import VOCABULARY, WrongError, rows
from ordinalrisk.cli import app

CASES_A_ROUND = 60
_NAMES = {
    "csv": "rows.csv",
    "gzip": "rows.csv.gz",
    "parquet": "rows.parquet",
    "arrow": "rows.arrow",
    "stream": "stream.arrow",
    "jsonl": "rows.jsonl",
}
_CELLS = [*VOCABULARY["csv_cells"], "9" * 400]
_MEMBERS = [*VOCABULARY["json_cells"], "[" * 3000, "[" * 30000, "[" * 5000 + "]" * 5000, "9" * 5000]
_COMMANDS = {
    "calibrate": ["calibrate", "{}", "--alpha", "0.2", "-o", "out.json"],
    "predict": ["predict", "cal.json", "{}", "-o", "out.csv"],
    "evaluate": ["evaluate", "cal.json", "{}"],
}
_BYTES = st.binary(min_size=1, max_size=8).map(bytes.hex)


def cases() -> st.SearchStrategy[dict[str, Any]]:
    """A command, a format, and bytes that are replaced at an offset, or one cell that is wrong."""
    edits = st.lists(st.tuples(st.integers(0, 1 << 16), _BYTES).map(list), min_size=1, max_size=4)
    command = {"command": st.sampled_from([*_COMMANDS])}
    spoilt = {"format": st.sampled_from([*_NAMES]), "edits": edits, "cut": st.just(0) | st.integers(0, 999)}
    cell = {"row": st.integers(0, 19), "column": st.integers(0, 3), **command}
    by_bytes = st.fixed_dictionaries(spoilt | command)
    in_csv = st.fixed_dictionaries({"format": st.just("csv"), "cell": st.sampled_from(_CELLS), **cell})
    in_json = st.fixed_dictionaries({"format": st.just("jsonl"), "cell": st.sampled_from(_MEMBERS), **cell})
    return by_bytes | by_bytes | in_csv | in_json


def check(case: dict[str, Any]) -> None:
    """A command ends with 0, 1 or 2; with 0 only if the file is valid and no cell that it reads is wrong."""
    name, command = _NAMES[case["format"]], case["command"]
    Path(name).write_bytes(_with_cell(case) if "cell" in case else _with_bytes(case))
    Path("cal.json").write_text(_calibration())
    done = CliRunner().invoke(_command(), [part.format(name) for part in _COMMANDS[command]])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    if done.exit_code not in (0, 1, 2):
        raise WrongError(f"exit code {done.exit_code} of {command}: {done.output}")
    if done.exit_code and not done.stderr.splitlines()[-1].startswith("Error: "):
        raise WrongError(f"no line with an error from {command}: {done.stderr}")
    if not all(c.isprintable() or c == "\n" for c in done.output):
        raise WrongError(f"control characters printed by {command}: {done.output!r}")
    if left := {path.name for path in Path().iterdir()} - {name, "cal.json", "out.json", "out.csv"}:
        raise WrongError(f"files left by {command}: {left}")
    if done.exit_code == 0:
        if "cell" in case and (case["column"] < 3 or command != "predict"):  # which reads no label
            raise WrongError(f"wrong cell accepted by {command}: {case['cell'][:40]!r}")
        if command == "predict":  # which reads all columns
            _require_valid(name, case["format"])


def _require_valid(name: str, kind: str) -> None:
    """If a command could read a file, Arrow must accept it too."""
    if kind in ("arrow", "stream"):
        opened = pa.ipc.open_file if kind == "arrow" else pa.ipc.open_stream
        try:
            opened(pa.BufferReader(Path(name).read_bytes())).read_all().validate(full=True)
        except (pa.ArrowInvalid, OSError) as error:
            raise WrongError(f"Arrow file accepted that is not valid: {error}") from None


def _with_bytes(case: dict[str, Any]) -> bytes:
    content = bytearray(_files()[case["format"]])
    for at, new in case["edits"]:
        at %= len(content)
        content[at : at + len(new) // 2] = bytes.fromhex(new)
    return bytes(content[: len(content) - case["cut"]])


def _with_cell(case: dict[str, Any]) -> bytes:
    lines = _files()[case["format"]].decode().splitlines()
    if case["format"] == "csv":
        cells = lines[1 + case["row"]].split(",")
        cells[case["column"]] = case["cell"]
        lines[1 + case["row"]] = ",".join(cells)
    else:
        members = json.loads(lines[case["row"]])
        key = [*members][case["column"]]
        parts = (f'"{name}":{case["cell"] if name == key else value}' for name, value in members.items())
        lines[case["row"]] = "{" + ",".join(parts) + "}"
    return ("\n".join(lines) + "\n").encode()


@cache
def _command() -> Any:
    return get_command(app)


@cache
def _files() -> dict[str, bytes]:
    proba, y = rows(20, 3, 0)
    table = pa.table({**{f"p{k}": proba[:, k] for k in range(3)}, "label": y})
    named = table.append_column("note", pa.array(["a", None, "ccc", ""] * 5).dictionary_encode())
    made = {name: io.BytesIO() for name in _NAMES}
    arrow_csv.write_csv(table, made["csv"])
    made["gzip"].write(gzip.compress(made["csv"].getvalue(), mtime=0))
    parquet.write_table(named, made["parquet"])
    with pa.ipc.new_file(made["arrow"], named.schema) as file:
        file.write_table(named)
    with pa.ipc.new_stream(made["stream"], named.schema) as stream:
        stream.write_table(named)
    made["jsonl"].write("".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode())
    return {name: file.getvalue() for name, file in made.items()}


@cache
def _calibration() -> str:
    import ordinalrisk as orisk

    orisk.RiskController(alpha=0.2).calibrate(*rows(20, 3, 1)).save("made.json")
    text = Path("made.json").read_text()
    Path("made.json").unlink()
    return text


def warm_up() -> None:
    """Import what commands import."""
    _files()
