"""JSON Schemas (draft 2020-12) of saved documents, generated from the types of their fields."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import defstruct
from msgspec.json import schema_components
from msgspec.structs import fields

from ordinalrisk.saving.calibration_document import CalibrationDocument
from ordinalrisk.saving.document_with_digests import Document, JsonObject
from ordinalrisk.saving.joint_file import JointDocument
from ordinalrisk.saving.recalibrator_document import RecalibratorDocument
from ordinalrisk.saving.run_documents import DriftDocument, MonitorDocument, OnlineDocument
from ordinalrisk.saving.shared_fields import Digest, about
from ordinalrisk.saving.triage_document import TriageDocument

KINDS: dict[str, type[Document]] = {
    "calibration": CalibrationDocument,
    "online": OnlineDocument,
    "monitor": MonitorDocument,
    "drift": DriftDocument,
    "recalibrator": RecalibratorDocument,
    "triage": TriageDocument,
    "joint": JointDocument,
}
_DIGESTS = "The SHA-256 of each field: of its JSON with sorted keys, no spaces and only ASCII."
_VERSION = "The version of ordinalrisk that wrote the file. It decides nothing."


def json_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of file: ``"calibration"``, ``"online"``, ``"monitor"``, and others.

    Examples
    --------
    >>> json_schema("monitor")["properties"]["recent"]["maxItems"]
    500
    """
    document = KINDS[kind]
    digests = defstruct("Digests", [(name, Digest) for name in document.all_fields()], bases=(JsonObject,))
    whole = defstruct(
        document.__name__,
        [
            ("format", Annotated[Literal[document.name], about("The kind of document.")]),
            ("schema_version", Annotated[Literal[document.version], about("The version of this schema.")]),
            ("package_version", Annotated[str, about(_VERSION)]),
            *((field.name, field.type) for field in fields(document)),
            ("digests", Annotated[digests, about(_DIGESTS)]),
        ],
        bases=(JsonObject,),
        namespace={"__doc__": document.__doc__},
    )
    _, parts = schema_components([whole], ref_template="#/$defs/{name}")
    root = parts.pop(document.__name__)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:ordinalrisk:schema:{kind}:{document.version}",
        **root,
        "title": document.name,
        "$defs": parts,
    }
