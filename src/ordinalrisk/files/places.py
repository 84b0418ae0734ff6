"""Where files are: on this machine, or anywhere that fsspec reaches.

A place is text: a local path, ``-`` for a pipe, or a URL such as ``s3://bucket/scores.parquet``. A ``file://``
URL is a local path; of what is stored elsewhere, only the bytes that are asked for are moved.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
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
    """Whether a place is a URL.

    Examples
    --------
    >>> is_url("s3://bucket/scores.parquet"), is_url("scores.parquet"), is_url("-")
    (True, False, False)
    """
    return "://" in place


def file_system(place: str) -> tuple[AbstractFileSystem, str]:
    """The file system of a URL, and what the file is called there.

    Raises
    ------
    FileError
        If fsspec, or the package that it needs for this kind of URL, is not installed, or if the storage
        can't be reached.
    """
    protocol = re.split("::|://", place)[0]
    install = f"pip install fsspec {_PACKAGES.get(protocol, '')}".rstrip()
    try:
        from fsspec.core import url_to_fs
        from fsspec.registry import available_protocols, registry
    except ImportError:
        raise FileError(
            f"{redacted(place, place)}: URLs need fsspec, which is not installed: {install}"
        ) from None
    if protocol not in {*available_protocols(), *registry}:
        raise FileError(
            f"{redacted(place, place)}: {protocol}:// is no kind of URL that fsspec knows; correct it."
        )
    try:
        with reading_from(place):
            system, path = url_to_fs(place)
            system.invalidate_cache()  # files come and go; what was listed before may be out of date
    except ImportError as error:
        raise FileError(
            f"{redacted(place, place)}: {protocol}:// needs a package that is not installed "
            f"({one_line(error)}): {install}"
        ) from None
    return system, path


def located(place: str | PathLike[str]) -> Path | StoredFile:
    """The file at a place: a path on this machine, or a file stored elsewhere.

    Examples
    --------
    >>> located("file:///data/scores.csv").as_posix(), located("memory://scores.csv").name
    ('/data/scores.csv', 'scores.csv')
    """
    if isinstance(place, StoredFile):
        return place
    text = os.fspath(place)
    if text.startswith(("file://", "local://")):
        return Path(text.partition("://")[2])
    return StoredFile(text) if is_url(text) else Path(text)


def exists(place: str) -> bool:
    """Whether there is a file or a folder."""
    return located(place).exists()


def is_folder(place: str) -> bool:
    """Whether there is a folder; in storage that has none, whether any name goes on behind it."""
    return located(place).is_dir()


def join(folder: str, name: str) -> str:
    """The place of a file in a folder.

    Examples
    --------
    >>> join("s3://bucket/sets/", "part-0.parquet"), join("memory://", "x.csv")
    ('s3://bucket/sets/part-0.parquet', 'memory://x.csv')
    """
    if not is_url(folder):
        return str(Path(folder) / name)
    return f"{folder}{'' if folder.endswith('/') else '/'}{name}"


def name_of(place: str) -> str:
    """The last part of a place, without a query.

    Examples
    --------
    >>> name_of("s3://bucket/sets/part-0.parquet"), name_of("sets/part-0.parquet"), name_of("s3://bucket/sets/")
    ('part-0.parquet', 'part-0.parquet', 'sets')
    """
    return without_query(place).rstrip("/").rpartition("/")[2] if is_url(place) else Path(place).name


def names_in(folder: str) -> list[str]:
    """The names of what is in a folder; none if there is no folder."""
    place = located(folder)
    if not place.is_dir():
        return []
    if isinstance(place, Path):
        return sorted(path.name for path in place.iterdir())
    with reading_from(folder):
        return sorted(name_of(f"x://{path}") for path in place.system.ls(place.path, detail=False))


def remove(place: str) -> None:
    """Remove a file, if it is there."""
    file = located(place)
    if isinstance(file, Path):
        file.unlink(missing_ok=True)
    elif file.exists():
        file.remove()


def expanded(places: Sequence[str]) -> list[str]:
    """The files that places and patterns name, in the order given; those of a pattern in the order of bytes.

    In a pattern ``*``, ``?`` and ``[..]`` stand for what they do in a shell, and ``**`` for any folders. A
    file that is called like a pattern is itself.

    Raises
    ------
    FileError
        If a pattern matches no file, if a file is named twice, or if a place is a folder.

    Examples
    --------
    >>> import fsspec
    >>> fsspec.filesystem("memory").pipe({"/e/part-1.csv": b"", "/e/part-0.csv": b"", "/e/notes.txt": b""})
    >>> expanded(["memory://e/part-*.csv"])
    ['memory:///e/part-0.csv', 'memory:///e/part-1.csv']
    """
    files: dict[Any, str] = {}
    for place in places:
        for file in _matching(place):
            identity = file if file == PIPE else _identity(file)
            if identity in files:
                raise FileError(f"{file}: is there twice (as {files[identity]} before); name each file once.")
            files[identity] = file
    return list(files.values())


class StoredFile(PathLike[str]):
    """A file that is not on this machine, with what of :class:`pathlib.Path` files are used by.

    What goes wrong with the storage is a :class:`FileError` while reading and an ``OSError`` while writing,
    as it is with files on this machine. As text it is the URL without its secrets.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.system, self.path = file_system(url)

    def __str__(self) -> str:
        return redacted(self.url, self.url)

    def __fspath__(self) -> str:
        raise FileError(f"{self}: is not on this machine; a local file is needed here.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StoredFile):
            return NotImplemented
        return self.path == other.path and type(self.system) is type(other.system)

    def __hash__(self) -> int:
        return hash(self.path)

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return name_of(self.url)

    @property
    def suffix(self) -> str:
        """The ending of the name."""
        return PurePosixPath(self.name).suffix

    def with_suffix(self, suffix: str) -> StoredFile:
        """The file beside this one whose name has another ending."""
        return self.with_name(str(PurePosixPath(self.name).with_suffix(suffix)))

    def with_name(self, name: str) -> StoredFile:
        """The file beside this one with another name."""
        url = without_query(self.url)
        return StoredFile(url.rstrip("/")[: -len(self.name)] + name + self.url[len(url) :])

    def exists(self) -> bool:
        """Whether there is a file or a folder."""
        return self._info() is not None

    def is_file(self) -> bool:
        """Whether there is a file."""
        return (self._info() or {}).get("type") == "file"

    def is_dir(self) -> bool:
        """Whether there is a folder."""
        return (self._info() or {}).get("type") == "directory"

    def size(self) -> int | None:
        """How many bytes there are, if the storage tells."""
        return (self._info() or {}).get("size")

    def read_text(self, encoding: str) -> str:
        """All of a text file."""
        with reading_from(self.url):
            content: bytes = self.system.cat_file(self.path)
        return content.decode(encoding)

    def write_text(self, text: str, encoding: str) -> None:
        """Write a text file."""
        self.write_bytes(text.encode(encoding))

    def write_bytes(self, content: bytes) -> None:
        """Write a file."""
        with _writing_to(self.url):
            self.system.pipe_file(self.path, content)

    def reading(self, bytes_ahead: int = BYTES_AHEAD) -> StoredBytes:
        """The bytes to read, so many ahead; none where a file is read here and there."""
        ahead: dict[str, Any] = {"cache_type": "none"}
        if bytes_ahead:
            ahead = {"cache_type": "readahead", "block_size": bytes_ahead}
        with reading_from(self.url):
            return StoredBytes(self.system.open(self.path, "rb", **ahead), reading_from, self.url)

    def writing(self) -> StoredBytes:
        """The bytes to write."""
        with _writing_to(self.url):
            return StoredBytes(self.system.open(self.path, "wb"), _writing_to, self.url)

    def replace(self, target: StoredFile) -> None:
        """Move the file to another place in the same storage."""
        from fsspec import AbstractFileSystem

        with _writing_to(target.url):
            if type(self.system).mv is AbstractFileSystem.mv:  # which takes [ in a name for a pattern
                self.system.cp_file(self.path, target.path)
                self.system.rm_file(self.path)
            else:
                self.system.mv(self.path, target.path)

    def remove(self) -> None:
        """Remove the file."""
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
    """The bytes of a stored file, as a Python file whose errors are explained."""

    def __init__(self, file: Any, explaining: Any, url: str) -> None:
        self._file, self._explaining, self._url = file, explaining, url
        self._is_abandoned = False

    @property
    def closed(self) -> bool:
        """Whether it is."""
        return bool(self._file.closed)

    def readable(self) -> bool:
        """Whether it is there to be read."""
        return bool(self._file.readable())

    def writable(self) -> bool:
        """Whether it is there to be written."""
        return bool(self._file.writable())

    def seekable(self) -> bool:
        """Whether one can go to any byte."""
        return bool(self._file.seekable())

    def tell(self) -> int:
        """Which byte is next."""
        return int(self._file.tell())

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to another byte."""
        with self._explaining(self._url):
            return int(self._file.seek(offset, whence))

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        with self._explaining(self._url):
            content: bytes = self._file.read(size)
            return content

    def write(self, content: bytes) -> int:
        """Write more bytes."""
        if self._is_abandoned:
            return len(content)
        with self._explaining(self._url):
            return int(self._file.write(content))

    def flush(self) -> None:
        """Parts are sent when they are full: storage takes no small ones."""

    def close(self) -> None:
        """Send what is left."""
        if not self._is_abandoned:
            with self._explaining(self._url):
                self._file.close()

    def abandon(self) -> None:
        """Send nothing more: what is not whole is not wanted."""
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
    """A file that is not there."""


@contextmanager
def reading_from(place: str) -> Iterator[None]:
    """Say in one line what goes wrong: the packages for storage have errors of no common kind."""
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
    """The same as an error like that of a local file."""
    try:
        yield
    except Exception as error:
        refused = OSError(f"{redacted(place, place)}: can't be written ({_why(error, place)}).")
        refused.strerror = _why(error, place)
        raise refused from None


def _why(error: Exception, place: str) -> str:
    return redacted(one_line(error), place) or type(error).__name__


def _matching(place: str) -> list[str]:
    """The file at a place, or the files that a pattern matches."""
    if place == PIPE:
        return [place]
    file = located(place)
    if file.is_dir():
        example = join(place, "*.parquet")
        raise FileError(f"{place}: is a folder; name the files in it, such as {example}.")
    if not _is_pattern(place) or file.exists():
        return [place]
    found = _stored_matches(file) if isinstance(file, StoredFile) else _local_matches(str(file))
    if not found:
        raise FileError(f"{place}: matches no file; correct the pattern.")
    return sorted(found, key=os.fsencode)


def _is_pattern(place: str) -> bool:
    wildcards = r"[*\[]" if place.startswith("http") and is_url(place) else r"[*?\[]"
    return re.search(wildcards, place) is not None


def _local_matches(pattern: str) -> list[str]:
    return [path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path)]


def _stored_matches(pattern: StoredFile) -> list[str]:
    if "::" in pattern.url:
        raise FileError(f"{pattern}: a pattern can't stand in a chain of URLs; name each file.")
    with reading_from(pattern.url):
        found = pattern.system.glob(pattern.path, detail=True)
    return [
        pattern.system.unstrip_protocol(path)
        for path, info in found.items()
        if info["type"] == "file" and not _is_hidden(path, pattern.path)
    ]


def _is_hidden(path: str, pattern: str) -> bool:
    """As in a shell, a name that begins with a point is matched by a pattern that does too."""
    asked = [part for part in pattern.split("/") if part.startswith(".")]
    hidden = [part for part in path.split("/") if part.startswith(".")]
    return len(hidden) > len(asked)


def _identity(place: str) -> Any:
    file = located(place)
    return file if isinstance(file, StoredFile) else os.path.realpath(file)
