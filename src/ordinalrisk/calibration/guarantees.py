"""The guarantee of a calibration, in numbers and in words."""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING, Any

from ordinalrisk.calibration.confidence_bounds import BOUNDS, ConfidenceBound
from ordinalrisk.calibration.promises import share_text, too_few, too_little
from ordinalrisk.calibration.warning_category import CalibrationWarning, TooFewRowsWarning
from ordinalrisk.display.tables import ColumnsByName, Table
from ordinalrisk.display.text_table import listed
from ordinalrisk.inputs.numbers import decimal_text

if TYPE_CHECKING:
    from ordinalrisk.calibration.result import Calibration
    from ordinalrisk.calibration.row_thresholds import Thresholds

_WIDTH = 78
_TINY = 2
_LARGEST = {
    "weight": "its expected {mean}weight",
    "distance": "the largest possible distance from its label",
    "loss": "the largest loss that its label can have",
}


SATURATED = {
    None: "is a single label",
    "upper": "ends at its point label",
    "lower": "starts at its point label",
}
"""What sets are at the highest threshold, by the side that is controlled."""
FULL = {
    None: "includes all labels",
    "upper": "reaches up to the last label",
    "lower": "reaches down to the first label",
}
"""What sets are where nothing can be certified, by the side that is controlled."""


