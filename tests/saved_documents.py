"""Saved documents, edited by someone who computes the digests again."""

import hashlib
import json

HEADER = {"format", "schema_version", "package_version"}


def digest(value):
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def with_digests(document):
    """The document with digests that are right again."""
    rest = {field: value for field, value in document.items() if field != "digests"}
    return rest | {"digests": {field: digest(value) for field, value in rest.items()}}


def rewrite(path, **changes):
    """Change fields of a saved file; return the names of its fields without those of the header."""
    document = json.loads(path.read_text(encoding="utf-8")) | changes
    path.write_text(json.dumps(with_digests(document)), encoding="utf-8")
    return {*document} - HEADER - {"digests"}
