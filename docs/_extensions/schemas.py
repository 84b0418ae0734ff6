"""What the reference takes from the code: the fields of saved files from their JSON Schemas, and signatures.

``.. schema-fields:: calibration`` lists every field with its type and its description. The JSON Schemas
are generated from the types of the fields and written to ``reference/schemas`` for download. Classes that
functions return and nobody constructs lose their signature, which would say nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ordinalrisk.saving.json_schemas import KINDS, json_schema

RESULTS = (
    "ordinalrisk.triage.triaged_rows.TriagedRows",
    "ordinalrisk.RiskCurve",
    "ordinalrisk.jobs.Decided",
    "ordinalrisk.jobs.FileEvaluation",
    "ordinalrisk.jobs.JointEvaluation",
    "ordinalrisk.composition.joint_guarantee.JointGuarantee",
    "ordinalrisk.joint_controller.Binding",
    "ordinalrisk.jobs.Predicted",
    "ordinalrisk.display.tables.Table",
    "ordinalrisk.metrics.ClassTable",
    "ordinalrisk.metrics.GroupTable",
    "ordinalrisk.selection.choose_alpha.ExactAlpha",
    "ordinalrisk.selection.compare.Comparison",
    "ordinalrisk.selection.compare.Comparisons",
    "ordinalrisk.selection.coverage_weights.CoverageWeights",
    "ordinalrisk.calibration.guarantees.Guarantee",
    "ordinalrisk.prediction.decisions.Decisions",
    "ordinalrisk.prediction.interval_set.Interval",
    "ordinalrisk.losses.IntervalLoss",
    "ordinalrisk.metrics.Estimate",
    "ordinalrisk.evaluation.far_off.FarOff",
    "ordinalrisk.selection.trade_off.TradeOff",
    "ordinalrisk.triage.controller.ShareCurve",
    "ordinalrisk.triage.guarantee.Certified",
    "ordinalrisk.triage.guarantee.TriageGuarantee",
)


class SchemaFields(SphinxDirective):
    """The fields of a kind of file."""

    required_arguments = 1
    option_spec: ClassVar[Any] = {"as-above": str.split}

    def run(self) -> list[nodes.Node]:
        """One list, with lists in it for fields that have fields."""
        schema = json_schema(self.arguments[0])
        shown_already = {"digests", *self.options.get("as-above", [])}
        return [_fields(schema, schema["$defs"], shown_already)]


def _fields(
    part: dict[str, Any], defs: dict[str, Any], shown_already: Collection[str]
) -> nodes.definition_list:
    items = [_item(name, field, defs, shown_already) for name, field in part["properties"].items()]
    return nodes.definition_list("", *items, classes=["simple", "options"])


def _item(
    name: str, field: dict[str, Any], defs: dict[str, Any], shown_already: Collection[str]
) -> nodes.definition_list_item:
    term = nodes.term(
        "", "", nodes.literal("", name), nodes.Text(" "), nodes.emphasis("", _type(field, defs))
    )
    about = nodes.definition("", nodes.paragraph("", field.get("description", "The kind of loss.")))
    if name not in shown_already:
        for part in _objects(field, defs):
            if len(_objects(field, defs)) > 1:
                about += nodes.paragraph("", part["description"])
            about += _fields(part, defs, shown_already)
    return nodes.definition_list_item("", term, about)


def _objects(field: dict[str, Any], defs: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a field that have fields of their own."""
    found = _resolved(field, defs)
    if "properties" in found:
        return [found]
    inner = [*found.get("anyOf", []), *([found["items"]] if "items" in found else [])]
    return [part for each in inner for part in _objects(each, defs)]


def _resolved(field: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    return defs[field["$ref"].rpartition("/")[2]] if "$ref" in field else field


def _type(field: dict[str, Any], defs: dict[str, Any]) -> str:
    """Return the type in words."""
    found = _resolved(field, defs)
    if "enum" in found:
        return " or ".join(json.dumps(each) for each in found["enum"])
    if "anyOf" in found:
        kinds = dict.fromkeys(_type(each, defs) for each in found["anyOf"])
        if "number" in kinds:
            kinds.pop("integer", None)
        return " or ".join(sorted(kinds, key=lambda kind: kind == "null"))
    if found["type"] == "array":
        return f"list of {_type(found['items'], defs)}"
    kind: str = found["type"]
    return {"string": "text", "boolean": "true or false"}.get(kind, kind)


def write_schemas(app: Sphinx) -> None:
    """Write the JSON Schema of each kind of file."""
    folder = Path(app.srcdir) / "reference" / "schemas"
    folder.mkdir(exist_ok=True)
    for kind in KINDS:
        text = json.dumps(json_schema(kind), indent=2) + "\n"
        (folder / f"{kind}.schema.json").write_text(text, encoding="utf-8")


def without_signature(app: Sphinx, what: str, name: str, *_: Any) -> tuple[str, None] | None:
    """Drop the signature of a class that users never construct."""
    return ("", None) if name in RESULTS else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive, the schemas and the signatures."""
    app.add_directive("schema-fields", SchemaFields)
    app.connect("builder-inited", write_schemas)
    app.connect("autodoc-process-signature", without_signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
