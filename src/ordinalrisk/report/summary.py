"""Everything that a report shows, as one dict of plain numbers and text.

Rows come in batches, and what is kept of them does not grow with their number: the counts at each stop, the
most striking rows, a sample for comparing growth rules. The dict is the same however the rows were cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk import __version__
from ordinalrisk.controller import RiskController
from ordinalrisk.cost_table import CostTable
from ordinalrisk.estimates import CONFIDENCE, Estimate
from ordinalrisk.exact import as_fraction, decimal_text
from ordinalrisk.fingerprint import Fingerprint
from ordinalrisk.intervals import IntervalSet
from ordinalrisk.labels import class_indices, require_column_order
from ordinalrisk.probabilities import as_matrix, to_numpy
from ordinalrisk.random_rows import RandomRows
from ordinalrisk.report.describing import loss_in_words
from ordinalrisk.report.measured import measured
from ordinalrisk.report.rules import rules_compared
from ordinalrisk.report.stops import Stop, stops_of
from ordinalrisk.report.striking import StrikingRows, shown_columns
from ordinalrisk.report.verdict import verdict_of
from ordinalrisk.tally import Tally

FORMAT = "ordinalrisk report"
SCHEMA_VERSION = 1

_ROWS_AT_ONCE = 65_536
_ROWS_COMPARED = 20_000


class ReportSummary:
    """A calibration on test rows, at every stop of the slider over ``alpha``.

    Parameters
    ----------
    controller : RiskController
        Calibrated, with a growth rule that finds its own point labels.

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

    def __init__(self, controller: RiskController) -> None:
        controller._require_calibrated()
        if controller.growth.point == "given":
            raise ValueError(
                'A report needs a growth rule that finds its own point labels; this one has point="given".'
            )
        self._controller = controller
        self._alpha = as_fraction(controller.alpha)
        K = len(controller.classes_)
        self._costs = CostTable.of(controller.loss, K)
        self._stops = stops_of(controller.risk_curve_, self._alpha, K)
        thresholds = [stop.threshold for stop in self._stops]
        self._tallies = {threshold: Tally.empty(K) for threshold in thresholds}
        self._striking = StrikingRows(controller.growth, controller.loss, K, thresholds)
        self._sample = RandomRows(_ROWS_COMPARED)
        self._fingerprint = Fingerprint()
        self._columns: list[str] | None = None
        self._n_rows = 0

    def add(self, proba: Any, y: Any, cases: Any = None) -> None:
        """Take in test rows.

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities, as for :meth:`RiskController.predict_set`, on the host.
        y : array-like of shape (n,)
            The true labels, of the controller's classes.
        cases : mapping, optional
            For each name of a column one value for each row. The first 6 columns are shown in the tables of
            cases; every batch has the same.
        """
        matrix, labels = self._checked(proba, y)
        columns = shown_columns(cases, len(matrix))
        if self._columns not in (None, [*columns]):
            raise ValueError(
                f"This batch of cases has the columns {[*columns]}, those before {self._columns}."
            )
        self._fingerprint.update(matrix, labels)
        self._columns = [*columns]
        self._sample.add(matrix, labels)
        for start in range(0, len(matrix), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            self._count(matrix[rows], labels[rows], self._n_rows + start)
        self._striking.keep(matrix, labels, columns, self._n_rows)
        self._n_rows += len(matrix)

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
        """
        if not self._n_rows:
            raise ValueError("There are no test rows to report on.")
        controller = self._controller
        alphas = [stop.alpha for stop in self._stops]
        cases = self._striking.cases
        return {
            "format": FORMAT,
            "schema_version": SCHEMA_VERSION,
            "package_version": __version__,
            "confidence": CONFIDENCE,
            "classes": self._class_names,
            "loss": {
                "text": repr(controller.loss),
                "bound": decimal_text(self._costs.bound),
                "description": loss_in_words(controller.loss, self._class_names),
            },
            "growth": {"name": controller.growth.name, "point": controller.growth.point},
            "alpha": decimal_text(self._alpha),
            "start": alphas.index(self._alpha),
            "calibration": self._calibration(calibration_file, columns),
            "test": {
                "file": None if test_file is None else fspath(test_file),
                "rows": self._n_rows,
                "class_rows": self._tallies[self._stops[0].threshold].class_rows.tolist(),
                "data_blake3": self._fingerprint.hexdigest(),
            },
            "stops": self._stop_dicts({row: i for i, row in enumerate(cases)}),
            "cases": {
                "columns": self._columns,
                "rows": [{"row": row + 1, **case._asdict()} for row, case in cases.items()],
            },
            "rules": rules_compared(controller, *self._sample.drawn(), alphas, self._n_rows),
        }

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
        labels = class_indices(to_numpy(y, "y"), classes, len(matrix))
        self._sets(matrix, math.inf)
        return matrix, labels

    def _sets(self, matrix: NDArray[Any], threshold: float) -> IntervalSet:
        lower, upper = self._controller.growth.intervals(matrix, self._costs, threshold, None)
        return IntervalSet.of(lower, upper, self._controller.classes_)

    def _count(self, matrix: NDArray[Any], labels: NDArray[np.int64], first_row: int) -> None:
        rows = np.arange(first_row, first_row + len(matrix))
        for threshold in self._tallies:
            sets = self._sets(matrix, threshold)
            self._tallies[threshold] += Tally.of(labels, sets)
            self._striking.offer(threshold, labels, sets, rows)

    def _calibration(self, file: str | PathLike[str] | None, columns: Any) -> dict[str, Any]:
        controller, curve = self._controller, self._controller.risk_curve_
        remembered = controller.columns_
        if columns is None and remembered is not None:
            columns = remembered.to_dict()
        return {
            "file": None if file is None else fspath(file),
            "rows": curve.n_rows,
            "bound": decimal_text(curve.bound),
            "most_tied": curve.most_tied,
            "levels": len(curve.levels),
            "threshold": {"decimal": repr(controller.threshold_), "hex": controller.threshold_.hex()},
            "data_blake3": controller.data_blake3_,
            "columns": columns,
            "smallest_alpha": decimal_text(curve.bound / (curve.n_rows + 1)),
        }

    def _stop_dicts(self, case_index: Mapping[int, int]) -> list[dict[str, Any]]:
        tallies, loss = self._tallies, self._controller.loss
        with ThreadPoolExecutor() as pool:  # the bootstrap behind most intervals leaves the interpreter free
            numbers = dict(
                zip(tallies, pool.map(measured, tallies.values(), [loss] * len(tallies)), strict=True)
            )
        return [
            self._promised(stop, Estimate(*numbers[stop.threshold]["risk"]))
            | numbers[stop.threshold]
            | {
                "widest": [case_index[row] for row in self._striking.widest(stop.threshold)],
                "missed": [case_index[row] for row in self._striking.missed(stop.threshold)],
            }
            for stop in self._stops
        ]

    def _promised(self, stop: Stop, risk: Estimate) -> dict[str, Any]:
        """What is guaranteed at a stop, and whether the realised risk bears it out."""
        guarantee = self._controller.guarantee(stop.alpha)
        calibrated_on = self._fingerprint.hexdigest() == self._controller.data_blake3_
        tally, loss = self._tallies[stop.threshold], self._controller.loss
        verdict = verdict_of(tally, loss, guarantee, risk, calibrated_on)
        return {
            "alpha": decimal_text(stop.alpha),
            "value": float(stop.alpha),
            "threshold": stop.threshold if math.isfinite(stop.threshold) else str(stop.threshold),
            "certified": guarantee.certified,
            "saturated": guarantee.saturated,
            "guarantee": " ".join(str(guarantee).splitlines()),
            "verdict": verdict.word,
            "verdict_text": verdict.text,
        }


def summarise(
    controller: RiskController,
    proba: Any,
    y: Any,
    *,
    cases: Any = None,
    calibration_file: str | PathLike[str] | None = None,
    test_file: str | PathLike[str] | None = None,
    columns: Any = None,
) -> dict[str, Any]:
    """Everything that a report on test rows shows, as JSON types.

    Parameters
    ----------
    controller : RiskController
        Calibrated, with a growth rule that finds its own point labels.
    proba, y, cases
        The test rows, as for :meth:`ReportSummary.add`.
    calibration_file, test_file, columns
        As for :meth:`ReportSummary.finish`.

    Examples
    --------
    >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
    >>> controller = RiskController(alpha=0.1).calibrate(proba, [1, 2, 2] + [0, 1, 2] * 6)
    >>> summary = summarise(controller, proba, [0, 1, 2] * 7, cases={"id": range(21)})
    >>> summary["stops"][summary["start"]]["coverage"][0], summary["cases"]["columns"]
    (1.0, ['id'])
    """
    summary = ReportSummary(controller)
    summary.add(proba, y, cases)
    return summary.finish(calibration_file, test_file, columns)
