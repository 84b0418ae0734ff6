"""Calibrate on rows in memory, or on parts that stay on the machines of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from ordinalrisk.calibration.fingerprint import of_parts
from ordinalrisk.calibration.loss_steps import LossSteps
from ordinalrisk.calibration.promises import checked_more_alphas
from ordinalrisk.calibration.result import Calibration
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.checks.findings import rows_to_check
from ordinalrisk.curves.bracketing import RemoteParts, windows_around
from ordinalrisk.curves.windows import NO_STEPS, OrderedSteps
from ordinalrisk.execution.fold import SERIAL, Part, Serial
from ordinalrisk.inputs.batch import SummaryGroup
from ordinalrisk.inputs.column_roles import ScoreColumns
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.scattered_rows import ScatteredRows

if TYPE_CHECKING:
    from ordinalrisk.execution.dask.executor import DaskExecutor


def calibrate(
    spec: Spec,
    classes: Classes,
    source: Sequence[Part],
    executor: Serial | DaskExecutor = SERIAL,
    *,
    class_ratios: Any = None,
    more_alphas: Sequence[Any] = (),
    columns: ScoreColumns | None = None,
    check: bool = True,
) -> tuple[Calibration, ScatteredRows | None]:
    """Calibrate on rows with known labels, wherever they are; return a sample of them if they are checked.

    ``columns`` are the columns of the rows, if they are in files.
    """
    empty = LossSteps(spec, classes, class_ratios)
    more = checked_more_alphas(more_alphas, empty.costs, spec.relative)
    to_check = {"rows": rows_to_check(len(classes))} if check else {}
    if isinstance(executor, Serial):
        both = executor.fold(source, SummaryGroup(steps=empty, **to_check))
        calibration = both.steps.finish(columns)
    else:
        require_totals_suffice(empty)
        kept, both = executor.keep(source, empty, SummaryGroup(**to_check))
        calibration = finish_remotely(empty, kept, columns, more)
    return calibration, both.rows if check else None


def require_totals_suffice(steps: LossSteps) -> None:
    """Raise an error if the bound needs the steps of each row, which parts do not send."""
    if steps.needs_order:
        raise ValueError(
            'confidence_bound="betting" must know which row each step belongs to, which many parts do '
            'not send; take confidence_bound="hoeffding_bentkus", or calibrate on one machine.'
        )


def finish_remotely(
    empty: LossSteps,
    parts: RemoteParts,
    columns: ScoreColumns | None = None,
    more_alphas: tuple[Any, ...] = (),
) -> Calibration:
    """Calibrate on many parts; near the thresholds the result equals that of all rows at once."""
    first, spec = parts.first_look(), empty.spec
    sizes = first.sizes
    if not sizes.rows:
        raise ValueError("There are no rows to calibrate with.")
    rows = sizes.rows_in_order
    keys = [*product(dict.fromkeys(group for group, _ in rows), empty.labels)]
    digest = of_parts([digest for _, digest in sorted(sizes.digests.items())])
    made = partial(
        empty.assembled,
        rows,
        sizes.class_rows,
        digest=digest,
        columns=columns,
        more_alphas=more_alphas,
        stakes=sizes.stakes,
        score_counts=sizes.score_counts,
    )
    probes = {key: _Probe() for key in keys}
    probed = made(steps=probes)
    for alpha in [spec.alpha, *more_alphas]:
        spec.thresholds(probed, alpha)
    largest = {
        key: int(part.curve.bound / part.curve.unit)
        for key, part in zip(keys, probed.strata.parts, strict=True)
    }
    budgets = {key: probe.budgets for key, probe in probes.items() if sizes.steps.get(key)}
    return made(steps=windows_around(parts, first, budgets, largest))


@dataclass
class _Probe:
    """A stand-in for steps that are not known yet: it records the budgets for which a level is needed."""

    budgets: set[int] = field(default_factory=set)
    in_order: OrderedSteps = NO_STEPS

    def first_level_above(self, budget: int) -> float:
        self.budgets.add(budget)
        return 0.0
