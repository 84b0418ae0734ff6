"""What a calibration guarantees: in numbers, and printed in words."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import Any

from ordinalrisk.calibration.promises import HighProbability, Promise, too_few
from ordinalrisk.curves.strata import Stratum
from ordinalrisk.display.text_table import listed
from ordinalrisk.inputs.numbers import decimal_text

_WIDTH = 78
_TINY = 2
_PASS_CLUSTERS = (
    "Most groups have one or two rows: if they are patients or other units with several rows, pass them as "
    "clusters= instead."
)
_BOUNDS = {
    "binomial": "exact binomial bound",
    "hoeffding_bentkus": "Hoeffding-Bentkus bound",
    "betting": "betting bound",
    "dkw": "Dvoretzky-Kiefer-Wolfowitz bound",
}


@dataclass(frozen=True)
class Guarantee:
    r"""What holds for a new row.

    .. math:: E[\text{loss}] \le \alpha

    This is the paper's Theorem 1. ``print`` says it in words.

    Attributes
    ----------
    alpha : Fraction
        The expected loss is at most this (Theorem 1).
    n_rows, bound
        ``n`` and ``B``. Where clusters are the units, ``n`` counts them.
    certified : bool
        False where there are too few rows for ``alpha``: every set is the full scale.
    saturated : bool
        True where every set is a single label, since those of the calibration rows kept within the budget.
    calibration_risk : float or None
        The mean loss of the calibration rows at the threshold, by weight where they have weights. It is no
        estimate of the risk: the threshold was chosen on these rows.
    mean_weight : float or None
        The mean weight of the calibration rows, if they have weights.
    n_needed : int
        The fewest rows, or clusters, with which ``alpha`` can be certified.
    delta : Fraction or None
        ``alpha`` is kept with probability ``1 - delta`` over calibrations; if None, on average over them.
        Each ``alpha``, each group and each class by itself; with the bound ``"dkw"`` every ``alpha`` at once.
    bound_name : str or None
        The bound behind ``delta``.
    unit : {"row", "cluster"}
        What is exchangeable.
    shift : {"covariates", "labels"} or None
        How the population may have moved.
    randomized : bool
        Whether a coin decides about labels at the threshold.
    group, label
        The name of the group, and the true class, that this is about; None if about all.
    always_held : tuple
        Classes whose weights are so large that sets always hold them.
    parts : tuple of Guarantee
        That of each group, true class, or both, if each has its own.

    References
    ----------
    Xu, Guo, Wei. Conformal Risk Control for Ordinal Classification. UAI 2023: Theorem 1.
    """

    alpha: Fraction
    n_rows: int
    bound: Fraction
    certified: bool
    saturated: bool
    calibration_risk: float | None = None
    mean_weight: float | None = None
    n_needed: int = 0
    delta: Fraction | None = None
    bound_name: str | None = None
    unit: str = "row"
    shift: str | None = None
    randomized: bool = False
    group: Any = None
    label: Any = None
    always_held: tuple[Any, ...] = ()
    parts: tuple[Guarantee, ...] = ()

    def __str__(self) -> str:
        sentences = [self._promise(), self._exception()]
        return "\n".join(
            textwrap.fill(sentence, _WIDTH, break_on_hyphens=False) for sentence in sentences if sentence
        )

    def _promise(self) -> str:
        cluster = self.unit == "cluster"
        what = f"{'mean ' if cluster else ''}loss of a new {self.unit}{self._whose()}"
        return (
            f"{self._likely()} expected {what} is at most {self._at_most()}, {self.condition()} "
            f"({self._numbers()})."
        )

    def _likely(self) -> str:
        if self.delta is None:
            return "The"
        drawn = "draw and the shuffle" if self.bound_name in ("betting", None) else "draw"
        at_once = " for every alpha at once," if self.bound_name == "dkw" else ""
        likely = f"With probability {decimal_text(1 - self.delta)} over the {drawn} of the calibration "
        return f"{likely}{self.unit}s,{at_once} the"

    def _whose(self) -> str:
        """Of which group, and of which true class."""
        if not self.parts:
            group = "" if self.group is None else f" of group {self.group!r}"
            return group + ("" if self.label is None else f" whose true class is {self.label!r}")
        groups = {part.group for part in self.parts} - {None}
        labels = {part.label for part in self.parts} - {None}
        each = f" of each of {len(groups)} groups" if groups else ""
        each += f" given each of {len(labels)} true classes" if labels else ""
        return each if self.delta is None else f"{each}, by itself,"

    def _at_most(self) -> str:
        alphas = dict.fromkeys((part.label, part.alpha) for part in self.parts)
        if len({alpha for _, alpha in alphas}) < 2:
            return decimal_text(self.alpha)
        return listed(f"{decimal_text(alpha)} for {label!r}" for label, alpha in alphas)

    def condition(self) -> str:
        """On what the promise depends."""
        rows = "clusters" if self.unit == "cluster" else "rows"
        if self.shift == "covariates":
            return "if the weights are the likelihood ratios of its population to that of the rows"
        if self.shift == "labels":
            return "if only the shares of the classes have changed, by the ratios that were given"
        kind = " of its kind" if self.parts else ""
        if self.delta is not None:
            return f"if it and the calibration {rows}{kind} are independent draws from one population"
        return f"if it is exchangeable with the calibration {rows}{kind}"

    def _numbers(self) -> str:
        counts = [part.n_rows for part in self.parts] or [self.n_rows]
        n = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
        text = f"n = {n} {self.unit}s, losses from 0 to B = {decimal_text(self.bound)}"
        if self.delta is None:
            return text
        bound = "" if self.bound_name is None else f"; {_BOUNDS[self.bound_name]}"
        return f"{text}{bound}{'' if self.bound_name == 'dkw' else '; for this alpha by itself'}"

    def _exception(self) -> str:
        """What is to be said beside the promise."""
        if self.parts:
            return self._uncertified_parts()
        if not self.certified:
            few = "They are too few, so every set holds all labels."
            return f"{few} At least {self.n_needed} {self.unit}s are needed."
        if self.always_held:
            return self._always_held()
        if not self.saturated:
            return ""
        return (
            f"Every set is a single label; on the calibration {self.unit}s their mean loss was "
            f"{self.calibration_risk:.6g}."
        )

    def _always_held(self) -> str:
        if not self.always_held:
            return ""
        held = listed(map(repr, self.always_held))
        return f"The weights of {held} are too large for so few rows, so sets always hold these classes."

    def _uncertified_parts(self) -> str:
        names = [part.name for part in self.parts if not part.certified]
        if not names:
            return ""
        held = "so their sets hold all labels" if self.parts[0].label is None else "so sets always hold them"
        needed = max(part.n_needed for part in self.parts if not part.certified)
        few = f"There are too few {self.unit}s of {listed(names)}, {held}; {needed} would do."
        return f"{few} {_PASS_CLUSTERS}" if self._groups_are_tiny() else few

    def _groups_are_tiny(self) -> bool:
        """Whether most groups have one or two rows, as patients have."""
        in_group: dict[Any, int] = {}
        for part in self.parts:
            if part.group is not None:
                in_group[part.group] = in_group.get(part.group, 0) + part.n_rows
        return bool(in_group) and self.unit == "row" and median(in_group.values()) <= _TINY

    @property
    def warning(self) -> str | None:
        """What to say where there are too few rows, if there are."""
        if self.certified:
            return self._always_held() or None
        if self.parts:
            return self._uncertified_parts()
        likely = "" if self.delta is None else f" and delta={decimal_text(self.delta)}"
        return too_few(self.alpha, self.bound, self.n_rows, self.n_needed, self.unit, likely)

    @property
    def name(self) -> str:
        """The group and the true class that this is about."""
        if self.group is not None and self.label is not None:
            return f"{self.label!r} in {self.group!r}"
        return repr(self.label if self.group is None else self.group)


def guarantee_of(
    promise: Promise,
    stratum: Stratum,
    alpha: Fraction,
    threshold: float,
    *,
    unit: str,
    shift: str | None,
    randomized: bool,
    group: Any,
    label: Any,
) -> Guarantee:
    """The guarantee of one stratum at its threshold, in numbers."""
    curve = stratum.curve
    likely = promise if isinstance(promise, HighProbability) else None
    return Guarantee(
        alpha=alpha,
        n_rows=curve.n_rows,
        bound=curve.bound,
        certified=threshold != -math.inf,
        saturated=threshold == math.inf,
        calibration_risk=curve.risk(threshold) if curve.weight else None,
        mean_weight=None if shift is None or not curve.n_rows else float(curve.weight / curve.n_rows),
        n_needed=promise.rows_needed(stratum, alpha),
        delta=None if likely is None else likely.delta,
        bound_name=None if likely is None else likely.bound_for(stratum),
        unit=unit,
        shift=shift,
        randomized=randomized,
        group=group,
        label=label,
    )


def guarantee_of_all(parts: Sequence[Guarantee]) -> Guarantee:
    """That of all strata together: the weakest of each."""
    first = parts[0]
    names = {part.bound_name for part in parts}
    return Guarantee(
        alpha=max(part.alpha for part in parts),
        n_rows=sum(part.n_rows for part in parts),
        bound=max(part.bound for part in parts),
        certified=all(part.certified for part in parts),
        saturated=all(part.saturated for part in parts),
        mean_weight=None if first.shift is None else _mean_weight(parts),
        n_needed=max(part.n_needed for part in parts),
        delta=first.delta,
        bound_name=names.pop() if len(names) == 1 else None,
        unit=first.unit,
        shift=first.shift,
        randomized=first.randomized,
        parts=tuple(parts),
    )


def _mean_weight(parts: Sequence[Guarantee]) -> float:
    return sum(part.mean_weight * part.n_rows for part in parts if part.mean_weight is not None) / sum(
        part.n_rows for part in parts
    )
