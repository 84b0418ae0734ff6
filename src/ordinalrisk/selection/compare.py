r"""Losses and growth rules side by side on the rows at hand, by cross-validation.

The rows are shuffled and cut into folds. Each fold's intervals come from a threshold that was calibrated on
the other folds, and the counts of all folds add up. How a row's loss steps does not depend on the fold it is
in, so steps are worked out once for each loss and growth rule and joined for each fold.

Rows that come in clusters stay together. Then clusters are what is exchangeable: each counts as one, with the
mean loss of its rows, to calibrate with and to measure the risk.

The mean size has an interval, the risk has none. To first order, row ``i`` moves the mean size by
:math:`((s_i - S) + c\,(L_i - R)) / n`, where ``c`` is how fast the mean size falls as ``alpha`` rises: a
larger loss lowers the thresholds of the other folds, which makes sets larger. The same formula gives 0 for
the risk: thresholds are chosen so that it is ``alpha``, so an interval of it would say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from numbers import Number as AnyNumber
from operator import add
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.promises import checked_alpha, expectation_threshold, rows_needed
from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.curves.steps import Steps
from ordinalrisk.curves.unit_steps import UnitSteps
from ordinalrisk.evaluation.counts import Tally
from ordinalrisk.evaluation.estimates import CONFIDENCE, Estimate
from ordinalrisk.growth.rules import GROWTH_RULES, GrowthRule, as_growth, require_valid
from ordinalrisk.inputs.arrays import to_numpy
from ordinalrisk.inputs.labels import Classes, class_indices, require_column_order, resolve_classes
from ordinalrisk.inputs.matrix import as_matrix
from ordinalrisk.inputs.numbers import Number, as_fraction, as_number
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.inputs.splitting import checked_seed, split_folds
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import DivergenceLoss, IntervalLoss, WeightedLoss, as_loss
from ordinalrisk.prediction.interval_set import IntervalSet

GROWTHS = ("frontier", "adaptive", "paper", "rps")
_NORMAL = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)

Ends = tuple[NDArray[Any], NDArray[Any]]
"""The first and the last label of each set."""

Track = Callable[[Iterable[Any], int, str], Iterable[Any]]
"""``track(items, total, description)`` gives the items back, with a progress bar around them."""


@dataclass(frozen=True)
class Comparison:
    """What one loss, growth rule and ``alpha`` came to on rows that were not calibrated with.

    Attributes
    ----------
    loss_name : str
        The name of the scenario.
    loss : IntervalLoss
        Its loss.
    growth : str
        The name of the growth rule.
    alpha : number
        The risk that was asked for, in units of the loss.
    risk : float
        The mean loss; of clusters, each of which counts as one, if rows come in clusters. It has no interval:
        thresholds are chosen so that it is near ``alpha``, or below.
    mean_size : Estimate
        The mean number of labels in a set, with a 95 % interval for calibrations with this many rows. The
        interval is approximate: it needs hundreds of rows, and about ten losses or more in them at this
        ``alpha``. It can be too narrow if many scores are tied, or if nearly all sets are single labels.
    coverage : float
        The share of sets that hold the truth.
    single_labels : float
        The share of sets that are a single label.
    certified : bool
        False where a fold had too few rows, or clusters, to calibrate with for this ``alpha``: sets are the
        full scale.
    """

    loss_name: str
    loss: IntervalLoss
    growth: str
    alpha: Number
    risk: float
    mean_size: Estimate
    coverage: float
    single_labels: float
    certified: bool


def compare(
    proba: Any,
    y: Any,
    *,
    losses: Mapping[str, Any] | None = None,
    growths: Iterable[str | GrowthRule] | None = None,
    alphas: Iterable[Any] = (0.01, 0.05, 0.1),
    classes: Any = None,
    folds: int = 5,
    seed: int = 0,
    clusters: Any = None,
    track: Track | None = None,
) -> list[Comparison]:
    """Every loss with every growth rule at every ``alpha``, cross-validated.

    Choose on other rows than you calibrate with. A loss, growth rule or ``alpha`` that was chosen on the
    calibration rows has no guarantee: the choice prefers what those rows make look good, and the risk of new
    rows can exceed ``alpha``. Split the rows first, as in the example.

    Parameters
    ----------
    proba : array-like of shape (n, K)
        Class probabilities on the host, from a model that was not trained on these rows.
    y : array-like of shape (n,)
        The true labels.
    losses : mapping, optional
        Losses by name, each as for :class:`RiskController`. By default coverage, weights 1 to K, the
        distance, its square, and the distance with intervals that lie too low counted double.
    growths : iterable, optional
        Growth rules, by name or as objects; by default all.
    alphas : iterable of numbers
        The risks to control, in units of each loss.
    classes : sequence, optional
        The labels in order, as for :class:`RiskController`.
    folds : int
        How many parts the rows are cut into, from 2 to the number of rows, or of clusters.
    seed : int
        The seed of the shuffle.
    clusters : array-like, optional
        A name of any type for each row. Rows of one name, as those of one patient, are in one fold, and each
        cluster counts as one with the mean loss of its rows.
    track : callable, optional
        ``track(items, total, description)`` gives the items back, with a progress bar around them.

    Returns
    -------
    list of Comparison
        By loss, growth rule and ``alpha``, in this order. See :func:`ranked`.

    Examples
    --------
    >>> import ordinalrisk as orisk
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 2, 4, 2, 1], size=1000)
    >>> y = np.array([rng.choice(5, p=p) for p in proba])
    >>> choose, calibrate = orisk.split_rows(len(y), random_state=0)
    >>> results = ranked(compare(proba[choose], y[choose], losses={"coverage": "coverage"}, alphas=[0.1]))
    >>> for result in results:
    ...     print(f"{result.growth:8}  {result.mean_size} labels, risk {result.risk:.3f}")
    frontier  3.11 (2.918 to 3.372) labels, risk 0.096
    adaptive  3.156 (2.985 to 3.343) labels, risk 0.098
    paper     3.196 (3.004 to 3.394) labels, risk 0.096
    rps       3.32 (3.152 to 3.585) labels, risk 0.100
    >>> controller = orisk.RiskController(results[0].loss, results[0].alpha, results[0].growth)
    >>> controller.calibrate(proba[calibrate], y[calibrate]).threshold_
    0.1099600216519189
    """
    require_same_rows(proba=proba, y=y, clusters=clusters)
    matrix = as_matrix(to_numpy(proba, "proba"))
    known = resolve_classes(classes, y, matrix.shape[1])
    require_column_order(proba, known)
    labels = class_indices(y, known, len(matrix))
    scenarios = _scenarios(losses, len(known))
    rules = named_rules(GROWTHS if growths is None else growths)
    wanted = _alphas(alphas, scenarios, len(known))
    require_valid(matrix)  # before the shuffle, so that an error has the number that the caller knows
    rows = shuffled_folds(matrix, labels, known, folds, seed, clusters)
    ways = [(*scenario, *rule) for scenario in scenarios.items() for rule in rules.items()]
    tracked = ways if track is None else track(ways, len(ways), "Comparing losses and growth rules")
    return [
        comparison
        for loss_name, loss, growth, rule in tracked
        for comparison in _comparisons(rows, loss_name, loss, growth, rule, wanted)
    ]


def ranked(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """The comparisons with, for each loss and ``alpha``, those with the smallest sets first.

    Losses and alphas keep the order in which they first occur. Where the intervals of two sizes overlap, they
    leave open which is smaller. Calibrate what you choose on other rows than these: see :func:`compare`.

    Parameters
    ----------
    comparisons : iterable of Comparison
        What :func:`compare` returned.

    Returns
    -------
    list of Comparison
        The same ones.

    Examples
    --------
    >>> proba, y = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 20, [1, 1, 2, 0, 2, 2] * 10
    >>> results = ranked(compare(proba, y, alphas=[0.1], growths=["frontier", "paper"]))
    >>> [(result.loss_name, result.growth, round(result.mean_size.value, 2)) for result in results[:4]]
    [('coverage', 'frontier', 1.67), ('coverage', 'paper', 1.67), ('weights 1..3', ...
    """
    groups: dict[tuple[str, Fraction], list[Comparison]] = {}
    for comparison in _items(comparisons, "comparisons must be what compare returned"):
        if not isinstance(comparison, Comparison):
            raise ValueError(f"comparisons must be what compare returned; one of them is {comparison!r}.")
        groups.setdefault((comparison.loss_name, as_fraction(comparison.alpha)), []).append(comparison)
    return [
        comparison
        for group in groups.values()
        for comparison in sorted(group, key=lambda result: result.mean_size.value)
    ]


def default_losses(n_classes: int) -> dict[str, IntervalLoss]:
    """The losses that :func:`compare` takes by default: one for each question that practice asks.

    Examples
    --------
    >>> list(default_losses(5))
    ['coverage', 'weights 1..5', 'divergence', 'divergence squared', 'under counts double']
    """
    return {
        "coverage": WeightedLoss(),
        f"weights 1..{n_classes}": WeightedLoss(range(1, n_classes + 1)),
        "divergence": DivergenceLoss(),
        "divergence squared": DivergenceLoss(power=2),
        "under counts double": DivergenceLoss(under=2),
    }


class ShuffledFolds(NamedTuple):
    """Rows drawn into folds: probabilities and positions of labels of each, and the numbers of clusters."""

    proba: Sequence[NDArray[Any]]
    labels: Sequence[NDArray[np.int64]]
    classes: Classes
    clusters: Sequence[NDArray[np.int64]] | None = None

    @property
    def n_units(self) -> list[int]:
        """The number of rows, or of clusters where there are any, in each fold."""
        return (
            [*map(len, self.labels)] if self.clusters is None else [int(c.max()) + 1 for c in self.clusters]
        )

    @property
    def n_calibrated(self) -> int:
        """The fewest rows, or clusters, that a fold's threshold is calibrated with."""
        return sum(self.n_units) - max(self.n_units)


class _Units(NamedTuple):
    """The rows, or the clusters: how many rows each has, how many labels their sets, and their mean loss."""

    n_rows: NDArray[np.int64]
    n_labels: NDArray[np.float64]
    losses: NDArray[np.float64]

    def size_error(self, labels_by_risk: float) -> float:
        r"""The standard error of the mean size ``S`` at a risk ``R``, to first order.

        .. math:: \operatorname{sd}_i \big( (s_i - S) + c\,(L_i - R) \big) / \sqrt n

        with :math:`c`, so many labels for each unit of risk: a loss above the mean lowers the threshold.
        """
        size = self.n_labels.sum() / self.n_rows.sum()
        excess = (self.n_labels - size * self.n_rows) / self.n_rows.mean()
        influence = excess + labels_by_risk * (self.losses - self.losses.mean())
        return float(influence.std(ddof=1)) / math.sqrt(len(influence))


class Outcome(NamedTuple):
    """The counts over all folds, and whether every fold had rows or clusters enough to calibrate with."""

    tally: Tally
    certified: bool


def shuffled_folds(
    proba: NDArray[Any],
    labels: NDArray[np.int64],
    classes: Classes,
    folds: int,
    seed: int,
    clusters: Any = None,
) -> ShuffledFolds:
    """The rows in random folds of :func:`split_folds`, gathered once."""
    parts = split_folds(len(proba), folds, clusters=clusters, random_state=checked_seed(seed))
    number = None if clusters is None else RowNames("clusters").numbered(clusters, len(proba))
    return ShuffledFolds(
        [np.ascontiguousarray(proba[part]) for part in parts],
        [labels[part] for part in parts],
        classes,
        None if number is None else [np.unique(number[part], return_inverse=True)[1] for part in parts],
    )


def cross_validated(
    rows: ShuffledFolds, loss: IntervalLoss, growth: GrowthRule, alphas: Sequence[Number]
) -> list[Outcome]:
    """What one loss and growth rule come to at each ``alpha``."""
    costs = CostTable.of(loss, len(rows.classes))
    curves = _curves_without_each(rows, growth, costs)
    return [outcome for outcome, _ in _measured(rows, growth, costs, curves, alphas)]


def named_rules(growths: Any) -> dict[str, GrowthRule]:
    """Growth rules by name; one that starts from another point label than usual says so in its name."""
    given = (
        [growths]
        if isinstance(growths, str | GrowthRule)
        else _items(growths, "growths must be growth rules")
    )
    rules: dict[str, GrowthRule] = {}
    for rule in map(as_growth, given):
        if rule.point == "given":
            raise ValueError(
                'growths must find their own point labels; point="given" is not for a comparison.'
            )
        usual = rule == GROWTH_RULES[rule.name]()
        name = rule.name if usual else f"{rule.name} ({rule.point})"
        if name in rules:
            raise ValueError(f"growths must be distinct; {name!r} is there more than once.")
        rules[name] = rule
    if not rules:
        raise ValueError(f"growths is empty; the growth rules are {list(GROWTH_RULES)}.")
    return rules


def _measured(
    rows: ShuffledFolds,
    growth: GrowthRule,
    costs: CostTable,
    curves: Iterable[RiskCurve],
    alphas: Sequence[Number],
) -> list[tuple[Outcome, list[Ends]]]:
    """The outcome at each ``alpha``, and the ends of the sets of each fold."""
    exact = [as_fraction(alpha, "alpha") for alpha in alphas]
    folds: list[list[tuple[Tally, Ends]]] = []
    for fold, curve in enumerate(curves):
        found_at: dict[float, tuple[Tally, Ends]] = {}
        for threshold in (thresholds := [expectation_threshold(curve, alpha) for alpha in exact]):
            if threshold not in found_at:
                ends = growth.intervals(rows.proba[fold], costs, threshold, None)
                found_at[threshold] = Tally.of(rows.labels[fold], IntervalSet.of(*ends, rows.classes)), ends
        folds.append([found_at[threshold] for threshold in thresholds])
    measured = []
    for alpha, *parts in zip(exact, *folds, strict=True):
        tallies, sets = zip(*parts, strict=True)
        outcome = Outcome(reduce(add, tallies), rows.n_calibrated >= rows_needed(alpha, costs.bound))
        measured.append((outcome, [*sets]))
    return measured


def _curves_without_each(rows: ShuffledFolds, growth: GrowthRule, costs: CostTable) -> Iterator[RiskCurve]:
    """For each fold the risk curve of all others."""
    each = [*zip(rows.proba, rows.labels, strict=True)]
    if rows.clusters is not None:
        losses = [UnitSteps.of_rows(growth.row_levels(p, costs, None), y, costs) for p, y in each]
        for fold in range(len(each)):
            yield _clustered_curve(_without(losses, fold), _without(rows.clusters, fold), costs)
        return
    steps: list[Any] = [growth.steps(proba, labels, costs, None) for proba, labels in each]
    n_rows = sum(map(len, rows.labels))
    for fold, labels in enumerate(rows.labels):
        others = Steps.joined(_without(steps, fold))
        yield RiskCurve(others, unit=costs.unit, n_rows=n_rows - len(labels), bound=costs.bound)


def _clustered_curve(
    losses: Sequence[UnitSteps], clusters: Sequence[NDArray[np.int64]], costs: CostTable
) -> RiskCurve:
    """The curve of clusters, each of which counts as one."""
    firsts = np.cumsum([0, *(int(numbers.max()) + 1 for numbers in clusters)])
    numbers = np.concatenate([part + first for part, first in zip(clusters, firsts[:-1], strict=True)])
    steps, parts = UnitSteps.joined(losses).clustered(numbers)
    unit = costs.unit / parts
    largest = int(costs.bound / unit)
    return RiskCurve(steps.steps(largest), unit=unit, n_rows=steps.n_units, bound=costs.bound)


def _without(items: Sequence[Any], fold: int) -> list[Any]:
    return [*items[:fold], *items[fold + 1 :]]


def _comparisons(
    rows: ShuffledFolds,
    loss_name: str,
    loss: IntervalLoss,
    growth: str,
    rule: GrowthRule,
    alphas: Sequence[Number],
) -> Iterator[Comparison]:
    costs = CostTable.of(loss, len(rows.classes))
    curves = [*_curves_without_each(rows, rule, costs)]
    found = _measured(rows, rule, costs, curves, alphas)
    units = [_by_unit(rows, sets, costs) for _, sets in found]
    near = [
        _alphas_near(as_fraction(alpha), mine.losses, costs.bound)
        for alpha, mine in zip(alphas, units, strict=True)
    ]
    found_near = _measured(rows, rule, costs, curves, [alpha for pair in near for alpha in pair])
    for i, (alpha, mine, (below, above)) in enumerate(zip(alphas, units, near, strict=True)):
        tally, certified = found[i][0]
        wide, size, narrow = (
            outcome.tally.mean_size() for outcome, _ in (found_near[2 * i], found[i], found_near[2 * i + 1])
        )
        rise = (wide - size) / float(as_fraction(alpha) - below)
        fall = (size - narrow) / float(above - as_fraction(alpha))
        yield Comparison(
            loss_name,
            loss,
            growth,
            alpha,
            risk=tally.risk(loss) if rows.clusters is None else float(mine.losses.mean()),
            mean_size=Estimate(
                size,
                max(size - _NORMAL * mine.size_error(fall), 1.0),
                min(size + _NORMAL * mine.size_error(rise), float(len(rows.classes))),
            ),
            coverage=tally.coverage(),
            single_labels=float(tally.size_histogram()[0]),
            certified=certified,
        )


def _alphas_near(alpha: Fraction, losses: NDArray[np.float64], bound: Fraction) -> tuple[Fraction, Fraction]:
    """One below and one above, about as far off as the mean loss of so many rows is by chance."""
    total = float(losses.sum())
    one_loss = float(losses @ losses) / total if total else float(bound)
    error = Fraction(_NORMAL * math.sqrt(float(alpha) * one_loss / len(losses)))
    return max(alpha - error, alpha / 2), min(alpha + error, (alpha + bound) / 2)


def _by_unit(rows: ShuffledFolds, sets: Sequence[Ends], costs: CostTable) -> _Units:
    parts = []
    for fold, (lower, upper) in enumerate(sets):
        y = rows.labels[fold]
        unit = np.arange(len(y)) if rows.clusters is None else rows.clusters[fold]
        n_rows, losses = np.bincount(unit), costs.values[y, np.clip(y, lower, upper)]
        parts.append((n_rows, np.bincount(unit, upper - lower + 1), np.bincount(unit, losses) / n_rows))
    return _Units(*map(np.concatenate, zip(*parts, strict=True)))


def _scenarios(losses: Any, n_classes: int) -> dict[str, IntervalLoss]:
    if losses is None:
        return default_losses(n_classes)
    if not isinstance(losses, Mapping) or not losses:
        raise ValueError(
            f'losses must map names to losses, as in {{"coverage": "coverage"}}; got {losses!r}.'
        )
    return {str(name): as_loss(loss) for name, loss in losses.items()}


def _items(values: Any, rule: str) -> list[Any]:
    try:
        return [*values]
    except TypeError:
        raise ValueError(f"{rule}; got {values!r}.") from None


def _alphas(alphas: Any, scenarios: Mapping[str, IntervalLoss], n_classes: int) -> list[Number]:
    given = [alphas] if isinstance(alphas, str | AnyNumber) else _items(alphas, "alphas must be numbers")
    if not given:
        raise ValueError("alphas is empty; give at least one risk to control.")
    for name, loss in scenarios.items():
        bound = loss.bound(n_classes)
        for alpha in given:
            try:
                checked_alpha(as_fraction(alpha, "alpha"), bound)
            except ValueError as error:
                raise ValueError(f"Loss {name!r}: {error}") from None
    return [as_number(alpha, "alpha") for alpha in given]