@dataclass(frozen=True)
class Guarantee(Table):
    r"""What holds for new rows (paper, Theorem 1).

    .. math:: E[\text{loss}] \le \alpha

    ``print`` shows it in words. Notebooks and data frames show one row for each part, or a single row.

    Attributes
    ----------
    alpha : Fraction
        The largest expected loss.
    n_rows, bound
        ``n`` and ``B``. With clusters, ``n`` counts clusters.
    certified : bool
        False if there are too few rows for ``alpha``: every set is the full scale.
    saturated : bool
        True if every set is a single label, because single labels keep the calibration loss within the
        budget; with a side, if that end of every set is its point label.
    calibration_risk : float or None
        The mean loss of the calibration rows at the threshold, weighted if they have weights. It does not
        estimate the risk, because the threshold was chosen on these rows.
    mean_weight : float or None
        The mean weight of the calibration rows, if they have weights.
    n_needed : int
        The fewest rows, or clusters, that can certify ``alpha``.
    delta : Fraction or None
        The guarantee holds with probability ``1 - delta`` over calibrations, or on average over them if None.
        The probability is for each ``alpha``, group and class separately; with the bound ``"dkw"``, for every
        ``alpha`` at once.
    bound_name : str or None
        The bound behind ``delta``.
    unit : {"row", "cluster"}
        What must be exchangeable.
    shift : {"covariates", "labels"} or None
        How the population may have shifted.
    randomized : bool
        Whether labels at the threshold are included at random.
    group, label
        The group and the true class that this guarantee is for; None if it is for all.
    pool : tuple
        The classes whose rows this guarantee is for together, if several share a threshold.
    pooled_by_count : bool
        Whether pools follow from the numbers of rows. Then the guarantee of a pool is an average over all
        draws of the rows in which the counts of the calibration rows and the new row form this pool.
    exempt : bool
        Whether this true class has no guarantee.
    always_held : tuple
        Classes with weights so large that every set includes them.
    parts : tuple of Guarantee
        The guarantee of each group, true class or both, if each has its own.
    measure : {"weight", "distance", "loss"} or None
        What ``alpha`` is a share of, if it is a share:
        :math:`E[\text{loss}] \le \alpha\,E[\text{largest loss}]`.
    stake : float or None
        The most that the calibration rows can lose together, if ``alpha`` is a share. Then
        ``calibration_risk`` is a share too, and ``n_needed`` counts rows that can lose ``B``.
    one_cost : bool
        Whether every miss of a true class costs the same. If not, the loss says how far off sets are, and
        nothing more is guaranteed about the share of sets that miss the truth than follows from the expected
        loss.
    recalibration : str or None
        The map from scores to probabilities, and the number of rows that it was fitted on.
    side : {"upper", "lower"} or None
        The only end of sets that the guarantee is about. With ``"upper"``, sets that lie above the truth cost
        nothing.

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
    pool: tuple[Any, ...] = ()
    pooled_by_count: bool = False
    exempt: bool = False
    always_held: tuple[Any, ...] = ()
    parts: tuple[Guarantee, ...] = ()
    measure: str | None = None
    stake: float | None = None
    one_cost: bool = True
    recalibration: str | None = None
    side: str | None = None

    def __str__(self) -> str:
        no_coverage = (
            "" if self.one_cost else "Nothing more is guaranteed about the share of sets that miss the truth."
        )
        sentences = [self._promise(), no_coverage, self._recalibrated(), self._exception(), self._by_count()]
        return "\n".join(
            textwrap.fill(sentence, _WIDTH, break_on_hyphens=False) for sentence in sentences if sentence
        )

    def _columns(self) -> ColumnsByName:
        rows = [*(self.parts or [self])]
        names = {name: [getattr(part, name) for part in rows] for name in ("group", "label")}
        pools = [", ".join(map(str, part.pool)) for part in rows]
        return {
            **{name: values for name, values in names.items() if values[0] is not None},
            **({"pool": pools} if any(pools) else {}),
            "alpha": [None if part.exempt else float(part.alpha) for part in rows],
            f"{self.unit}s": [part.n_rows for part in rows],
            f"{self.unit}s_needed": [part.n_needed for part in rows],
            "certified": [part.certified and not part.exempt for part in rows],
            "largest_loss": [float(part.bound) for part in rows],
            "calibration_risk": [part.calibration_risk for part in rows],
        }

    def _words(self) -> str:
        return " ".join(str(self).split("\n"))

    def _promise(self) -> str:
        mean = "mean " if self.unit == "cluster" else ""
        at_most, weighs = f"at most {self._at_most()}", ""
        if self.measure == "weight":
            at_most, weighs = "at most that share", f"{at_most} of the total weight is missed: "
        if self.measure is not None:
            at_most += f" of {_LARGEST[self.measure].format(mean=mean)}"
        text = (
            f"{self._for_each()}{self._likely()}{weighs}the expected {mean}loss of a new {self.unit}"
            f"{self._of_part()}{self._of_side()} is{self._on_average()} {at_most}, {self.condition()} "
            f"({self._numbers()})."
        )
        return text[0].upper() + text[1:]

    def _for_each(self) -> str:
        promised = [part for part in self.parts if not part.exempt]
        groups = {part.group for part in promised} - {None}
        labels = {part.label for part in promised} - {None}
        pools = {part.pool or (part.label,) for part in promised}
        kinds = "pools of true classes" if any(part.pool for part in promised) else "true classes"
        each = [f"in each of {len(groups)} groups"] if groups else []
        each += [f"for each of {len(pools)} {kinds}"] if labels else []
        by_itself = "" if self.delta is None else " by itself"
        return f"{' and '.join(each)}{by_itself}, " if each else ""

    @property
    def _bound(self) -> ConfidenceBound | None:
        return None if self.bound_name is None else BOUNDS[self.bound_name]

    @property
    def _holds_at_once(self) -> bool:
        return self._bound is not None and self._bound.every_alpha

    def _likely(self) -> str:
        if self.delta is None:
            return ""
        shuffled = self._bound is None or self._bound.threshold is not None
        drawn = "draw and the shuffle" if shuffled else "draw"
        at_once = " for every alpha at once," if self._holds_at_once else ""
        likely = (
            f"with probability at least {decimal_text(1 - self.delta)} over the {drawn} of the calibration "
        )
        return f"{likely}{self.unit}s,{at_once} "

    def _of_part(self) -> str:
        group = "" if self.group is None else f" of group {self.group!r}"
        if self.pool:
            return f"{group} with one of the true classes {listed(map(repr, self.pool))}"
        return group + ("" if self.label is None else f" with true class {self.label!r}")

    def _of_side(self) -> str:
        if self.side is None:
            return ""
        return f" from sets that lie {'below' if self.side == 'upper' else 'above'} the truth"

    def _at_most(self) -> str:
        text = decimal_text if self.measure is None else share_text
        alphas = dict.fromkeys((part.label, part.alpha) for part in self.parts if not part.exempt)
        if len({alpha for _, alpha in alphas}) < 2:
            return text(self.alpha)
        return listed(f"{text(alpha)} for {label!r}" for label, alpha in alphas)

    def _on_average(self) -> str:
        return ", on average over all draws that form its pool," if self._formed_by_count else ""

    def condition(self) -> str:
        """State the condition under which the guarantee holds."""
        if self.shift == "covariates":
            ratios = "the likelihood ratios of the new population to that of the calibration rows"
            return f"provided that the weights are {ratios}"
        if self.shift == "labels":
            return "provided that only the shares of the classes have changed, by the ratios that were given"
        others = f"the calibration {self.unit}s{self._of_its_kind()}"
        if self.delta is not None:
            return f"provided that the {self.unit} and {others} are independent draws from one population"
        return f"provided that the {self.unit} is exchangeable with {others}"

    def _of_its_kind(self) -> str:
        """Say which calibration rows a new row is compared with."""
        parts = self.parts or (self,)
        kinds = [] if parts[0].group is None else ["group"]
        if parts[0].label is not None:
            kinds.append("pool of true classes" if any(part.pool for part in parts) else "true class")
        return f" of its {' and '.join(kinds)}" if kinds else ""

    def _numbers(self) -> str:
        parts = [part for part in self.parts if not part.exempt]
        n = _from_to([part.n_rows for part in parts or [self]])
        each = f"{self.unit}s each" if parts else f"{self.unit}s"
        text = f"n = {n} {each}, losses from 0 to B = {decimal_text(self.bound)}"
        stakes = [part.stake for part in parts or [self] if part.stake is not None]
        if stakes:
            text += f", largest losses that sum to {_from_to(stakes)}"
        if self.delta is None:
            return text
        bound = "" if self._bound is None else f"; {self._bound.words} bound"
        return f"{text}{bound}{'' if self._holds_at_once else '; for this alpha by itself'}"

    def _recalibrated(self) -> str:
        if self.recalibration is None:
            return ""
        return f"Scores are recalibrated first: {self.recalibration}, none of which may be a calibration row."

    def _exception(self) -> str:
        """Say where sets include all labels or a single one."""
        if self.parts:
            return " ".join(filter(None, (self._pools(), self._exempt(), self._uncertified_parts())))
        if self.exempt:
            return "There is no guarantee for this class."
        if not self.certified:
            few = f"There are too few of them, so every set {FULL[self.side]}."
            return f"{few} At least {self.n_needed} {self.unit}s are needed{self._or_more}."
        if self.always_held or not self.saturated:
            return self._always_held()
        lost = "mean loss was" if self.stake is None else "loss, as a share of the largest possible one, was"
        return (
            f"Every set {SATURATED[self.side]}; on the calibration {self.unit}s their {lost} "
            f"{self.calibration_risk or 0:.6g}."
        )

    @property
    def _or_more(self) -> str:
        own_class = self.label is not None or (self.parts and self.parts[0].label is not None)
        if self.stake is None or own_class:
            return ""
        return f" if each of them can lose B = {decimal_text(self.bound)}, more if some can lose less"

    def _always_held(self) -> str:
        if not self.always_held:
            return ""
        held = listed(map(repr, self.always_held))
        return f"The weights of {held} are too large for so few rows, so every set includes these classes."

    def _pools(self) -> str:
        """Name the classes that share a threshold."""
        pools = dict.fromkeys((part.group, part.pool) for part in self.parts if len(part.pool) > 1)
        texts = [
            listed(map(repr, pool)) + ("" if group is None else f" in {group!r}") for group, pool in pools
        ]
        if not texts:
            return ""
        together = "; ".join(texts)
        return f"These classes share a threshold, and the guarantee is for their rows together: {together}."

    @property
    def _formed_by_count(self) -> bool:
        return self.pooled_by_count and any(part.pool for part in self.parts or [self])

    def _by_count(self) -> str:
        """Say over what the guarantee is an average if the numbers of rows formed a pool."""
        if not self._formed_by_count:
            return ""
        return (
            "These pools follow from row counts, so the guarantee of such a pool is an average over all "
            "draws in which the counts of the calibration rows and the new row form it. It need not hold "
            "for the counts of this calibration alone."
        )

    def _exempt(self) -> str:
        names = dict.fromkeys(repr(part.label) for part in self.parts if part.exempt)
        return f"There is no guarantee for {listed(names)}." if names else ""

    def _uncertified_parts(self) -> str:
        few = [*{part.name: part for part in self.parts if not part.certified}.values()]
        if not few:
            return ""
        held = (
            "so their sets include all labels"
            if self.parts[0].label is None
            else "so every set includes them"
        )
        needed = max(part.n_needed for part in few)
        text = f"There are too few {self.unit}s of {listed(part.name for part in few)}, {held}; at least "
        text += f"{needed} are needed{self._or_more}{self._numbers_of(few)}."
        return text

    def _numbers_of(self, few: Sequence[Guarantee]) -> str:
        """Say how many rows each of these true classes has."""
        if few[0].label is None:
            return ""
        return f", and there are {listed(str(part.n_rows) for part in few)}"

    def _remedies(self) -> str:
        """Say what can be done about true classes with too few rows."""
        few = [part for part in self.parts if not part.certified and part.label is not None]
        if not few:
            return ""
        exempt = "`exempt_classes` names classes without a guarantee."
        if few[0].pool or self.delta is not None or self.unit != "row":
            return f" {exempt}"
        return f" `pool_classes=True` lets adjacent classes share a threshold, and {exempt}"

    @property
    def warning(self) -> str | None:
        """The warning if there are too few rows, else None."""
        if self.certified:
            return self._always_held() or None
        if self.parts:
            return self._uncertified_parts() + self._remedies()
        likely = "" if self.delta is None else f" and delta={decimal_text(self.delta)}"
        if self.stake is None:
            return too_few(self.alpha, self.bound, self.n_rows, self.n_needed, self.unit, likely)
        return too_little(self.alpha, self.bound, self.n_rows, self.n_needed, self.stake, self.unit, likely)

    @property
    def name(self) -> str:
        """The names of the group and the true class that this guarantee is for."""
        if len(self.pool) > 1:
            together = f"{listed(map(repr, self.pool))} together"
            return together if self.group is None else f"{together} in {self.group!r}"
        if self.group is not None and self.label is not None:
            return f"{self.label!r} in {self.group!r}"
        return repr(self.label if self.group is None else self.group)


def _from_to(numbers: Sequence[float]) -> str:
    lowest, highest = (
        f"{number:.6g}" if isinstance(number, float) else f"{number}"
        for number in (min(numbers), max(numbers))
    )
    return lowest if lowest == highest else f"{lowest} to {highest}"


def guarantee_of(thresholds: Thresholds) -> Guarantee:
    """Return what holds for new rows with these thresholds."""
    calibration, promise = thresholds.calibration, thresholds.promise
    strata, labels = calibration.strata, calibration.classes.tolist()
    recalibration = calibration.recalibration
    parts = []
    for own, (part, pool), alpha, threshold, exempt in zip(
        strata.parts,
        thresholds.pooled,
        thresholds.alphas,
        thresholds.values,
        thresholds.exempt,
        strict=True,
    ):
        curve = part.curve
        weighted = calibration.shift is not None and curve.n_rows
        parts.append(
            Guarantee(
                alpha=alpha,
                n_rows=curve.n_rows,
                bound=curve.bound,
                certified=threshold != -math.inf,
                saturated=threshold == math.inf and not exempt,
                calibration_risk=curve.risk(threshold) if curve.divisor else None,
                mean_weight=float(curve.weight / curve.n_rows) if weighted else None,
                n_needed=promise.rows_needed(part, alpha),
                delta=promise.delta,
                bound_name=promise.bound_for(part.two_valued),
                unit=calibration.unit,
                shift=calibration.shift,
                randomized=thresholds.randomize,
                group=None if strata.groups is None or own.group is None else strata.groups[own.group],
                label=None if own.label is None else labels[own.label],
                pool=tuple(labels[k] for k in pool) if len(pool) > 1 else (),
                pooled_by_count=thresholds.pooled_by_count,
                exempt=exempt,
                measure=promise.measure,
                stake=None if curve.stake is None else float(curve.stake),
                one_cost=calibration.costs.one_cost,
                recalibration=None if recalibration is None else recalibration.in_words(),
                side=calibration.costs.side,
            )
        )
    if strata.is_one:
        return replace(parts[0], always_held=tuple(thresholds.too_heavy_classes))
    return _weakest(parts, sum(part.curve.n_rows for part in strata.parts))


def _weakest(parts: Sequence[Guarantee], n_rows: int) -> Guarantee:
    """Combine the guarantees of all strata, keeping the weakest; exempt classes have none."""
    every, parts = tuple(parts), [part for part in parts if not part.exempt]
    first, names = parts[0], {part.bound_name for part in parts}
    total_weight = sum(part.mean_weight * part.n_rows for part in parts if part.mean_weight is not None)
    return replace(
        first,
        alpha=max(part.alpha for part in parts),
        n_rows=n_rows,
        bound=max(part.bound for part in parts),
        certified=all(part.certified for part in parts),
        saturated=all(part.saturated for part in parts),
        calibration_risk=None,
        mean_weight=None if first.shift is None else total_weight / n_rows,
        n_needed=max(part.n_needed for part in parts),
        bound_name=names.pop() if len(names) == 1 else None,
        group=None,
        label=None,
        pool=(),
        parts=every,
        stake=None if first.stake is None else math.fsum(part.stake or 0 for part in parts),
    )


def warn_of_tiny_groups(
    calibration: Calibration, stacklevel: int, names: tuple[str, str] = ("groups", "clusters")
) -> None:
    """Warn if most groups have one or two rows, like patients; ``names`` are the options to name."""
    strata = calibration.strata
    if strata.groups is None or calibration.unit != "row":
        return
    rows = strata.table([part.n_rows for part in strata.parts]).sum(axis=1).tolist()
    if median(rows) <= _TINY:
        message = (
            f"Most groups have one or two rows ({len(rows):,} groups, {sum(rows):,} rows): if they are "
            "patients or other units with several rows, pass them as `{1}` instead of `{0}`."
        )
        warnings.warn(message.format(*names), CalibrationWarning, stacklevel=stacklevel + 1)


def warn_if_uncertified(thresholds: Thresholds, stacklevel: int) -> None:
    """Warn if there are too few rows for ``alpha``."""
    if -math.inf in thresholds.values or thresholds.too_heavy_classes:  # else leave the curve unsorted
        warnings.warn(str(guarantee_of(thresholds).warning), TooFewRowsWarning, stacklevel=stacklevel + 1)
