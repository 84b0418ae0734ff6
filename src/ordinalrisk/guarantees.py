"""What a calibration guarantees: in numbers, and printed in words."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ordinalrisk.calibration import HighProbability, Promise, too_few
from ordinalrisk.exact import decimal_text
from ordinalrisk.strata import Stratum
from ordinalrisk.text_table import listed

_WIDTH = 78
_BOUNDS = {
    "binomial": "exact binomial bound",
    "hoeffding_bentkus": "Hoeffding-Bentkus bound",
    "betting": "betting bound",
}


@dataclass(frozen=True)
class Guarantee:
    r"""What holds for a new case.

    .. math:: \alpha - \frac{(M + 2)\,B}{n + 1} \;\le\; E[\text{loss}] \;\le\; \alpha

    The upper bound is the paper's Theorem 1, the lower one its Theorem 4. ``print`` says it in words.

    Attributes
    ----------
    alpha : Fraction
        The expected loss is at most this (Theorem 1).
    lower_bound : Fraction or None
        The expected loss is at least this, ``alpha - (M + 2) B / (n + 1)``, for independent rows of which
        never more than ``M`` step at one level (Theorem 4, with the ``M`` observed), or
        ``alpha - B / (n + 1)`` for randomized sets; None where no theorem applies.
    n_rows, bound, most_tied
        ``n``, ``B`` and ``M``. Where clusters are the units, ``n`` counts them.
    certified : bool
        False where there are too few rows for ``alpha``: every set is the full scale.
    saturated : bool
        True where even single labels keep within ``alpha``: the realised risk stays below it.
    n_needed : int
        The fewest rows, or clusters, with which ``alpha`` can be certified.
    delta : Fraction or None
        ``alpha`` is kept with probability ``1 - delta`` over calibrations; if None, on average over them.
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
    Xu, Guo, Wei. Conformal Risk Control for Ordinal Classification. UAI 2023: Theorems 1 and 4.
    """

    alpha: Fraction
    lower_bound: Fraction | None
    n_rows: int
    bound: Fraction
    most_tied: int
    certified: bool
    saturated: bool
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
        return "\n".join(textwrap.fill(sentence, _WIDTH) for sentence in sentences if sentence)

    def _promise(self) -> str:
        likely = (
            "The"
            if self.delta is None
            else f"With probability {decimal_text(1 - self.delta)} over calibrations, the"
        )
        cluster = self.unit == "cluster"
        what = f"{'mean ' if cluster else ''}loss of a new {'cluster' if cluster else 'case'}{self._whose()}"
        return (
            f"{likely} expected {what} is at most {self._at_most()}, {self.condition()} ({self._numbers()})."
        )

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
            return "if only the shares of the classes differ from those of the calibration rows, as weighted"
        likeness = "drawn like" if self.delta is not None else "exchangeable with"
        return f"if it is {likeness} the calibration {rows}{' of its kind' if self.parts else ''}"

    def _numbers(self) -> str:
        counts = [part.n_rows for part in self.parts] or [self.n_rows]
        n = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
        text = f"n = {n} {self.unit}s, losses from 0 to B = {decimal_text(self.bound)}"
        return text if self.bound_name is None else f"{text}; {_BOUNDS[self.bound_name]}"

    def _exception(self) -> str:
        """What is to be said beside the promise."""
        if self.parts:
            return self._uncertified_parts()
        if not self.certified:
            few = "They are too few, so every set holds all labels."
            return f"{few} At least {self.n_needed} {self.unit}s are needed."
        if self.always_held:
            return self._always_held()
        if self.saturated:
            return f"By the calibration {self.unit}s, single labels already achieve it."
        if self.lower_bound is None or self.lower_bound <= 0:
            return ""
        least = f"It is at least {float(self.lower_bound):.6g} if the {self.unit}s are independent"
        if self.randomized:
            return f"{least}: a coin spends what is left at the threshold."
        return (
            f"{least} and never more than M = {self.most_tied} of them, the most seen here, change their "
            "loss at one level (Theorem 4)."
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
        return f"There are too few {self.unit}s of {listed(names)}, {held}; {needed} would do."

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
    inner = math.isfinite(threshold) and shift is None and (randomized or curve.is_whole)
    slack = (1 if randomized else curve.most_tied + 2) * curve.bound / (curve.n_rows + 1)
    likely = promise if isinstance(promise, HighProbability) else None
    return Guarantee(
        alpha=alpha,
        lower_bound=alpha - slack if inner and likely is None else None,
        n_rows=curve.n_rows,
        bound=curve.bound,
        most_tied=curve.most_tied,
        certified=threshold != -math.inf,
        saturated=threshold == math.inf,
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
        lower_bound=None,
        n_rows=sum(part.n_rows for part in parts),
        bound=max(part.bound for part in parts),
        most_tied=max(part.most_tied for part in parts),
        certified=all(part.certified for part in parts),
        saturated=all(part.saturated for part in parts),
        n_needed=max(part.n_needed for part in parts),
        delta=first.delta,
        bound_name=names.pop() if len(names) == 1 else None,
        unit=first.unit,
        shift=first.shift,
        randomized=first.randomized,
        parts=tuple(parts),
    )
