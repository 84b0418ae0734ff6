r"""Compare losses and growth rules by cross-validation.

The mean size has a confidence interval, the risk has none. To first order, row ``i`` moves the mean size by
:math:`((s_i - S) + c\,(L_i - R)) / n`, where ``c`` is how fast the mean size falls as ``alpha`` rises: a
larger loss lowers the thresholds of the other folds, which makes sets larger. The same formula gives 0 for
the risk: thresholds are chosen so that it is ``alpha``, so an interval of it would say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Number as AnyNumber
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.promises import checked_alpha, checked_share
from ordinalrisk.display.tables import ColumnsByName, Table
from ordinalrisk.evaluation.estimates import CONFIDENCE, Estimate
from ordinalrisk.growth.rules import GROWTH_RULES, GrowthRule, as_growth, require_valid
from ordinalrisk.inputs.labels import labelled_matrix
from ordinalrisk.inputs.numbers import Number, as_fraction, as_number
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import DivergenceLoss, IntervalLoss, WeightedLoss, as_loss
from ordinalrisk.prediction.ends import Ends
from ordinalrisk.selection.cross_validation import (
    ShuffledFolds,
    cross_validated,
    curves_without_each,
    shuffled_folds,
)

_NORMAL = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)

Track = Callable[[Iterable[Any], int, str], Iterable[Any]]
"""``track(items, total, description)`` gives the items back, with a progress bar around them."""


@dataclass(frozen=True)
class Comparison:
    """The cross-validated risk, set size and coverage of one loss, growth rule and ``alpha``.

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
        The mean loss, or the mean over clusters; as a share of what could be lost if ``alpha`` is one. It has
        no confidence interval: the thresholds are chosen so that it is at or below ``alpha``.
    mean_size : Estimate
        The mean number of labels in a set, with a 95 % interval for calibrations with this many rows. The
        interval is approximate: it needs hundreds of rows, and about ten losses or more in them at this
        ``alpha``. It can be too narrow if many scores are tied, or if nearly all sets are single labels.
    coverage : float
        The share of sets that include the true label.
    single_labels : float
        The share of sets that are a single label.
    certified : bool
        False if a fold had too few rows, or clusters, to calibrate with at this ``alpha``. Its sets are then
        the full scale.
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


class Comparisons(list[Comparison], Table):
    """A list of :class:`Comparison` that notebooks show as a table, and that converts to data frames.

    The columns are loss, growth, alpha, risk, mean_size, mean_size_low, mean_size_high, single_labels,
    coverage and certified.
    """

    def _columns(self) -> ColumnsByName:
        return comparison_columns(self)


def comparison_columns(comparisons: Iterable[Comparison]) -> ColumnsByName:
    results = [*comparisons]
    sizes = ("mean_size", "mean_size_low", "mean_size_high")
    return {
        "loss": [result.loss_name for result in results],
        "growth": [result.growth for result in results],
        "alpha": [float(result.alpha) for result in results],
        "risk": [result.risk for result in results],
        **{name: [float(result.mean_size[i]) for result in results] for i, name in enumerate(sizes)},
        **{
            name: [getattr(result, name) for result in results]
            for name in ("single_labels", "coverage", "certified")
        },
    }


