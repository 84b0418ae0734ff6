"""Growth rules: the order in which labels join a prediction set.

Each label ``j`` of a row has a level ``e_j``: infinite at the point label, never higher further out. The
prediction set at threshold ``tau`` is ``{j : e_j >= tau}``. It is an interval, includes the point label and
grows as ``tau`` falls, for any probabilities. A growth rule never sees ``alpha``.
"""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.curves.device_steps import DeviceSteps
from ordinalrisk.curves.steps import Steps
from ordinalrisk.growth.kernels import InvalidRow
from ordinalrisk.inputs.device import on_device, to_device_of
from ordinalrisk.inputs.labels import class_indices
from ordinalrisk.inputs.probability_matrix import as_matrix, raise_invalid_row
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import as_loss

__all__ = ["AdaptiveGrowth", "FrontierGrowth", "PaperGrowth", "RankedProbabilityGrowth"]
POINT_RULES = ("mode", "bayes", "median", "given")

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class GrowthRule(ABC):
    r"""Base class of growth rules.

    A rule gives each label ``j`` of a row a level :math:`e_j(x)`, infinite at the point label and never
    higher further out. The set at threshold :math:`\tau` is

    .. math:: C_\tau(x) = \{ j : e_j(x) \ge \tau \},

    an interval that includes the point label and grows as :math:`\tau` falls: the paper's conditions C1 to C3
    (Section 2.1).

    Parameters
    ----------
    point : {"mode", "bayes", "median", "given"}
        The label that a set grows from: the most probable one, weighted by class for a weighted loss as in
        the paper; the one of least expected loss; the median; or one that the caller gives for each row.
    """

    point: str = "mode"
    name: ClassVar[str]
    """The name in calls and in saved files."""
    note: ClassVar[str]
    """A few words for reports."""
    uses_loss: ClassVar[bool] = True
    """Whether levels depend on the loss."""

    def __post_init__(self) -> None:
        if not hasattr(self, "name"):
            raise ValueError(f"GrowthRule is a base class; use one of {list(GROWTH_RULES)}.")
        if self.point not in POINT_RULES:
            raise ValueError(
                f"point={self.point!r} is not known; the point label rules are {list(POINT_RULES)}."
            )

    def levels(self, proba: Any, loss: Any = "coverage", point_labels: Any = None) -> NDArray[np.float64]:
        """Return the level of each label of each row.

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities.
        loss : IntervalLoss, str or table
            What a miss costs.
        point_labels : array-like of int, optional
            The label index each interval grows from, with ``point="given"``.

        Returns
        -------
        array of shape (n, K)
            Infinite at the point label.

        Examples
        --------
        >>> FrontierGrowth().levels([[0.1, 0.2, 0.4, 0.3]])
        array([[0.1, 0.2, inf, 0.3]])
        """
        require_same_rows(proba=proba, point_labels=point_labels)
        matrix = as_matrix(proba)
        costs = CostTable.of(as_loss(loss), matrix.shape[1])
        return self.row_levels(matrix, costs, self.given_points(point_labels, matrix))

    def level_range(self, costs: CostTable) -> tuple[float, float]:
        """Return the smallest and the largest level that labels other than the point label can have."""
        return 0.0, costs.gains.bound

    def row_levels(self, proba: NDArray[Any], costs: CostTable, given: Labels | None) -> NDArray[np.float64]:
        """Return the levels of rows that are checked already."""
        levels: NDArray[np.float64] = self._run("levels", costs, given, proba)
        return levels

    def intervals(
        self, proba: NDArray[Any], costs: CostTable, threshold: float, given: Labels | None
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the first and last label of each row's set at ``threshold``."""
        ends: tuple[NDArray[np.int32], NDArray[np.int32]] = self._run(
            "intervals", costs, given, proba, threshold=threshold
        )
        return ends

    def steps(
        self, proba: NDArray[Any], labels: Labels, costs: CostTable, given: Labels | None
    ) -> Steps | DeviceSteps:
        """Return the levels at which the rows' losses step up, and by how many units of the cost table."""
        make_steps: Any = DeviceSteps.of if on_device(proba) else Steps.of
        steps_of_rows = self._run("steps", costs, given, proba, labels)
        steps: Steps | DeviceSteps = make_steps(*steps_of_rows, costs.units)
        return steps

    def _run(self, kernel: str, costs: CostTable, given: Labels | None, *rows: Any, **options: Any) -> Any:
        """Run a kernel on the machine that holds the rows; explain an error in a row."""
        self.require_points(given)
        try:
            run = getattr(_backend(rows[0]), kernel)
            return run(*rows, costs.gains, self.name, self.point, given=given, **options)
        except InvalidRow as refused:
            row = refused.args[0]
        raise_invalid_row(rows[0], row)

    def given_points(self, point_labels: Any, proba: NDArray[Any]) -> Labels | None:
        """Return the point labels from the caller as indices, None if the rule finds them."""
        self.require_points(point_labels)
        if point_labels is None:
            return None
        n_rows, n_classes = proba.shape
        points = class_indices(point_labels, np.arange(n_classes), n_rows, "point_labels")
        placed: Labels = to_device_of(proba, points, "point_labels")
        return placed

    def require_points(self, point_labels: Any) -> None:
        """Check that there are point labels if and only if ``point="given"``."""
        if (self.point == "given") != (point_labels is not None):
            raise ValueError(
                f"point={self.point!r}, but point_labels were {'not ' if point_labels is None else ''}given; "
                'pass them with point="given", and only then.'
            )


@dataclass(frozen=True)
class FrontierGrowth(GrowthRule):
    r"""The smallest sets that include the point label, if the probabilities are right.

    This holds at the risks that the rule attains: no other intervals that include the point label have a
    smaller expected size at the same expected risk or a lower one. If the probabilities are wrong, another
    rule can give smaller sets.

    The level of a label is the slope of the concave majorant of risk removed against labels added, on its
    side of the point label: the Lagrangian solution. Labels on one line of the majorant join together.

    .. math:: e_j = \min_{i \le j} \max_{k \ge j} \frac{b_i + \dots + b_k}{k - i + 1} \quad (m < i, j, k)

    to the right of the point label ``m``, where :math:`b_j` is the risk that label ``j`` removes; likewise to
    the left. The paper has no such rule.

    Parameters
    ----------
    point : {"mode", "bayes", "median", "given"}
        The label that intervals grow from; see :class:`~ordinalrisk.growth.GrowthRule`.

    Examples
    --------
    The last two labels are worth more together than the first of them alone, and join together.

    >>> FrontierGrowth().levels([[0.25, 0.5, 0.0, 0.25]])
    array([[0.25 ,   inf, 0.125, 0.125]])
    """

    name: ClassVar[str] = "frontier"
    note: ClassVar[str] = (
        "smallest around the point label at the risks it attains, if the probabilities are right"
    )

    def level_range(self, costs: CostTable) -> tuple[float, float]:
        """Return 0 and the largest gain of one label, which no slope exceeds."""
        return 0.0, float(max(costs.gains.left.max(), costs.gains.right.max()))


@dataclass(frozen=True)
class AdaptiveGrowth(GrowthRule):
    r"""The frontier's intervals, but the level is the model's own risk :math:`R(l, u)` before a label joins.

    .. math:: R(l, u) = \sum_{i < l} p_i G[i, l] + \sum_{i > u} p_i G[i, u]

    It evens out the model's risk from row to row. With the scores as probabilities, it is the paper's oracle
    of Eq. 6 if the weighted scores fall to both sides of the point label, and of Eq. 10 for even distances,
    provided that no two labels of a row have the same frontier level and that the threshold is not itself a
    level (Eq. 6 and 10 have ``<=``).
    Otherwise it keeps the frontier's blocks, because the sets of Eq. 6 are not nested.

    Parameters
    ----------
    point : {"mode", "bayes", "median", "given"}
        The label that intervals grow from; see :class:`~ordinalrisk.growth.GrowthRule`.

    References
    ----------
    Xu, Guo, Wei. Conformal Risk Control for Ordinal Classification. UAI 2023: Eq. 6 and 10.

    Examples
    --------
    >>> AdaptiveGrowth().levels([[0.25, 0.5, 0.0, 0.25]])
    array([[0.5 ,  inf, 0.25, 0.25]])
    """

    name: ClassVar[str] = "adaptive"
    note: ClassVar[str] = "evens out the model's own risk from row to row"


@dataclass(frozen=True)
class PaperGrowth(GrowthRule):
    r"""The paper's greedy rule, Algorithms 1 and 3: the neighbour that removes more risk joins next.

    Its level is what the paper compares with :math:`\lambda`. For the label that joins ``[l, u]`` it is

    .. math:: e = B - \sum_{i \in [l, u]} h_i p_i

    under a weighted loss (Eq. 7, where the largest cost :math:`B` is 1), and the model's risk
    :math:`R(l, u)` of the interval under any other (Eq. 11). If both neighbours remove the same risk, the
    right one joins under a weighted loss (Algorithm 1) and the left one under any other (Algorithm 3).

    Parameters
    ----------
    point : {"mode", "bayes", "median", "given"}
        The label that intervals grow from; see :class:`~ordinalrisk.growth.GrowthRule`.

    References
    ----------
    Xu, Guo, Wei. Conformal Risk Control for Ordinal Classification. UAI 2023: Algorithms 1 and 3, Eq. 7 and
    11, Theorems 2 and 3.

    Examples
    --------
    >>> PaperGrowth().levels([[0.0625, 0.25, 0.5, 0.1875]])
    array([[0.0625, 0.5   ,    inf, 0.25  ]])

    On a tie the right neighbour joins first under a weighted loss, the left one under divergence.

    >>> PaperGrowth().levels([[0.25, 0.5, 0.25]], "coverage")
    array([[0.25,  inf, 0.5 ]])
    >>> PaperGrowth().levels([[0.25, 0.5, 0.25]], "divergence")
    array([[0.25 ,   inf, 0.125]])
    """

    name: ClassVar[str] = "paper"
    note: ClassVar[str] = "adds one label at a time, on the side that removes more risk"


@dataclass(frozen=True)
class RankedProbabilityGrowth(GrowthRule):
    r"""Minus the ranked probability score; the loss does not matter.

    .. math:: e_j = -\sum_k (F_k - 1\{j \le k\})^2, \qquad F_k = p_0 + \dots + p_k

    Its maximiser, the median, is the point label. The paper has no such rule.

    Parameters
    ----------
    point : {"median", "mode", "bayes", "given"}
        The label that intervals grow from; see :class:`~ordinalrisk.growth.GrowthRule`.

    References
    ----------
    Haas, Killmaier, Javanmardi, Hüllermeier. Reliable Conformal Prediction for Ordinal Classification Using
    the Ranked Probability Score. 2026.

    Examples
    --------
    >>> RankedProbabilityGrowth().levels([[0.25, 0.5, 0.25]])
    array([[-0.625,    inf, -0.625]])
    """

    point: str = "median"
    name: ClassVar[str] = "rps"
    note: ClassVar[str] = "by ranked probability score, around the median"
    uses_loss: ClassVar[bool] = False

    def level_range(self, costs: CostTable) -> tuple[float, float]:
        """Return the range of minus a sum of ``K - 1`` squares."""
        return 1.0 - costs.n_classes, 0.0


GROWTH_RULES: dict[str, type[GrowthRule]] = {
    rule.name: rule for rule in (FrontierGrowth, AdaptiveGrowth, PaperGrowth, RankedProbabilityGrowth)
}
"""Every growth rule by its name: the command line, comparisons, reports and tests read this list."""


def as_growth(growth: Any) -> GrowthRule:
    """Return the growth rule for a :class:`GrowthRule` or a name."""
    if isinstance(growth, GrowthRule):
        return growth
    if isinstance(growth, str) and growth in GROWTH_RULES:
        return GROWTH_RULES[growth]()
    raise ValueError(f"growth={growth!r} is not known; the growth rules are {list(GROWTH_RULES)}.")


def require_valid(proba: NDArray[Any]) -> None:
    """Raise an error if a row is not a probability vector; as fast as a prediction."""
    costs = CostTable.of(as_loss("coverage"), proba.shape[1])
    FrontierGrowth().intervals(proba, costs, np.inf, None)


def _backend(proba: Any) -> Any:
    """Return the kernels for the machine that holds the rows."""
    if on_device(proba):
        try:
            from ordinalrisk.growth.kernels import gpu
        except ModuleNotFoundError as missing:
            raise ValueError(
                f"proba is on device {proba.device}, which needs {missing.name}: install ordinalrisk[gpu], "
                "or move it with proba.cpu()."
            ) from None
        return gpu
    from ordinalrisk.growth.kernels import cpu

    return cpu
