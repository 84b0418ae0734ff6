"""Everything that a report shows, as one dict of plain numbers and text.

Rows come in batches, and what is kept of them does not grow with their number: the counts at each stop, the
most striking rows, a sample for comparing growth rules. The dict is the same however the rows were cut, and
parts that were counted on several machines merge to it.
"""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk import __version__
from ordinalrisk.calibration.accumulate import RowExtras
from ordinalrisk.calibration.fingerprint import Fingerprint, of_parts
from ordinalrisk.controller import RiskController
from ordinalrisk.evaluation.estimates import CONFIDENCE
from ordinalrisk.evaluation.origin import Origin
from ordinalrisk.inputs.arrays import to_numpy
from ordinalrisk.inputs.labels import class_indices, require_column_order
from ordinalrisk.inputs.matrix import as_matrix
from ordinalrisk.inputs.numbers import decimal_text
from ordinalrisk.inputs.random_rows import RandomRows, require_next
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.losses.words import loss_in_words
from ordinalrisk.report.counting import AtOneThreshold, AtOwnThresholds, Counted
from ordinalrisk.report.promising import is_plain, promise_facts
from ordinalrisk.report.rules import rules_compared
from ordinalrisk.report.striking import shown_columns

FORMAT = "ordinalrisk report"
SCHEMA_VERSION = 1

_ROWS_COMPARED = 20_000


