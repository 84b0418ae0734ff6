"""JSON documents with a header, typed fields and a digest of each field.

A kind of document is a class that declares its fields; :mod:`ordinalrisk.saving.json_schemas` publishes them.
A file that was cut, edited or written by another schema is refused with an error that names the field.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from os import PathLike
from typing import Any, ClassVar, Self

from msgspec import Struct, convert
from msgspec.structs import fields

from ordinalrisk import __version__
from ordinalrisk.files.atomic import replacing
from ordinalrisk.files.formats import FileError
from ordinalrisk.files.places import located
from ordinalrisk.saving.signing import private_key, signature_place, verified_bytes

FilePath = str | PathLike[str]
HEADER = ("format", "schema_version", "package_version")
_fields = cache(fields)
_ERRORS = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError)


class RefusedError(ValueError):
    """A JSON file that is not the expected document."""


class JsonObject(Struct, forbid_unknown_fields=True):
    """A JSON object that has exactly the declared fields."""


class Document(JsonObject):
    """A kind of document: a subclass declares its fields in the order in which they are written.

    ``older`` maps an earlier version to the fields that it lacks, with values, and a step that completes it.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    older: ClassVar[Mapping[int, tuple[dict[str, Any], Callable[[Any], Any]]]] = {}

    @classmethod
    def all_fields(cls) -> tuple[str, ...]:
        """Return the fields of the header and of the document."""
        return (*HEADER, *cls.__struct_fields__)

    @classmethod
    def text(cls, values: Mapping[str, Any]) -> str:
        """Return the document with these values, one field a line, long lists on lines of their own."""
        document: dict[str, Any] = dict(zip(HEADER, (cls.name, cls.version, __version__), strict=True))
        document |= {field: values[field] for field in cls.__struct_fields__}
        document["digests"] = {field: _sha256(value) for field, value in document.items()}
        lines = [f"  {json.dumps(field)}: {_field_text(value)}" for field, value in document.items()]
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def write(cls, values: Mapping[str, Any], path: FilePath, key: FilePath | None = None) -> None:
        """Save these values, whole or not at all; a private key adds a signature in a file next to them."""
        signer = None if key is None else private_key(key)
        content = cls.text(values).encode()
        with ExitStack() as files:
            files.enter_context(replacing(path)).write_bytes(content)
            if signer is not None:
                signature = files.enter_context(replacing(signature_place(path)))
                signature.write_bytes(signer.sign(content))
        if signer is None and (stale := signature_place(path)).exists():
            warnings.warn(
                f"{stale} is the signature of the file that was replaced; sign {path} again, or remove it.",
                stacklevel=4,
            )

    @classmethod
    def read(cls, path: FilePath, key: FilePath | None = None) -> Self:
        """Load a document of the current or an older schema; a public key verifies its signature first."""
        document = _parsed(path, key)
        if document.get("format") != cls.name:
            raise refusal(path, "format", f"is {document.get('format')!r}, not {cls.name!r}")
        version = document.get("schema_version")
        if type(version) is not int or version not in (cls.version, *cls.older):
            known = ", ".join(map(str, sorted([*cls.older, cls.version])))
            raise refusal(
                path, "schema_version", f"is {version!r}; this version of ordinalrisk reads {known}"
            )
        missing, upgrade = cls.older.get(version, ({}, lambda saved: saved))
        _require_intact(path, document, [name for name in cls.all_fields() if name not in missing])
        with naming(path, "package_version"):
            convert(document["package_version"], str)
        document |= missing
        for field in _fields(cls):
            with naming(path, field.name):
                document[field.name] = convert(document[field.name], field.type)
        with naming(path, "schema_version"):
            saved: Self = upgrade(cls(*(document[name] for name in cls.__struct_fields__)))
        return saved


def refusal(path: FilePath, field: str, problem: str) -> RefusedError:
    return RefusedError(f"{located(path)} can't be loaded: field {field!r} {problem}. Nothing was loaded.")


@contextmanager
def naming(path: FilePath, field: str) -> Iterator[None]:
    """Turn any error about a value into a refusal that names the field."""
    try:
        yield
    except _ERRORS as error:
        raise refusal(path, field, f"is not valid: {str(error).rstrip('.')}") from None


def require(holds: bool, otherwise: str) -> None:
    """Refuse the field that is being read unless a condition holds."""
    if not holds:
        raise ValueError(f"it {otherwise}")


def _parsed(path: FilePath, key: FilePath | None) -> dict[str, Any]:
    """Read a JSON object without repeated names; a public key verifies its signature first."""

    def unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        [(name, times)] = Counter(name for name, _ in pairs).most_common(1) or [("", 0)]
        if times > 1:
            raise refusal(path, name, "is there more than once")
        return dict(pairs)

    signed = None if key is None else verified_bytes(path, key)
    try:
        text = located(path).read_text(encoding="utf-8") if signed is None else signed.decode()
        document = json.loads(text, object_pairs_hook=unrepeated)
    except (RefusedError, FileError):
        raise
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{located(path)} is not a whole JSON file ({error}); nothing was loaded.") from None
    if not isinstance(document, dict):
        raise refusal(path, "format", "is missing")
    return document


def _require_intact(path: FilePath, document: dict[str, Any], names: list[str]) -> None:
    """Refuse missing and unknown fields, and fields that do not match their digests."""
    expected = (*names, "digests")
    for field in (*expected, *document):
        if field not in document:
            raise refusal(path, field, "is missing")
        if field not in expected:
            raise refusal(path, field, "is not part of the schema")
    digests = document["digests"]
    if not isinstance(digests, dict):
        raise refusal(path, "digests", "must map fields to their digests")
    for field in digests:
        if field not in names:
            raise refusal(path, "digests", f"has an entry {field!r} that is not part of the schema")
    for field in names:
        with naming(path, field):
            digest = _sha256(document[field])
        if digests.get(field) != digest:
            raise refusal(path, field, "does not match its digest, so it was changed after it was saved")


def _sha256(value: Any) -> str:
    """Return the SHA-256 of a field as canonical JSON, which has no infinite numbers."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _field_text(value: Any) -> str:
    if isinstance(value, dict) and any(isinstance(part, list) for part in value.values()):
        inner = ",\n".join(f"    {json.dumps(key)}: {json.dumps(part)}" for key, part in value.items())
        return "{\n" + inner + "\n  }"
    if isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
        return "[\n" + ",\n".join(f"    {json.dumps(part)}" for part in value) + "\n  ]"
    return json.dumps(value)
