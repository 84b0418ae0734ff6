"""Which rows keep the label of the model, and which are referred."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.display.tables import LabelColumn, Table, pandas_frame, polars_frame
from ordinalrisk.evaluation.estimates import Value, share
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.row_index import index_columns

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_NO_LABEL = -1


class TriagedRows(Table):
    r"""For each row, whether it is accepted, and the label of the model.

    Made by :meth:`~ordinalrisk.TriageController.decide`. A row is accepted if the model's own risk of its
    label ``m`` is below the threshold,

    .. math:: R(m, m) = \sum_i p_i\,G[i, m] < t.

    In frames, the label of a referred row is missing.

    Attributes
    ----------
    accepted : array of bool
        Whether each row is accepted.
    referred : array of int
        The positions of the rows that are referred.
    labels : array
        The labels of the accepted rows, in their order.
    model_risk : array of float
        The model's own risk of each row's label. Look at the largest first.
    classes : array
        The labels in order.
    index : pandas.Index or None
        The index of the rows, if they came as a pandas frame.

    Examples
    --------
    >>> import ordinalrisk as orisk
    >>> proba, y = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]] * 100, [0, 1, 0] * 100
    >>> triage = orisk.TriageController(alpha=0.05, delta=0.05).calibrate(proba, y)
    >>> decisions = triage.decide([[0.8, 0.1, 0.1], [0.4, 0.3, 0.3]])
    >>> decisions
    TriagedRows of 2 rows, 3 classes: 1 accepted, 1 referred
    >>> decisions.labels, decisions.referred
    (array([0]), array([1]))
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        accepted: NDArray[np.bool_],
        label_index: NDArray[np.int64],
        model_risk: NDArray[np.float64],
        classes: Classes,
        index: Any = None,
    ) -> None:
        self.accepted, self.model_risk = accepted, model_risk
        self.label_index = np.where(accepted, label_index, _NO_LABEL)
        self.classes, self.index = classes, index

    @property
    def referred(self) -> NDArray[np.int64]:
        return np.flatnonzero(~self.accepted)

    @property
    def labels(self) -> Any:
        return self.classes[self.label_index[self.accepted]]

    def share_accepted(self, confidence: float | None = None) -> Value:
        """Return the share of rows that are accepted.

        Parameters
        ----------
        confidence : number, optional
            Also return the exact binomial interval of this confidence. It is valid for rows that did not
            calibrate.

        Returns
        -------
        float or Estimate
            The share, with the ends of its interval if there is a ``confidence``; NaN without rows.

        Examples
        --------
        >>> import ordinalrisk as orisk
        >>> proba, y = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]] * 100, [0, 1, 0] * 100
        >>> triage = orisk.TriageController(alpha=0.05, delta=0.05).calibrate(proba, y)
        >>> print(triage.decide(proba[:30]).share_accepted(confidence=0.95))
        0.6667 (0.4719 to 0.8271)
        """
        return share(int(self.accepted.sum()), len(self), confidence)

    def to_pandas(self, index: Any = None) -> pd.DataFrame:
        """Make a pandas frame with columns ``accepted``, ``label`` and ``model_risk``.

        Parameters
        ----------
        index : array-like, optional
            The index of the frame; by default that of the rows that were decided.

        Returns
        -------
        pandas.DataFrame
            The label of a referred row is missing. Labels that are text are ordered categoricals.

        Examples
        --------
        >>> import ordinalrisk as orisk
        >>> proba, y = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]] * 100, [0, 1, 0] * 100
        >>> triage = orisk.TriageController(alpha=0.05, delta=0.05).calibrate(proba, y)
        >>> triage.decide(proba[1:3]).to_pandas()
           accepted  label  model_risk
        0      True      1         0.2
        1     False   <NA>         0.6
        """
        return pandas_frame(self._columns(), self.index if index is None else index)

    def to_polars(self, index: Any = None) -> pl.DataFrame:
        """Make a polars frame with columns ``accepted``, ``label`` and ``model_risk``.

        Parameters
        ----------
        index : array-like, optional
            The name of each row, for a first column ``index``. By default the pandas index of the rows that
            were decided, if they have one.

        Returns
        -------
        polars.DataFrame
            The label of a referred row is null. Labels that are text are an Enum.

        Examples
        --------
        >>> import ordinalrisk as orisk
        >>> proba, y = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]] * 100, [0, 1, 0] * 100
        >>> triage = orisk.TriageController(alpha=0.05, delta=0.05).calibrate(proba, y)
        >>> triage.decide(proba[1:3]).to_polars()["label"].to_list()
        [1, None]
        """
        names = index_columns(self.index) if index is None else {"index": index}
        columns = self._columns()
        if taken := [name for name in names if name in columns]:
            raise ValueError(f"The index and a column are both called {taken[0]!r}; rename the index.")
        return polars_frame({**names, **columns})

    def _columns(self) -> dict[str, Any]:
        label = LabelColumn(self.label_index, self.classes)
        return {"accepted": self.accepted, "label": label, "model_risk": self.model_risk}

    def _heading(self) -> str:
        return repr(self).partition(" ")[2]

    def __len__(self) -> int:
        return len(self.accepted)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TriagedRows):
            return NotImplemented
        return self.classes.tolist() == other.classes.tolist() and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("label_index", "model_risk")
        )

    def __repr__(self) -> str:
        n_accepted = int(self.accepted.sum())
        return (
            f"TriagedRows of {len(self):,} rows, {len(self.classes):,} classes: {n_accepted:,} accepted, "
            f"{len(self) - n_accepted:,} referred"
        )

    __str__ = __repr__