class ReportSummary:
    """A calibration on test rows, at every stop of the slider over ``alpha``.

    Parameters
    ----------
    controller : RiskController
        Calibrated, with a growth rule that finds its own point labels.
    seed : int, optional
        For randomized sets, as for :meth:`ordinalrisk.RiskController.predict_set`.
    unseen_groups : {"error", "full"}
        What becomes of rows of a group without calibration rows.
    first_row : int
        The number of rows before the first that will be added, for a part that is to be merged.

    Attributes
    ----------
    first_row, n_rows : int
        The number of rows before it, and of those in it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 2, 4, 2, 1], size=1000)
    >>> y = np.array([rng.choice(5, p=p) for p in proba])
    >>> controller = RiskController(alpha=0.1).calibrate(proba[:500], y[:500])
    >>> summary = ReportSummary(controller)
    >>> summary.add(proba[500:800], y[500:800])
    >>> summary.add(proba[800:], y[800:])
    >>> found = summary.finish()
    >>> stop = found["stops"][found["start"]]
    >>> stop["alpha"], stop["verdict"], found["test"]["rows"]
    ('0.1', 'agrees', 500)
    """

    def __init__(
        self,
        controller: RiskController,
        *,
        seed: int | None = None,
        unseen_groups: str = "error",
        first_row: int = 0,
    ) -> None:
        controller._require_calibrated()
        if controller.growth.point == "given":
            raise ValueError(
                'A report needs a growth rule that finds its own point labels; this one has point="given".'
            )
        if isinstance(seed, np.random.Generator):
            raise ValueError("A report shows its seed, which must be a whole number, not a Generator.")
        self._calibrated: RiskController | None = controller
        self._seed = seed
        self._counted: Counted = (
            AtOneThreshold(controller)
            if is_plain(controller) and seed is None
            else AtOwnThresholds(controller, seed, unseen_groups)
        )
        self._sample = RandomRows(_ROWS_COMPARED, first_row=first_row)
        self._origin = (
            Origin.of(controller.calibration_),
            repr(controller.growth),
            repr(controller.spec.promise),
            tuple(controller.thresholds_),
            tuple(self._counted.values),
            seed,
            unseen_groups,
        )
        self._fingerprint: Fingerprint | None = None
        self._digests: list[str] = []  # of the parts before the rows of that fingerprint
        self._number_type: str | None = None
        self._columns: list[str] | None = None
        self.first_row, self.n_rows = self._sample.first_row, 0

    def add(
        self,
        proba: Any,
        y: Any,
        cases: Any = None,
        groups: Any = None,
        clusters: Any = None,
        sample_weight: Any = None,
    ) -> None:
        """Take in test rows.

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities, as for :meth:`ordinalrisk.RiskController.predict_set`, on the host.
        y : array-like of shape (n,)
            The true labels, of the controller's classes.
        cases : mapping, optional
            For each name of a column one value for each row. The first 6 columns are shown in the tables of
            cases; every batch has the same.
        groups, clusters, sample_weight : array-like of shape (n,), optional
            Those that the calibration was made with, as for :meth:`ordinalrisk.RiskController.calibrate`.

        Examples
        --------
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
        >>> controller = RiskController(alpha=0.1).calibrate(proba, [1, 2, 2] + [0, 1, 2] * 6)
        >>> summary = ReportSummary(controller)
        >>> summary.add(proba, [0, 1, 2] * 7, cases={"id": range(21)})
        >>> summary.n_rows
        21
        """
        extras = RowExtras(groups, clusters, sample_weight)
        require_same_rows(proba=proba, y=y, groups=groups, clusters=clusters, sample_weight=sample_weight)
        matrix, labels = self._checked(proba, y)
        self._counted.check(matrix, extras)
        columns, number_type = shown_columns(cases, len(matrix)), _number_type(matrix)
        self._require_alike("This batch", [*columns], number_type)
        self._fingerprint = (self._fingerprint or Fingerprint()).update(matrix, labels)
        self._columns, self._number_type = [*columns], number_type
        self._counted.add(matrix, labels, extras, columns, self._sample.next_row)
        self._sample.add(matrix, labels)
        self.n_rows += len(matrix)

    def merge(self, other: ReportSummary) -> ReportSummary:
        """Take in the summary of the rows that directly follow, which is left as it is; gives this one.

        The result is the summary of all rows, and they can be merged in any grouping as long as they stay in
        order. Only the fingerprint tells: with more than one part that has rows it is made of theirs. Rows
        that are added after a merge are a part too.

        A summary that was pickled has left the controller behind. It can still be merged with others, and is
        finished by a last merge into a new one.

        Parameters
        ----------
        other : ReportSummary
            Of the same calibration, seed and ``unseen_groups``; its ``first_row`` is the row that comes next.

        Returns
        -------
        ReportSummary
            Itself.

        Examples
        --------
        >>> import pickle
        >>> proba, y = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7, [0, 1, 2] * 7
        >>> controller = RiskController(alpha=0.1).calibrate(proba, [1, 2, 2] + [0, 1, 2] * 6)
        >>> parts = [ReportSummary(controller, first_row=first) for first in (0, 9)]
        >>> parts[0].add(proba[:9], y[:9])
        >>> parts[1].add(proba[9:], y[9:])
        >>> summary = ReportSummary(controller)
        >>> for part in parts:
        ...     _ = summary.merge(pickle.loads(pickle.dumps(part)))
        >>> summary.finish()["stops"] == summarise(controller, proba, y)["stops"]
        True
        """
        if self._origin != other._origin:
            raise ValueError(
                "The part to merge was made for another calibration, seed or unseen_groups; make all parts "
                "from one controller, with the same ones."
            )
        require_next(self._sample.next_row, other.first_row)
        if not other.n_rows:
            return self
        assert other._columns is not None
        assert other._number_type is not None
        self._require_alike("The part to merge", other._columns, other._number_type)
        self._digests, self._fingerprint = [*self._all_digests, *other._all_digests], None
        self._columns, self._number_type = other._columns, other._number_type
        self._counted.merge(other._counted)
        self._sample.merge(other._sample)
        self.n_rows += other.n_rows
        return self

    def _require_alike(self, what: str, columns: list[str], number_type: str) -> None:
        if self._columns not in (None, columns):
            raise ValueError(f"{what} has cases with the columns {columns}, those before {self._columns}.")
        if self._number_type not in (None, number_type):
            raise ValueError(
                f"{what} has probabilities of type {number_type}, those before of {self._number_type}; "
                "convert all to one type."
            )

    @property
    def _all_digests(self) -> list[str]:
        """The fingerprint of each part."""
        last = [] if self._fingerprint is None else [self._fingerprint.hexdigest()]
        return [*self._digests, *last]

    def __getstate__(self) -> dict[str, Any]:
        """Without the controller, which each machine has, and with digests for hashers."""
        closed = {"_calibrated": None, "_digests": self._all_digests, "_fingerprint": None}
        return self.__dict__ | closed

    @property
    def _controller(self) -> RiskController:
        if self._calibrated is None:
            raise ValueError(
                "A summary that was pickled has left its controller behind; merge it into a new one, which "
                "can take in rows and finish: ReportSummary(controller, ...).merge(summary)."
            )
        return self._calibrated

    def finish(
        self,
        calibration_file: str | PathLike[str] | None = None,
        test_file: str | PathLike[str] | None = None,
        columns: Any = None,
    ) -> dict[str, Any]:
        """The summary of the rows so far.

        Parameters
        ----------
        calibration_file, test_file : path, optional
            Where the calibration and the test rows came from, to be shown.
        columns : mapping, optional
            Which columns held the scores and the label; by default those that the calibration remembers.

        Returns
        -------
        dict
            Numbers and text only, as JSON has them.

        Examples
        --------
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
        >>> controller = RiskController(alpha=0.1).calibrate(proba, [1, 2, 2] + [0, 1, 2] * 6)
        >>> summary = ReportSummary(controller)
        >>> summary.add(proba, [0, 1, 2] * 7)
        >>> summary.finish(test_file="test.csv")["test"]["file"]
        'test.csv'
        """
        if not self.n_rows:
            raise ValueError("There are no test rows to report on.")
        controller, counted = self._controller, self._counted
        cases = counted.cases
        digest = of_parts(self._all_digests)
        return {
            "format": FORMAT,
            "schema_version": SCHEMA_VERSION,
            "package_version": __version__,
            "confidence": CONFIDENCE,
            "classes": self._class_names,
            "loss": {
                "text": repr(controller.loss),
                "bound": decimal_text(controller.calibration_.costs.bound),
                "description": loss_in_words(controller.loss, self._class_names),
            },
            "growth": {"name": controller.growth.name, "point": controller.growth.point},
            "alpha": decimal_text(counted.values[counted.start]),
            "start": counted.start,
            "calibration": self._calibration(calibration_file, columns),
            "test": {
                "file": None if test_file is None else fspath(test_file),
                "rows": self.n_rows,
                "class_rows": counted.class_rows,
                "data_blake3": digest,
            },
            "stops": counted.stops(
                {row: i for i, row in enumerate(cases)}, calibrated_on=digest == controller.data_blake3_
            ),
            "cases": {
                "columns": self._columns,
                "rows": [{"row": row + 1, **case._asdict()} for row, case in cases.items()],
            },
            "rules": self._rules(),
            **self._promise(),
        }

    def _rules(self) -> dict[str, Any] | None:
        """The growth rules side by side, unless each class has its own ``alpha``."""
        counted = self._counted
        if isinstance(counted, AtOwnThresholds) and counted.parts.alphas_differ:
            return None
        return rules_compared(self._controller, *self._sample.drawn(), counted.values, self.n_rows)

    def _promise(self) -> dict[str, Any]:
        """What is promised beyond one risk for all rows, if anything is."""
        counted = self._counted
        if not isinstance(counted, AtOwnThresholds):
            return {}
        facts = promise_facts(self._controller, counted.parts, counted.part_rows, self._seed)
        tested = {"test_clusters": counted.n_clusters, "unseen_rows": counted.unseen_rows}
        return {"promise": facts | tested}

    @property
    def _class_names(self) -> list[str]:
        return [str(label) for label in self._controller.classes_.tolist()]

    def _checked(self, proba: Any, y: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The rows, after every check of them: none is counted unless all can be."""
        matrix = as_matrix(to_numpy(proba, "proba"))
        classes = self._controller.classes_
        if matrix.shape[1] != len(classes):
            raise ValueError(
                f"proba has {matrix.shape[1]} columns, but the calibration had {len(classes)} classes."
            )
        require_column_order(proba, classes)
        return matrix, class_indices(to_numpy(y, "y"), classes, len(matrix))

    def _calibration(self, file: str | PathLike[str] | None, columns: Any) -> dict[str, Any]:
        controller = self._controller
        remembered, strata = controller.columns_, controller.calibration_.strata
        curves = [part.curve for part in strata.parts]
        if columns is None and remembered is not None:
            columns = remembered.to_dict()
        threshold, smallest = controller.thresholds_[0], self._counted.smallest_alpha
        return {
            "file": None if file is None else fspath(file),
            "rows": controller.n_rows_,
            "bound": decimal_text(controller.calibration_.costs.bound),
            "most_tied": max(curve.most_tied for curve in curves)
            if all(curve.is_whole for curve in curves)
            else None,
            "levels": sum(len(curve.levels) for curve in curves),
            "threshold": {"decimal": repr(threshold), "hex": threshold.hex()} if strata.is_one else None,
            "data_blake3": controller.data_blake3_,
            "columns": columns,
            "smallest_alpha": None if smallest is None else decimal_text(smallest),
        }


def _number_type(matrix: NDArray[Any]) -> str:
    return matrix.dtype.names[0] if matrix.dtype.names else matrix.dtype.name


def summarise(
    controller: RiskController,
    proba: Any,
    y: Any,
    *,
    cases: Any = None,
    groups: Any = None,
    clusters: Any = None,
    sample_weight: Any = None,
    seed: int | None = None,
    unseen_groups: str = "error",
    calibration_file: str | PathLike[str] | None = None,
    test_file: str | PathLike[str] | None = None,
    columns: Any = None,
) -> dict[str, Any]:
    """Everything that a report on test rows shows, as JSON types.

    Parameters
    ----------
    controller : RiskController
        Calibrated, with a growth rule that finds its own point labels.
    proba, y, cases, groups, clusters, sample_weight
        The test rows, as for :meth:`ReportSummary.add`.
    seed, unseen_groups
        As for :class:`ReportSummary`.
    calibration_file, test_file, columns
        As for :meth:`ReportSummary.finish`.

    Returns
    -------
    dict
        Numbers and text only, as JSON has them.

    Examples
    --------
    >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
    >>> controller = RiskController(alpha=0.1).calibrate(proba, [1, 2, 2] + [0, 1, 2] * 6)
    >>> summary = summarise(controller, proba, [0, 1, 2] * 7, cases={"id": range(21)})
    >>> summary["stops"][summary["start"]]["coverage"][0], summary["cases"]["columns"]
    (1.0, ['id'])
    """
    summary = ReportSummary(controller, seed=seed, unseen_groups=unseen_groups)
    summary.add(proba, y, cases, groups, clusters, sample_weight)
    return summary.finish(calibration_file, test_file, columns)
