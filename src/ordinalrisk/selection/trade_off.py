"""Compare risk, set size and coverage over several values of ``alpha``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ordinalrisk.display import tables
from ordinalrisk.display.tables import ColumnsByName
from ordinalrisk.display.text_table import TextTable
from ordinalrisk.selection.compare import Comparison, compare, comparison_columns

_WIDTH = 80
_WIDEST_ALPHA = 8


@dataclass(frozen=True)
class TradeOff(tables.Table):
    """Comparisons by loss and ``alpha``: iterate over them, print them, or make a frame of them.

    Attributes
    ----------
    comparisons : tuple of Comparison
        By loss and ``alpha``, in this order.

    Notes
    -----
    The columns of a frame are loss, growth, alpha, risk, mean_size, mean_size_low, mean_size_high,
    single_labels, coverage and certified.
    """

    comparisons: tuple[Comparison, ...]

    def _columns(self) -> ColumnsByName:
        return comparison_columns(self)

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self.comparisons)

    def __len__(self) -> int:
        return len(self.comparisons)

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = []
        before = None
        for result in self:
            rows.append(
                (
                    "" if result.loss_name == before else result.loss_name,
                    _shortened(str(result.alpha), _WIDEST_ALPHA),
                    f"{result.risk:.4g}",
                    *(f"{number:.2f}" for number in result.mean_size),
                    f"{result.single_labels:.3f}",
                    f"{result.coverage:.3f}",
                    "" if result.certified else "few rows",
                )
            )
            before = result.loss_name
        header = ("loss", "alpha", "risk", "size", "from", "to", "single", "coverage", "")
        return fitted(header, rows).text()


def trade_off(
    proba: Any,
    y: Any,
    *,
    losses: Mapping[str, Any] | None = None,
    alphas: Iterable[Any] = (0.01, 0.02, 0.05, 0.1, 0.2),
    growth: Any = "frontier",
    classes: Any = None,
    folds: int = 5,
    random_state: int = 0,
    clusters: Any = None,
    relative: bool = False,
) -> TradeOff:
    """Cross-validate risk, set size and coverage at each ``alpha``.

    Choose on other rows than you calibrate with: an ``alpha`` or a loss that was chosen on the calibration
    rows has no guarantee. See :func:`compare` for how to split the rows.

    Parameters
    ----------
    proba, y, losses, alphas
        As for :func:`compare`.
    growth : GrowthRule or str
        How intervals grow.
    classes, folds, random_state, clusters, relative
        As for :func:`compare`.

    Returns
    -------
    TradeOff
        Printed, a table: the mean loss, the mean number of labels in a set with its approximate 95 % interval
        (see :class:`~ordinalrisk.selection.compare.Comparison`), the share of sets that are a single label,
        and the share that include the truth; ``few rows`` where there are too few to certify ``alpha``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 2, 4, 2, 1], size=1000)
    >>> y = np.array([rng.choice(5, p=p) for p in proba])
    >>> print(trade_off(proba, y, losses={"coverage": "coverage", "distance": "divergence"}))
    loss      alpha     risk  size  from    to  single  coverage
    coverage   0.01    0.011  4.46  4.31  4.56   0.000     0.989
               0.02    0.019  4.20  4.01  4.44   0.000     0.981
               0.05    0.051  3.71  3.56  3.89   0.003     0.949
                0.1    0.099  3.15  3.02  3.32   0.023     0.901
                0.2      0.2  2.41  2.29  2.56   0.138     0.800
    distance   0.01    0.009  3.92  3.77  4.11   0.000     0.965
               0.02  0.01875  3.46  3.32  3.62   0.003     0.930
               0.05  0.04925  2.69  2.56  2.85   0.050     0.823
                0.1  0.09875  1.94  1.82  2.07   0.257     0.677
                0.2    0.199  1.03  1.01  1.12   0.966     0.459
    """
    return TradeOff(
        tuple(
            compare(
                proba,
                y,
                losses=losses,
                growths=[growth],
                alphas=alphas,
                classes=classes,
                folds=folds,
                random_state=random_state,
                clusters=clusters,
                relative=relative,
            )
        )
    )


def fitted(header: Sequence[str], rows: Sequence[Sequence[str]]) -> TextTable:
    """Make a table at most 80 characters wide; long names in its first column are cut."""
    others = [*zip(header, *rows, strict=True)][1:]
    room = _WIDTH - sum(2 + max(map(len, column)) for column in others)
    return TextTable("", tuple(header), [(_shortened(name, room), *cells) for name, *cells in rows])


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
