r"""One action for each prediction set: the one with the least worst-case cost over the labels in the set.

If the set contains the true label ``y``, the cost of any action is at most its worst case over the set. So
the cost exceeds it only on a miss, whatever the costs and however ties are broken:

.. math:: P(c(a, y) > W(a, C)) \le P(y \notin C).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.display.tables import ColumnsByName, LabelColumn, Table, pandas_frame, polars_frame
from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.labels import Classes, class_indices
from ordinalrisk.inputs.row_index import require_same_rows, with_index

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_ROWS_SHOWN = 8


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(Table):
    """An action for each row, with its worst-case cost.

    Attributes
    ----------
    action_index : array of int
        The position of each row's action in the table of costs.
    worst_case : array of float
        The largest cost of each row's action over the labels in its set.
    actions : tuple of str
        The names of the actions, in the order of the table.
    costs : array of float of shape (actions, K)
        The table of costs.
    classes : array
        The labels in order.
    index : pandas.Index or None
        The index of the rows, if the sets have one.

    Examples
    --------
    >>> from ordinalrisk import IntervalSet
    >>> sets = IntervalSet([0, 1], [0, 2], classes=["None", "Mild", "Severe"])
    >>> decisions = sets.decide({"treat": [3, 1, 0], "refer": [2, 2, 2], "wait": [0, 2, 9]})
    >>> decisions
    Decisions for 2 rows: treat 1, refer 0, wait 1
      0  wait, worst case 0
      1  treat, worst case 1
    """

    action_index: NDArray[np.int32]
    worst_case: NDArray[np.float64]
    actions: tuple[str, ...]
    costs: NDArray[np.float64]
    classes: Classes
    index: Any = None

    @property
    def action(self) -> NDArray[Any]:
        """The name of each row's action."""
        return self._names[self.action_index]

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows of each action, in the order of the table of costs."""
        times = np.bincount(self.action_index, minlength=len(self.actions))
        return dict(zip(self.actions, times.tolist(), strict=True))

    def cost(self, y: Any) -> NDArray[np.float64]:
        """Return what each row's action costs, given the true labels.

        Parameters
        ----------
        y : array-like of shape (n,)
            The true label of each row, by position; a pandas index is compared as in
            :meth:`ordinalrisk.IntervalSet.contains`.

        Returns
        -------
        array of float of shape (n,)
            The cost of the action for the true label. It is above ``worst_case`` only if the set misses it.

        Examples
        --------
        >>> from ordinalrisk import IntervalSet
        >>> sets = IntervalSet([0, 1], [0, 2], classes=["None", "Mild", "Severe"])
        >>> decisions = sets.decide({"treat": [3, 1, 0], "refer": [2, 2, 2], "wait": [0, 2, 9]})
        >>> decisions.cost(["Mild", "Mild"])
        array([2., 1.])
        """
        require_same_rows(decisions=self, y=y)
        label = to_host(class_indices(y, self.classes, len(self)))
        realised: NDArray[np.float64] = self.costs[self.action_index, label]
        return realised

    def to_pandas(self) -> pd.DataFrame:
        """Make a pandas frame with columns ``action`` and ``worst_case``.

        Returns
        -------
        pandas.DataFrame
            A row for each decision, with the index of the rows that were predicted. Actions are a
            categorical without an order.

        Examples
        --------
        >>> from ordinalrisk import IntervalSet
        >>> sets = IntervalSet([0, 1], [0, 2], classes=["None", "Mild", "Severe"])
        >>> sets.decide({"treat": [3, 1, 0], "wait": [0, 2, 9]}).to_pandas()
          action  worst_case
        0   wait         0.0
        1  treat         1.0
        """
        return pandas_frame(self._columns(), self.index)

    def to_polars(self) -> pl.DataFrame:
        """Make a polars frame with columns ``action`` and ``worst_case``.

        Returns
        -------
        polars.DataFrame
            A row for each decision. Actions are an Enum. The pandas index of the rows that were predicted
            comes first, if they have one.

        Examples
        --------
        >>> from ordinalrisk import IntervalSet
        >>> sets = IntervalSet([0, 1], [0, 2], classes=["None", "Mild", "Severe"])
        >>> sets.decide({"treat": [3, 1, 0], "wait": [0, 2, 9]}).to_polars()["action"].to_list()
        ['wait', 'treat']
        """
        return polars_frame(with_index(self._columns(), self.index))

    @property
    def _names(self) -> NDArray[Any]:
        return np.array(self.actions)

    def _columns(self) -> ColumnsByName:
        actions = LabelColumn(self.action_index, self._names, are_in_order=False)
        return {"action": actions, "worst_case": self.worst_case}

    def _heading(self) -> str:
        return f" for {len(self):,} rows: {', '.join(f'{name} {n:,}' for name, n in self.counts.items())}"

    def __len__(self) -> int:
        return len(self.action_index)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__}{self._heading()}"]
        shown = zip(self.action[:_ROWS_SHOWN], self.worst_case[:_ROWS_SHOWN], strict=True)
        lines += [f"  {i}  {name}, worst case {worst:g}" for i, (name, worst) in enumerate(shown)]
        if len(self) > _ROWS_SHOWN:
            lines.append(f"  ... {len(self) - _ROWS_SHOWN:,} more")
        return "\n".join(lines)

    __str__ = __repr__
