"""Where files are: on this machine, or anywhere that fsspec reaches.

A place is text: a local path, ``-`` for a pipe, or a URL such as ``s3://bucket/scores.parquet``. A ``file://``
URL is a local path. From files stored elsewhere, only the bytes that are needed are downloaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ordinalrisk.files.formats import FileError, one_line
from ordinalrisk.files.redacting import redacted, without_query

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

PIPE = "-"
BYTES_AHEAD = 1 << 22  # of a file that is read in order: few requests, little memory
BYTES_AT_THE_START = 1 << 16

_PACKAGES = {
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("abfs", "abfss", "az", "adl"), "adlfs"),
    **dict.fromkeys(("http", "https"), "aiohttp requests"),
    **dict.fromkeys(("ssh", "sftp"), "paramiko"),
    "hf": "huggingface_hub",
    "smb": "smbprotocol",
}


def is_url(place: str) -> bool:
    return "://" in place


def file_system(place: str) -> tuple[AbstractFileSystem, str]:
    """Return the file system of a URL, and the path of the file in it."""
    protocol, shown = re.split("::|://", place)[0], redacted(place, place)
    install = f"pip install fsspec {_PACKAGES.get(protocol, '')}".rstrip()
    try:
        from fsspec.core import url_to_fs
        from fsspec.registry import available_protocols, registry
    except ImportError:
        raise FileError(f"{shown}: URLs need fsspec, which is not installed: {install}") from None
    if protocol not in {*available_protocols(), *registry}:
        raise FileError(f"{shown}: fsspec does not know {protocol}:// URLs; correct the URL.")
    try:
        with reading_from(place):
            system, path = url_to_fs(place)
            system.invalidate_cache()  # files may have changed since they were listed
    except ImportError as error:
        raise FileError(
            f"{shown}: {protocol}:// needs a package that is not installed ({one_line(error)}): {install}"
        ) from None
    return system, path


def located(place: str | PathLike[str]) -> Path | StoredFile:
    """Return the file at a place: a path on this machine, or a file stored elsewhere."""
    if isinstance(place, StoredFile):
        return place
    text = os.fspath(place)
    if text.startswith(("file://", "local://")):
        return Path(text.partition("://")[2])
    return StoredFile(text) if is_url(text) else Path(text)


def exists(place: str) -> bool:
    return located(place).exists()


def join(folder: str, name: str) -> str:
    """Return the place of a file in a folder."""
    slash = "" if folder.endswith("/") else "/"
    return f"{folder}{slash}{name}" if is_url(folder) else str(Path(folder) / name)


def name_of(place: str) -> str:
    """Return the last part of a place, without its query."""
    return without_query(place).rstrip("/").rpartition("/")[2] if is_url(place) else Path(place).name


def names_in(folder: str) -> list[str]:
    """List the names in a folder; an empty list if there is no folder."""
    place = located(folder)
    if not place.is_dir():
        return []
    if isinstance(place, Path):
        return sorted(path.name for path in place.iterdir())
    with reading_from(folder):
        return sorted(name_of(f"x://{path}") for path in place.system.ls(place.path, detail=False))


def remove(place: str) -> None:
    file = located(place)
    if isinstance(file, Path):
        file.unlink(missing_ok=True)
    elif file.exists():
        file.remove()


class StoredFile(PathLike[str]):
    """A file stored elsewhere, with the methods of :class:`pathlib.Path` that this package uses.

    Errors of the storage become a :class:`FileError` while reading and an ``OSError`` while writing, as with
    files on this machine. ``str()`` gives the URL without its secrets.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.system, self.path = file_system(url)

    def __str__(self) -> str:
        return redacted(self.url, self.url)

    def __fspath__(self) -> str:
        raise FileError(f"{self}: is not on this machine; give a local file here.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StoredFile):
            return NotImplemented
        return self.path == other.path and type(self.system) is type(other.system)

    def __hash__(self) -> int:
        return hash(self.path)

    @property
    def name(self) -> str:
        return name_of(self.url)

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix

    def with_suffix(self, suffix: str) -> StoredFile:
        return self.with_name(str(PurePosixPath(self.name).with_suffix(suffix)))

    def with_name(self, name: str) -> StoredFile:
        url = without_query(self.url)
        return StoredFile(url.rstrip("/")[: -len(self.name)] + name + self.url[len(url) :])

    def exists(self) -> bool:
        return self._info() is not None

    def is_file(self) -> bool:
        return (self._info() or {}).get("type") == "file"

    def is_dir(self) -> bool:
        return (self._info() or {}).get("type") == "directory"

    def size(self) -> int | None:
        """Return the number of bytes, if the storage knows it."""
        return (self._info() or {}).get("size")

    def read_text(self, encoding: str) -> str:
        with reading_from(self.url):
            content: bytes = self.system.cat_file(self.path)
        return content.decode(encoding)

    def write_text(self, text: str, encoding: str) -> None:
        self.write_bytes(text.encode(encoding))

    def write_bytes(self, content: bytes) -> None:
        with _writing_to(self.url):
            self.system.pipe_file(self.path, content)

    def reading(self, bytes_ahead: int = BYTES_AHEAD) -> StoredBytes:
        """Open the file to read it; fetch ``bytes_ahead``, or nothing if it is 0 (not read in order)."""
        ahead: dict[str, Any] = {"cache_type": "none"}
        if bytes_ahead:
            ahead = {"cache_type": "readahead", "block_size": bytes_ahead}
        with reading_from(self.url):
            return StoredBytes(self.system.open(self.path, "rb", **ahead), reading_from, self.url)

    def writing(self) -> StoredBytes:
        with _writing_to(self.url):
            return StoredBytes(self.system.open(self.path, "wb"), _writing_to, self.url)

    def replace(self, target: StoredFile) -> None:
        """Move the file to another place in the same storage."""
        from fsspec import AbstractFileSystem

        with _writing_to(target.url):
            if type(self.system).mv is AbstractFileSystem.mv:  # which would read [ in a name as a pattern
                self.system.cp_file(self.path, target.path)
                self.system.rm_file(self.path)
            else:
                self.system.mv(self.path, target.path)

    def remove(self) -> None:
        with _writing_to(self.url):
            self.system.rm_file(self.path)

    def _info(self) -> dict[str, Any] | None:
        try:
            with reading_from(self.url):
                self.system.invalidate_cache()
                info: dict[str, Any] = self.system.info(self.path)
        except NotThereError:
            return None
        return info


class StoredBytes:
    """An open stored file whose errors name its place, without its secrets."""

    def __init__(self, file: Any, explaining: Any, url: str) -> None:
        self._file, self._explaining, self._url = file, explaining, url
        self._is_abandoned = False
        self.readable, self.writable, self.seekable = file.readable, file.writable, file.seekable
        self.tell = file.tell

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def seek(self, offset: int, whence: int = 0) -> int:
        with self._explaining(self._url):
            return int(self._file.seek(offset, whence))

    def read(self, size: int = -1) -> bytes:
        with self._explaining(self._url):
            content: bytes = self._file.read(size)
            return content

    def write(self, content: bytes) -> int:
        if self._is_abandoned:
            return len(content)
        with self._explaining(self._url):
            return int(self._file.write(content))

    def flush(self) -> None:
        """Do nothing: parts are sent when they are full, as storage refuses small ones."""

    def close(self) -> None:
        if not self._is_abandoned:
            with self._explaining(self._url):
                self._file.close()

    def abandon(self) -> None:
        """Send nothing more, so that no incomplete file appears."""
        from fsspec.spec import AbstractBufferedFile

        self._is_abandoned = True
        with suppress(Exception):
            if isinstance(self._file, AbstractBufferedFile):
                self._file.closed = True  # else it is sent when it is collected
                self._file.discard()
            else:
                self._file.close()

    def __enter__(self) -> StoredBytes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class NotThereError(FileError):
    """A file does not exist."""


@contextmanager
def reading_from(place: str) -> Iterator[None]:
    """Turn any error of the storage packages, which share no class, into a one-line :class:`FileError`."""
    shown = redacted(place, place)
    try:
        yield
    except (FileError, ImportError):
        raise
    except FileNotFoundError as error:
        if isinstance(cause := error.__cause__, OSError) and not isinstance(cause, FileNotFoundError):
            raise FileError(f"{shown}: can't be reached ({_why(cause, place)}).") from None
        text = one_line(error)
        why = "" if text in place else f" ({redacted(text, place)})"
        raise NotThereError(f"{shown}: there is no such file{why}.") from None
    except PermissionError as error:
        raise FileError(
            f"{shown}: permission is denied ({redacted(one_line(error), place)}); check the credentials."
        ) from None
    except Exception as error:
        raise FileError(f"{shown}: can't be reached ({_why(error, place)}).") from None


@contextmanager
def _writing_to(place: str) -> Iterator[None]:
    """Turn any error of the storage packages into an ``OSError``, as for a local file."""
    try:
        yield
    except Exception as error:
        refused = OSError(f"{redacted(place, place)}: can't be written ({_why(error, place)}).")
        refused.strerror = _why(error, place)
        raise refused from None


def _why(error: Exception, place: str) -> str:
    return redacted(one_line(error), place) or type(error).__name__
