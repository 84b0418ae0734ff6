"""Saved state: a JSON document with a schema and a digest of every field.

A document that was cut, edited or written by another schema is refused by the name of the field.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from os import PathLike
from typing import Any, NamedTuple

from ordinalrisk import __version__
from ordinalrisk.files.atomic import replacing
from ordinalrisk.files.formats import FileError
from ordinalrisk.files.places import located
from ordinalrisk.saving.signing import private_key, signature_place, verified_bytes

HEADER = ("format", "schema_version", "package_version")


class RefusedError(ValueError):
    """A file that is JSON, but not the document that was asked for."""


class OlderSchema(NamedTuple):
    """The fields of an older version, and how its values become those of the current one."""

    fields: Sequence[str]
    upgrade: Callable[[dict[str, Any]], dict[str, Any]]


class Schema(NamedTuple):
    """What a document is called, its version, its fields beside the header, and the versions it replaced."""

    name: str
    version: int
    fields: Sequence[str]
    older: Mapping[int, OlderSchema] = {}

    @property
    def all_fields(self) -> tuple[str, ...]:
        """Those of the header too."""
        return (*HEADER, *self.fields)

    def text(self, values: dict[str, Any]) -> str:
        """The document with these values, one field a line, long lists within a field on one line each."""
        document = {
            "format": self.name,
            "schema_version": self.version,
            "package_version": __version__,
            **{field: values[field] for field in self.fields},
        }
        document["digests"] = {field: _digest(value) for field, value in document.items()}
        return _readable(document)

    def write(
        self, values: dict[str, Any], path: str | PathLike[str], key: str | PathLike[str] | None = None
    ) -> None:
        """Save these values, whole or not at all; with a private key, a signature beside them."""
        signer = None if key is None else private_key(key)
        content = self.text(values).encode()
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

    def read(self, path: str | PathLike[str], key: str | PathLike[str] | None = None) -> dict[str, Any]:
        """The values that were saved, each as it was written; a public key verifies them first."""
        document = _parsed(path, key)
        if document.get("format") != self.name:
            raise refusal(path, "format", f"is {document.get('format')!r}, not {self.name!r}")
        found = document.get("schema_version")
        if type(found) is int and found == self.version:
            return self._values(path, document)
        if type(found) is not int or found not in self.older:
            known = ", ".join(map(str, sorted([*self.older, self.version])))
            raise refusal(path, "schema_version", f"is {found!r}; this version of ordinalrisk reads {known}")
        older = self.older[found]
        values = self._replace(fields=older.fields)._values(path, document)
        with naming(path, "schema_version"):
            return older.upgrade(values)

    def _values(self, path: str | PathLike[str], document: dict[str, Any]) -> dict[str, Any]:
        self._require_fields(path, document)
        if not isinstance(document["package_version"], str):
            raise refusal(path, "package_version", "is not valid: it must be text")
        return {field: document[field] for field in self.fields}

    def _require_fields(self, path: str | PathLike[str], document: dict[str, Any]) -> None:
        fields = self.all_fields
        for field in (*fields, "digests"):
            if field not in document:
                raise refusal(path, field, "is missing")
        for field in document:
            if field not in (*fields, "digests"):
                raise refusal(path, field, "is not part of the schema")
        digests = document["digests"]
        if not isinstance(digests, dict):
            raise refusal(path, "digests", "must map fields to their digests")
        for field in digests:
            if field not in fields:
                raise refusal(path, "digests", f"has an entry {field!r} that is not part of the schema")
        for field in fields:
            if digests.get(field) != _digest(document[field]):
                raise refusal(path, field, "does not match its digest, so it was changed after it was saved")


def refusal(path: str | PathLike[str], field: str, problem: str) -> RefusedError:
    """The error for a document that can't be loaded because of a field."""
    return RefusedError(f"{located(path)} can't be loaded: field {field!r} {problem}. Nothing was loaded.")


@contextmanager
def naming(path: str | PathLike[str], field: str) -> Iterator[None]:
    """Say which field can't be read."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise refusal(path, field, f"is not valid: {str(error).rstrip('.')}") from None


def _parsed(path: str | PathLike[str], key: str | PathLike[str] | None) -> dict[str, Any]:
    signed = None if key is None else verified_bytes(path, key)
    try:
        text = located(path).read_text(encoding="utf-8") if signed is None else signed.decode()
        document = json.loads(text, object_pairs_hook=lambda pairs: _unrepeated(path, pairs))
    except (RefusedError, FileError):
        raise
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{located(path)} is not a whole JSON file ({error}); nothing was loaded.") from None
    if not isinstance(document, dict):
        raise refusal(path, "format", "is missing")
    return document


def _unrepeated(path: str | PathLike[str], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = Counter(names).most_common(1)[0][0]
        raise refusal(path, repeated, "is there more than once")
    return members


def _digest(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _readable(document: dict[str, Any]) -> str:
    lines = [f"  {json.dumps(field)}: {_field_text(value)}" for field, value in document.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _field_text(value: Any) -> str:
    if isinstance(value, dict) and any(isinstance(part, list) for part in value.values()):
        inner = ",\n".join(f"    {json.dumps(key)}: {json.dumps(part)}" for key, part in value.items())
        return "{\n" + inner + "\n  }"
    if isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
        return "[\n" + ",\n".join(f"    {json.dumps(part)}" for part in value) + "\n  ]"
    return json.dumps(value)
