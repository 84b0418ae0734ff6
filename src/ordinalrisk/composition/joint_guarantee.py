"""What holds for joint sets: the guarantee of each part, and whether all hold at once."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ordinalrisk.calibration.guarantees import Guarantee, guarantee_of
from ordinalrisk.composition.parts import Part
from ordinalrisk.display.tables import ColumnsByName, Table
from ordinalrisk.inputs.numbers import decimal_text

_WIDTH = 78


@dataclass(frozen=True)
class JointGuarantee(Table):
    r"""What holds for the sets of a :class:`~ordinalrisk.JointController`; ``print`` shows it in words.

    Attributes
    ----------
    parts : dict
        The guarantee of each controller by its name; with groups, of each controller and each column.
    at_once : bool
        With ``delta``: whether all of them hold at once with probability ``1 - delta``. If False, each has
        this confidence by itself.
    """

    parts: Mapping[str, Guarantee]
    at_once: bool = False

    @property
    def certified(self) -> bool:
        """Whether there are enough rows for every guarantee."""
        return all(part.certified for part in self.parts.values())

    def __str__(self) -> str:
        lines = []
        for name, part in self.parts.items():
            sentences = str(replace(part, saturated=False)).replace("\n", " ")  # other parts enlarge the sets
            lines.append(textwrap.fill(f"{name}: {sentences}", _WIDTH, subsequent_indent="  "))
        return "\n".join(filter(None, [*lines, textwrap.fill(self._together(), _WIDTH)]))

    def _together(self) -> str:
        if len(self.parts) < 2:
            return ""
        delta = next(iter(self.parts.values())).delta
        if all(part.delta is None for part in self.parts.values()):
            return "All of these hold for the same sets."
        if self.at_once and delta is not None:
            likely = decimal_text(1 - delta)
            return f"All of these hold for the same sets, together with probability at least {likely}."
        return "All of these hold for the same sets; each has its confidence by itself."

    def _columns(self) -> ColumnsByName:
        parts = [*self.parts.values()]
        return {
            "guarantee": [*self.parts],
            "alpha": [float(part.alpha) for part in parts],
            "rows": [part.n_rows for part in parts],
            "certified": [part.certified for part in parts],
        }

    def _words(self) -> str:
        return self._together()


def joint_guarantee(parts: Sequence[Part]) -> JointGuarantee:
    each = {part.full_name: guarantee_of(part.predictor.thresholds) for part in parts}
    return JointGuarantee(each, at_once=_hold_at_once(parts))


def _hold_at_once(parts: Sequence[Part]) -> bool:
    r"""Return whether one ``delta`` covers all guarantees together.

    All guarantees must share one family of sets :math:`C_\tau`. Let :math:`\tau^*` be
    the largest threshold at which every risk is within its ``alpha``; risks never fall in :math:`\tau`, and
    they are continuous from the left, so it is attained. If a guarantee fails, the joint threshold is above
    :math:`\tau^*`. Just above :math:`\tau^*` some risk :math:`r` exceeds its ``alpha``; which one it is does
    not depend on the rows. The threshold of ``r`` is at least the joint one, so the guarantee of ``r`` alone
    fails too, which has a probability of at most ``delta``.
    """
    first = parts[0]
    return len(parts) > 1 and all(
        part.spec.delta is not None
        and part.spec.delta == first.spec.delta
        and part.calibration.strata.is_one
        and part.calibration.shift is None
        and part.spec.side == first.spec.side
        and _same_levels(part, first)
        for part in parts
    )


def _same_levels(one: Part, other: Part) -> bool:
    """Return whether the sets of both are the same at each threshold."""
    mine, its = one.calibration.costs.gains, other.calibration.costs.gains
    tables = ("left", "right", "mode_weights", "has_price")
    alike = all(np.array_equal(getattr(mine, name), getattr(its, name)) for name in tables)
    return (
        alike
        and mine.bound == its.bound
        and one.spec.growth == other.spec.growth
        and one.calibration.recalibration == other.calibration.recalibration
    )
