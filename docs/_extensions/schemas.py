"""What the reference takes from the code: the fields of saved files from their JSON Schemas, and signatures.

``.. schema-fields:: calibration`` lists every field with its type and its description. Results that functions
return, and that nobody makes, lose their signature: it would say nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from importlib.resources import files
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

RESULTS = (
    "ordinalrisk.RiskCurve",
    "ordinalrisk.selection.compare.Comparison",
    "ordinalrisk.selection.coverage_weights.CoverageWeights",
    "ordinalrisk.calibration.guarantees.Guarantee",
    "ordinalrisk.prediction.interval_set.Interval",
    "ordinalrisk.losses.IntervalLoss",
    "ordinalrisk.metrics.Estimate",
    "ordinalrisk.selection.trade_off.TradeOff",
)


class SchemaFields(SphinxDirective):
    """The fields of a kind of file."""

    required_arguments = 1
    option_spec: ClassVar[Any] = {"as-above": str.split}

    def run(self) -> list[nodes.Node]:
        """One list, with lists in it for fields that have fields."""
        name = f"saving/schemas/{self.arguments[0]}.schema.json"
        schema = json.loads(files("ordinalrisk").joinpath(name).read_text(encoding="utf-8"))
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
    about = nodes.definition("", nodes.paragraph("", field["description"]))
    if name not in shown_already:
        for part in _objects(field, defs):
            if len(_objects(field, defs)) > 1:
                about += nodes.paragraph("", part["description"])
            about += _fields(part, defs, shown_already)
    return nodes.definition_list_item("", term, about)


def _objects(field: dict[str, Any], defs: dict[str, Any]) -> list[dict[str, Any]]:
    """What has fields of its own in it."""
    found = _resolved(field, defs)
    if "properties" in found:
        return [found]
    inner = [
        *found.get("anyOf", []),
        *found.get("oneOf", []),
        *([found["items"]] if "items" in found else []),
    ]
    return [part for each in inner for part in _objects(each, defs)]


def _resolved(field: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    return defs[field["$ref"].rpartition("/")[2]] if "$ref" in field else field


def _type(field: dict[str, Any], defs: dict[str, Any]) -> str:
    """The type in words."""
    found = _resolved(field, defs)
    if "const" in found:
        return json.dumps(found["const"])
    if "enum" in found:
        return " or ".join(json.dumps(each) for each in found["enum"])
    for several in ("anyOf", "oneOf"):
        if several in found:
            kinds = dict.fromkeys(_type(each, defs) for each in found[several])
            return " or ".join(sorted(kinds, key=lambda kind: kind == "null"))
    if found["type"] == "array":
        return f"list of {_type(found['items'], defs)}"
    kinds = found["type"] if isinstance(found["type"], list) else [found["type"]]
    return " or ".join({"string": "text", "boolean": "true or false"}.get(kind, kind) for kind in kinds)


def without_signature(app: Sphinx, what: str, name: str, *_: Any) -> tuple[str, None] | None:
    """No parentheses behind what one is given and never makes."""
    return ("", None) if name in RESULTS else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive, and what becomes of signatures."""
    app.add_directive("schema-fields", SchemaFields)
    app.connect("autodoc-process-signature", without_signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
