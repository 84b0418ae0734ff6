"""Which format a file has: by its name, else by its first bytes."""

from __future__ import annotations

from pathlib import Path, PurePath

from ordinalrisk.files.redacting import redacted

FORMATS = ("csv", "parquet", "arrow", "jsonl")
COMPRESSION = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
PIPE = Path("-")

_BY_SUFFIX = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
_COMPRESSION_BY_FIRST_BYTES = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}
_BY_FIRST_BYTES = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow", b"{": "jsonl"}


class FileError(ValueError):
    """What is wrong with a file: one line that names it, the place and the remedy, and holds no secret."""

    def __init__(self, message: str) -> None:
        super().__init__(redacted(message))


def compression_of(place: str | PurePath) -> str | None:
    """The compression that the file's name tells of."""
    return COMPRESSION.get(PurePath(str(place)).suffix.lower())


def compression_by_first_bytes(start: bytes) -> str | None:
    """The compression of a file that begins like this."""
    for magic, name in _COMPRESSION_BY_FIRST_BYTES.items():
        if start.startswith(magic):
            return name
    return None


def format_by_name(place: str | PurePath) -> str | None:
    """The format that the file's name tells of, less its compression.

    Examples
    --------
    >>> format_by_name("s3://bucket/scores.csv.gz"), format_by_name("scores.dat")
    ('csv', None)
    """
    name = PurePath(str(place))
    plain = name.with_suffix("") if compression_of(name) else name
    return _BY_SUFFIX.get(plain.suffix.lower())


def format_by_first_bytes(start: bytes) -> str:
    """The format of a file that begins like this: CSV if it is no other."""
    for magic, name in _BY_FIRST_BYTES.items():
        if start.lstrip(b" \r\n\t" if magic == b"{" else b"").startswith(magic):
            return name
    return "csv"


def one_line(error: BaseException) -> str:
    """An error's text on one line, without its final stop."""
    return " ".join(str(error).split()).rstrip(".")


def renamed(name: str, target_format: str) -> str:
    """A file's name with the ending of a format, in place of that of another.

    Examples
    --------
    >>> renamed("part-0.csv.gz", "parquet"), renamed("part-0", "csv")
    ('part-0.parquet', 'part-0.csv')
    """
    path = Path(name)
    if compression_of(path):
        path = path.with_suffix("")
    if path.suffix.lower() in _BY_SUFFIX:
        path = path.with_suffix("")
    return f"{path}.{target_format}"
