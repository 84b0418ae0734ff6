"""Infer the format of a file from its name, else from its first bytes."""

from __future__ import annotations

from pathlib import PurePath
from typing import NamedTuple

from ordinalrisk.files.redacting import redacted

COMPRESSION = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}

_BY_SUFFIX = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xlsb": "excel",
    ".xls": "excel",
    ".ods": "excel",
}
_ONLY_READ = ("excel",)
_COMPRESSION_BY_FIRST_BYTES = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}
_BY_FIRST_BYTES = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"{": "jsonl",
    b"\xd0\xcf\x11\xe0": "excel",
}
_ZIP, _NAME_IN_ZIP = b"PK\x03\x04", 30
_FIRST_IN_WORKBOOK = (
    b"[Content_Types].xml",
    b"_rels/",
    b"xl/",
    b"docProps/",
    b"mimetypeapplication/vnd.oasis",
)


class FileError(ValueError):
    """A problem with a file: one line that names the file, the place and the remedy, without secrets."""

    def __init__(self, message: str) -> None:
        super().__init__(redacted(message))


class FormatOptions(NamedTuple):
    """The user's options about the format of a file; None where they are inferred."""

    format: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    sheet: str | None = None


def compression_of(place: str | PurePath) -> str | None:
    return COMPRESSION.get(PurePath(str(place)).suffix.lower())


def compression_by_first_bytes(start: bytes) -> str | None:
    return next(
        (name for magic, name in _COMPRESSION_BY_FIRST_BYTES.items() if start.startswith(magic)), None
    )


def format_by_name(place: str | PurePath) -> str | None:
    """Infer the format from a file's name, without the ending of its compression."""
    return _BY_SUFFIX.get(_uncompressed(place).suffix.lower())


def _uncompressed(place: str | PurePath) -> PurePath:
    path = PurePath(str(place))
    return path.with_suffix("") if compression_of(path) else path


def checked_format(name: str | None, parameter: str) -> str | None:
    known = [
        each for each in dict.fromkeys(_BY_SUFFIX.values()) if parameter == "input_format" or is_written(each)
    ]
    if name is not None and name not in known:
        raise ValueError(f"{parameter} must be one of {', '.join(known)}; got {name!r}.")
    return name


def is_written(name: str) -> bool:
    return name not in _ONLY_READ


def format_to_write(name: str, given: str | None, place: object) -> str:
    """Return the format of an output: the given one, else by its name; errors show its place."""
    found = given or format_by_name(name)
    if found is None or not is_written(found):
        why = "can't infer the format of" if found is None else "Excel files are not written:"
        *some, last = (ending for ending, name in _BY_SUFFIX.items() if is_written(name))
        raise ValueError(
            f"`out`: {why} {redacted(str(place))}; use a name that ends in {', '.join(some)} or {last}, or "
            "give `output_format`."
        )
    return found


def format_by_first_bytes(start: bytes) -> str:
    """Infer the format from the first bytes of a file; CSV if it is not another one."""
    if start.startswith(_ZIP) and start[_NAME_IN_ZIP:].startswith(_FIRST_IN_WORKBOOK):
        return "excel"
    for magic, name in _BY_FIRST_BYTES.items():
        if start.lstrip(b" \r\n\t" if magic == b"{" else b"").startswith(magic):
            return name
    return "csv"


def one_line(error: BaseException) -> str:
    """Return the text of an error without its line ends and its final stop."""
    return " ".join(str(error).split()).rstrip(".")


def renamed(name: str, target_format: str) -> str:
    """Replace the ending of a file's name by the ending of another format."""
    path = _uncompressed(name)
    if path.suffix.lower() in _BY_SUFFIX:
        path = path.with_suffix("")
    return f"{path}.{target_format}"
