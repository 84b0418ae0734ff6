"""Files of triages: exact numbers, read back only if they are consistent with each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import to_builtins

from ordinalrisk.calibration.binomial_tails import binomial_rejects
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.inputs.column_roles import ScoreColumns
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.numbers import as_fraction, from_json, to_json
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.saving.document_with_digests import FilePath, naming, require
from ordinalrisk.saving.shared_fields import saved_names
from ordinalrisk.saving.triage_document import SavedPart, TriageDocument
from ordinalrisk.triage.certifying import rows_needed, start_ranks
from ordinalrisk.triage.guarantee import Certified


def write(
    path: FilePath,
    spec: Spec,
    classes: Classes,
    parts: Sequence[Certified],
    columns: ScoreColumns | None,
    **evidence: Any,
) -> None:
    """Save thresholds and what they are for; ``evidence`` has the fingerprint and the seed."""
    groups: list[Any] = [part.group for part in parts if part.group is not None]
    saved_names(groups, "Group", "groups")
    values = {
        "classes": saved_names(classes.tolist()),
        "loss": spec.loss.to_dict(),
        "alpha": to_json(spec.alpha),
        "delta": to_json(spec.delta),
        "point": spec.growth.point,
        "parts": [
            {
                "group": group,
                "n_rows": part.n_rows,
                "threshold": {"hex": part.threshold.hex(), "decimal": repr(part.threshold)},
                "n_accepted": part.n_accepted,
                "total_loss": str(part.total_loss),
            }
            for group, part in zip(groups or [None], parts, strict=True)
        ],
        "columns": columns and columns.to_dict(),
        **evidence,
    }
    TriageDocument.write(values, path)


def read(path: FilePath) -> tuple[dict[str, Any], dict[str, Any]]:
    """Load a triage and check that it is consistent: the parameters, and what was found."""
    saved, field = TriageDocument.read(path), partial(naming, path)
    loss, classes, costs = saved.loss_on_classes(path)
    parameters = {"loss": loss, "classes": classes, "point": saved.point}
    for name in ("alpha", "delta"):
        with field(name):
            parameters[name] = from_json(getattr(saved, name))
    with field("delta"):
        spec = Spec(loss, parameters["alpha"], classes=classes, delta=parameters["delta"])
    with field("alpha"):
        spec.require_alpha(classes)
    with field("parts"):
        names = [part.group for part in saved.parts]
        require(len({*names}) == len(names), "must have distinct groups")
        require(names == [None] or None not in names, "must name each group, or have one part without a name")
        parts = [_certified(part, spec, costs) for part in saved.parts]
    with field("columns"):
        columns = None if saved.columns is None else ScoreColumns.from_dict(to_builtins(saved.columns))
        require(
            columns is None or len(columns.scores) == len(classes),
            "must have a column of scores for each class",
        )
    found = {"parts": parts, "classes": classes, "columns": columns}
    return parameters, found | {"data_blake3": saved.data_blake3, "seed": saved.shuffle_seed}


def _certified(part: SavedPart, spec: Spec, costs: CostTable) -> Certified:
    threshold, total = float.fromhex(part.threshold.hex), as_fraction(part.total_loss)
    n, n_accepted = part.n_rows, part.n_accepted
    require(part.threshold.decimal == repr(threshold), "has a threshold that differs from its decimals")
    least, most = {math.inf: (n, n), -math.inf: (0, 0)}.get(threshold, (1, n - 1))
    require(least <= n_accepted <= most, "accepts a number of rows that does not follow from the threshold")
    require((total / costs.unit).denominator == 1, "must lose a whole number of units of the loss")
    alpha, two_valued = as_fraction(spec.alpha) / costs.bound, costs.two_valued()
    delta = as_fraction(spec.delta)
    starts = start_ranks(n, alpha, delta, two_valued)
    needed = starts[0] if starts else rows_needed(n, alpha, delta, two_valued)
    require(total <= n_accepted * as_fraction(spec.alpha), "loses more than alpha on the accepted rows")
    if n_accepted:
        require(needed <= n_accepted, "accepts fewer rows than can certify alpha")
        require(threshold > 0, "has a threshold below which no row can be")
    if n_accepted and two_valued:
        missed, level = int(total / costs.bound), delta / len(starts)
        require(binomial_rejects(missed, n_accepted, alpha, level), "loses too much on them to certify alpha")
    return Certified(part.group, n, threshold, n_accepted, total, needed)
