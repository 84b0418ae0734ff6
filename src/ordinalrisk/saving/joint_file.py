"""Files of joint calibrations: the calibration of each guarantee, and its name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, ClassVar

from msgspec import Meta

from ordinalrisk.composition.parts import Part, require_joinable
from ordinalrisk.files.places import located
from ordinalrisk.saving import calibration_file
from ordinalrisk.saving.calibration_document import CalibrationDocument
from ordinalrisk.saving.document_with_digests import Document, FilePath, JsonObject, naming, require
from ordinalrisk.saving.shared_fields import about


class SavedPart(JsonObject):
    """A guarantee of joint sets."""

    name: Annotated[str, about("What the guarantee is called.")]
    partition: Annotated[str | None, about("The column of groups; empty if unnamed, null without groups.")]
    calibration: Annotated[CalibrationDocument, about("The calibration, with the fields of its own file.")]


class JointDocument(Document):
    """A saved joint calibration, as JointController.save writes it."""

    name: ClassVar = "ordinalrisk joint calibration"
    version: ClassVar = 1

    parts: Annotated[list[SavedPart], Meta(min_length=1), about("The guarantees that the sets keep.")]


def write(parts: Sequence[Part], path: FilePath, key: FilePath | None = None) -> None:
    """Save the calibrations; a private key signs them."""
    saved = [
        {
            "name": part.name,
            "partition": part.partition,
            "calibration": calibration_file.document_fields(part.spec, part.calibration),
        }
        for part in parts
    ]
    JointDocument.write({"parts": saved}, path, key)


def read(path: FilePath, key: FilePath | None = None) -> list[Part]:
    """Load the calibrations and check that they belong together."""
    parts: list[Part] = []
    for number, saved in enumerate(JointDocument.read(path, key).parts):
        spec, calibration = calibration_file.loaded(saved.calibration, path, f"parts[{number}].")
        parts.append(Part(saved.name, spec, calibration, saved.partition))
    with naming(path, "parts"):
        require_joinable(parts)
        for part in parts:
            grouped = part.calibration.strata.groups is not None
            require((part.partition is not None) == grouped, "must name the columns of groups")
    return parts


def is_joint(path: FilePath) -> bool:
    """Return whether a file is a joint calibration; False for what can't be read."""
    try:
        document = json.loads(located(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("format") == JointDocument.name