def compare(
    proba: Any,
    y: Any,
    *,
    losses: Mapping[str, Any] | None = None,
    growths: Iterable[str | GrowthRule] | None = None,
    alphas: Iterable[Any] = (0.01, 0.05, 0.1),
    classes: Any = None,
    folds: int = 5,
    random_state: int = 0,
    clusters: Any = None,
    relative: bool = False,
    track: Track | None = None,
) -> Comparisons:
    """Cross-validate every loss with every growth rule at every ``alpha``.

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
        distance, its square, and the distance with sets that lie too low counted double.
    growths : iterable, optional
        Growth rules, by name or as objects; by default all.
    alphas : iterable of numbers
        The risks to control, in units of each loss.
    classes : sequence, optional
        The labels in order, as for :class:`RiskController`.
    folds : int
        How many parts the rows are cut into, from 2 to the number of rows, or of clusters.
    random_state : int
        The seed of the shuffle.
    clusters : array-like, optional
        A name of any type for each row. Rows of one name, as those of one patient, are in one fold, and each
        cluster counts as one with the mean loss of its rows.
    relative : bool
        Whether each ``alpha`` is a share of what could be lost, as for :class:`RiskController`. Risks then
        are shares too, so that losses with different weights compare at the same guarantee.
    track : callable, optional
        ``track(items, total, description)`` gives the items back, with a progress bar around them.

    Returns
    -------
    Comparisons
        A list of :class:`~ordinalrisk.selection.compare.Comparison`, by loss, growth rule and ``alpha``. See
        :func:`~ordinalrisk.selection.compare.ranked`.

    Examples
    --------
    >>> import ordinalrisk as orisk
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 2, 4, 2, 1], size=1000)
    >>> y = np.array([rng.choice(5, p=p) for p in proba])
    >>> choose, calibrate = orisk.splitting.split_rows(len(y), random_state=0)
    >>> how = {"losses": {"any miss": "coverage"}, "growths": ["frontier", "paper"], "alphas": [0.1]}
    >>> results = ranked(compare(proba[choose], y[choose], **how))
    >>> for result in results:
    ...     print(f"{result.growth:8}  {result.mean_size} labels, risk {result.risk:.3f}")
    frontier  3.11 (2.918 to 3.372) labels, risk 0.096
    paper     3.196 (3.004 to 3.394) labels, risk 0.096
    >>> controller = orisk.RiskController(results[0].loss, results[0].alpha, results[0].growth)
    >>> controller.calibrate(proba[calibrate], y[calibrate]).threshold_
    0.1099600216519189
    """
    require_same_rows(proba=proba, y=y, clusters=clusters)
    matrix, labels, known = labelled_matrix(proba, y, classes)
    scenarios = _scenarios(losses, len(known))
    rules = named_rules(GROWTH_RULES if growths is None else growths)
    risks = _alphas(alphas, scenarios, len(known), relative)
    require_valid(matrix)  # before the shuffle, so that an error has the number that the caller knows
    rows = shuffled_folds(matrix, labels, known, folds, random_state, clusters)
    ways = [(*scenario, *rule) for scenario in scenarios.items() for rule in rules.items()]
    tracked = ways if track is None else track(ways, len(ways), "Comparing losses and growth rules")
    return Comparisons(
        comparison
        for loss_name, loss, growth, rule in tracked
        for comparison in _comparisons(rows, loss_name, loss, growth, rule, risks, relative)
    )


def ranked(comparisons: Iterable[Comparison]) -> Comparisons:
    """Sort the comparisons of each loss and ``alpha`` by mean set size, smallest first.

    Losses and alphas keep the order in which they first occur. Each confidence interval is that of one size
    by itself. Sizes that are compared on the same rows depend on each other, so intervals that overlap do not
    say whether two rules differ; there is no interval of the difference. Calibrate on rows other than these,
    as the example of :func:`ordinalrisk.compare` shows.

    Parameters
    ----------
    comparisons : iterable of Comparison
        What :func:`ordinalrisk.compare` returned.

    Returns
    -------
    Comparisons
        The same comparisons, sorted.

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
    return Comparisons(
        comparison
        for group in groups.values()
        for comparison in sorted(group, key=lambda result: result.mean_size.value)
    )


def default_losses(n_classes: int) -> dict[str, IntervalLoss]:
    """Return the losses that :func:`ordinalrisk.compare` uses by default."""
    return {
        "coverage": WeightedLoss(),
        f"weights 1..{n_classes}": WeightedLoss(range(1, n_classes + 1)),
        "divergence": DivergenceLoss(),
        "divergence squared": DivergenceLoss(power=2),
        "under counts double": DivergenceLoss(under=2),
    }


class _UnitResults(NamedTuple):
    """Per row, or per cluster: its number of rows, the labels in their sets, and their mean loss."""

    n_rows: NDArray[np.int64]
    n_labels: NDArray[np.float64]
    losses: NDArray[np.float64]

    def size_error(self, labels_by_risk: float) -> float:
        r"""Return the standard error of the mean size ``S`` at a risk ``R``, to first order.

        .. math:: \operatorname{sd}_i \big( (s_i - S) + c\,(L_i - R) \big) / \sqrt n

        where :math:`c` is ``labels_by_risk``: a loss above the mean lowers the threshold.
        """
        size = self.n_labels.sum() / self.n_rows.sum()
        excess = (self.n_labels - size * self.n_rows) / self.n_rows.mean()
        influence = excess + labels_by_risk * (self.losses - self.losses.mean())
        return float(influence.std(ddof=1)) / math.sqrt(len(influence))


def named_rules(growths: Any) -> dict[str, GrowthRule]:
    """Return growth rules by name; the name includes a point label that is not the default."""
    if isinstance(growths, str | GrowthRule):
        growths = [growths]
    rules: dict[str, GrowthRule] = {}
    for rule in map(as_growth, _items(growths, "growths must be growth rules")):
        if rule.point == "given":
            raise ValueError(
                'growths must find their own point labels; point="given" is not for a comparison.'
            )
        usual = rule == GROWTH_RULES[rule.name]()
        name = rule.name if usual else f"{rule.name} ({rule.point})"
        if name in rules:
            raise ValueError(f"growths must be distinct; {name!r} is given more than once.")
        rules[name] = rule
    if not rules:
        raise ValueError(f"growths is empty; the growth rules are {list(GROWTH_RULES)}.")
    return rules


def _comparisons(
    rows: ShuffledFolds,
    loss_name: str,
    loss: IntervalLoss,
    growth: str,
    rule: GrowthRule,
    alphas: Sequence[Number],
    relative: bool,
) -> Iterator[Comparison]:
    costs = CostTable.of(loss, len(rows.classes))
    curves = [*curves_without_each(rows, rule, costs, relative)]
    bound = Fraction(1) if relative else costs.bound
    results = cross_validated(rows, rule, costs, curves, alphas)
    for alpha, (tally, certified, ends) in zip(alphas, results, strict=True):
        units = _by_unit(rows, ends, costs, relative)
        below, above = near = _alphas_near(as_fraction(alpha), units.losses, bound)
        wider, narrower = cross_validated(rows, rule, costs, curves, near)
        wide, size, narrow = (each.mean_size() for each in (wider.tally, tally, narrower.tally))
        rise = (wide - size) / float(as_fraction(alpha) - below)
        fall = (size - narrow) / float(above - as_fraction(alpha))
        yield Comparison(
            loss_name,
            loss,
            growth,
            alpha,
            risk=float(units.losses.mean()) if relative or rows.clusters is not None else tally.risk(loss),
            mean_size=Estimate(
                size,
                max(size - _NORMAL * units.size_error(fall), 1.0),
                min(size + _NORMAL * units.size_error(rise), float(len(rows.classes))),
            ),
            coverage=tally.coverage(),
            single_labels=float(tally.size_histogram()[0]),
            certified=certified,
        )


def _alphas_near(alpha: Fraction, losses: NDArray[np.float64], bound: Fraction) -> tuple[Fraction, Fraction]:
    """Return an alpha below and one above, as far away as chance moves the mean loss."""
    total = float(losses.sum())
    one_loss = float(losses @ losses) / total if total else float(bound)
    error = Fraction(_NORMAL * math.sqrt(float(alpha) * one_loss / len(losses)))
    return max(alpha - error, alpha / 2), min(alpha + error, (alpha + bound) / 2)


def _by_unit(rows: ShuffledFolds, ends: Sequence[Ends], costs: CostTable, relative: bool) -> _UnitResults:
    r"""Return the sizes and losses of the sets of each unit.

    If ``relative``, a loss is :math:`r + (L - r g) / \bar g` with ``r`` the share that is lost of all stakes
    ``g``: its mean is ``r``, and it moves the thresholds as a loss does otherwise.
    """
    parts = []
    for fold, (lower, upper) in enumerate(ends):
        y = rows.labels[fold]
        unit = np.arange(len(y)) if rows.clusters is None else rows.clusters[fold]
        n_rows, losses = np.bincount(unit), costs.values[y, np.clip(y, lower, upper)]
        lost, could = (np.bincount(unit, each) / n_rows for each in (losses, costs.stakes[y, 0]))
        parts.append((n_rows, np.bincount(unit, upper - lower + 1), lost, could))
    sizes, n_labels, lost, could = map(np.concatenate, zip(*parts, strict=True))
    if relative:
        share = lost.sum() / could.sum()
        lost = share + (lost - share * could) / could.mean()
    return _UnitResults(sizes, n_labels, lost)


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


def _alphas(
    alphas: Any, scenarios: Mapping[str, IntervalLoss], n_classes: int, relative: bool
) -> list[Number]:
    listed = [alphas] if isinstance(alphas, str | AnyNumber) else _items(alphas, "alphas must be numbers")
    if not listed:
        raise ValueError("alphas is empty; give at least one risk to control.")
    for name, loss in scenarios.items():
        bound = loss.bound(n_classes)
        for alpha in listed:
            try:
                exact = as_fraction(alpha, "alpha")
                checked_share(exact) if relative else checked_alpha(exact, bound)
            except ValueError as error:
                raise ValueError(f"Loss {name!r}: {error}") from None
    return [as_number(alpha, "alpha") for alpha in listed]
