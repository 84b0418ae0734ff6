"""Everything that a report shows, as one dict of plain numbers and text.

Rows come in batches, and what is kept of them does not grow with their number: the counts at each stop, the
most striking rows, a sample for comparing growth rules. The dict is the same however the rows were cut, and
parts that were counted on several machines merge to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from os import PathLike, fspath
from typing import Any

import numpy as np

from ordinalrisk import __version__
from ordinalrisk.calibration.guarantees import Guarantee, guarantee_of
from ordinalrisk.controller import RiskController, require_calibrated
from ordinalrisk.evaluation.estimates import CONFIDENCE, Estimate
from ordinalrisk.evaluation.outcomes import Evaluation
from ordinalrisk.evaluation.striking import StrikingRows
from ordinalrisk.inputs.arrays import to_numpy
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.inputs.labels import class_indices
from ordinalrisk.inputs.numbers import decimal_text
from ordinalrisk.inputs.random_rows import as_row_number
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.losses.kinds import loss_in_words, of_side
from ordinalrisk.prediction.predictor import Predictor, require_columns
from ordinalrisk.recalibration.applying import recalibrated
from ordinalrisk.report.facts import (
    is_plain,
    measured,
    promise_facts,
    promised,
    recalibration_facts,
    scores_compared,
    shown_strata,
    stratum_facts,
    threshold_facts,
)
from ordinalrisk.report.headline import headline, loss_name
from ordinalrisk.report.lookup import lookup
from ordinalrisk.report.rows import ReportRows, shown_columns
from ordinalrisk.report.rule_comparison import compare_rules
from ordinalrisk.report.slices import FEWEST_ROWS
from ordinalrisk.report.stops import alpha_range, stops_of

_SHARES = " Losses, risks and alpha are shares of what could be lost."


class ReportSummary:
    """A calibration on test rows, at every stop of the slider over ``alpha``.

    Parameters
    ----------
    controller : RiskController
        Calibrated, with a growth rule that finds its own point labels.
    random_state : int, optional
        For randomized sets, as for :meth:`ordinalrisk.RiskController.predict_set`.
    unseen_groups : {"error", "full"}
        What to do with groups that had no calibration rows: raise an error, or predict all labels.
    first_row : int
        The number of rows before the first that will be added, for a part that is to be merged.

    Attributes
    ----------
    first_row, n_rows : int
        The number of rows before this part, and in it.
    rows : ReportRows
        What is kept of the rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 2, 4, 2, 1], size=1000)
    >>> y = np.array([rng.choice(5, p=p) for p in proba])
    >>> controller = RiskController(alpha=0.1).calibrate(proba[:500], y[:500])
    >>> summary = ReportSummary(controller)
    >>> summary.add(proba[500:800], y[500:800])
    >>> summary.add(proba[800:], y[800:])
    >>> facts = summary.finish()
    >>> stop = facts["stops"][facts["start"]]
    >>> stop["alpha"], stop["verdict"], facts["test"]["rows"]
    ('0.1', 'agrees', 500)
    """

    def __init__(
        self,
        controller: RiskController,
        *,
        random_state: int | None = None,
        unseen_groups: str = "error",
        first_row: int = 0,
    ) -> None:
        require_calibrated(controller)
        if controller.growth.point == "given":
            raise ValueError(
                'A report needs a growth rule that finds its own point labels; this one has point="given".'
            )
        if isinstance(random_state, np.random.Generator):
            raise ValueError(
                "A report shows its random_state, which must be a whole number, not a Generator."
            )
        spec, calibration = controller.spec, controller.calibration_
        self._calibrated: RiskController | None = controller
        self._seed, self.first_row = random_state, as_row_number(first_row)
        self._plain = is_plain(spec, calibration)
        self._shown = shown_strata(calibration.strata)
        self._ranges = [alpha_range(part, spec.promise) for part in calibration.strata.parts]
        self._stops = stops_of(spec, calibration, self._ranges, len(self._shown), plain=self._plain)
        own = (
            Fraction(1)
            if isinstance(spec.alpha, Mapping)
            else spec.stratum_alphas(spec.alpha, calibration)[0]
        )
        self._start = [stop.value for stop in self._stops].index(own)
        predictors = [Predictor(spec.growth, calibration, stop.thresholds) for stop in self._stops]
        self.rows = ReportRows(predictors, self._start, unseen_groups, random_state)
        self._part: int | None = self.first_row

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.rows.n_rows

    def add(
        self,
        proba: Any,
        y: Any,
        cases: Any = None,
        groups: Any = None,
        clusters: Any = None,
        sample_weight: Any = None,
    ) -> None:
        """Add test rows.

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
        require_same_rows(proba=proba, y=y, groups=groups, clusters=clusters, sample_weight=sample_weight)
        controller, scores = self._controller, to_numpy(proba, "proba")
        matrix, classes = recalibrated(scores, controller.recalibration), controller.classes_
        require_columns(proba, matrix.shape[1], classes)
        labels = class_indices(to_numpy(y, "y"), classes, len(matrix))
        columns, next_row = shown_columns(cases, len(matrix)), self.rows.next_row(self.first_row)
        if self._part is None:  # rows after a merge are a part of their own
            self._part = next_row
        part = self._part
        self.rows.add(Batch(matrix, labels, groups, clusters, sample_weight, None, columns, part, next_row))

    def merge(self, other: ReportSummary) -> ReportSummary:
        """Return the summary of the rows of both, which are left as they are.

        Parts can be merged in any order and grouping. With more than one part that has rows, the fingerprint
        is made of theirs. Rows that are added after a merge follow the last ones, and are a part too.

        A pickled summary has no controller. It can still be merged, and a merge with a new one can finish.

        Parameters
        ----------
        other : ReportSummary
            Of the same calibration, ``random_state`` and ``unseen_groups``, and of other rows.

        Returns
        -------
        ReportSummary
            A new one.

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
        ...     summary = summary.merge(pickle.loads(pickle.dumps(part)))
        >>> summary.finish()["stops"] == summarise(controller, proba, y)["stops"]
        True
        """
        both = object.__new__(ReportSummary)
        both.__dict__.update(self.__dict__)
        both.rows, both._part = self.rows.merge(other.rows), None
        both._calibrated = self._calibrated or other._calibrated
        both._stops = self._stops or other._stops
        both.first_row = both.rows.spans[0][0] if both.rows.spans else min(self.first_row, other.first_row)
        return both

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the controller, which each machine has."""
        return self.__dict__ | {"_calibrated": None, "_stops": []}

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
        *,
        title: str | None = None,
        date: str | None = None,
        test_bytes: int | None = None,
        rows: bool = True,
    ) -> dict[str, Any]:
        """Return all that the report shows of the rows so far.

        Parameters
        ----------
        calibration_file, test_file : path, optional
            Where the calibration and the test rows came from, to be shown.
        columns : mapping, optional
            The columns of the scores and the label; by default those saved in the calibration.
        title, date : str, optional
            What the report is called, and when it was made, to be shown.
        test_bytes : int, optional
            The size of the test files, to be shown.
        rows : bool
            Whether to include single rows with their columns: the first 20,000, and those with the largest
            sets and the worst misses. If False, it contains only numbers of rows taken together, among them
            the misses by value of a column, for values with at least 5 rows.

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
        controller, outcomes = self._controller, self.rows.outcomes
        spec, calibration = controller.spec, controller.calibration_
        values, digest = [stop.value for stop in self._stops], self.rows.fingerprint.hexdigest()
        by_class, start = isinstance(spec.alpha, Mapping), self._start
        striking = self.rows.striking if rows else StrikingRows(len(self._stops), calibration.costs)
        proba, labels = self.rows.sample.drawn()
        guarantees = [guarantee_of(stop.thresholds) for stop in self._stops]
        evaluations = outcomes.finish(
            calibration,
            guarantees,
            calibrated_on=digest == controller.data_blake3_,
            parts=self._shown,
        )
        return {
            "format": "ordinalrisk report",
            "schema_version": 1,
            "package_version": __version__,
            "title": title,
            "date": date,
            "confidence": CONFIDENCE,
            "classes": self._class_names,
            "loss": {
                "name": loss_name(controller.loss),
                "text": repr(controller.loss),
                "bound": "1" if spec.relative else decimal_text(calibration.costs.bound),
                "description": loss_in_words(controller.loss, self._class_names, spec.side)
                + (_SHARES * spec.relative),
            },
            "growth": {"name": controller.growth.name, "point": controller.growth.point},
            "alpha": decimal_text(values[start]),
            "start": start,
            "calibration": self._calibration(calibration_file, columns),
            "test": {
                "file": None if test_file is None else fspath(test_file),
                "bytes": test_bytes,
                "rows": self.n_rows,
                "class_rows": evaluations[start].tally.class_rows.tolist(),
                "data_blake3": digest,
            },
            "stops": self._stop_facts(guarantees, evaluations, striking),
            "cases": {
                "columns": self.rows.columns if rows else [],
                "rows": self._cases(striking),
                "lookup": lookup(striking.cases, outcomes.distinct),
            },
            "slices": self.rows.slices.finish(1 if rows else FEWEST_ROWS),
            "reliability": self.rows.reliability.finish(),
            "scores": scores_compared(calibration, self.rows.scores.counts),
            "rules": None if by_class else compare_rules(controller, proba, labels, values, self.n_rows),
            **self._promise(guarantees[start], evaluations[start]),
        }

    def _stop_facts(
        self, guarantees: list[Guarantee], evaluations: list[Evaluation], striking: StrikingRows
    ) -> list[dict[str, Any]]:
        """Return what holds, and what was realised, at each stop."""
        relative = self._controller.relative
        bound = 1 if relative else self._controller.calibration_.costs.bound
        loss = of_side(self._controller.loss, self._controller.side, len(self._class_names))
        position = {row: i for i, row in enumerate(sorted(striking.striking))}
        numbers: dict[int, dict[str, Any]] = {}
        facts = []
        for stop, at, guarantee, evaluation in zip(
            self._stops, self.rows.outcomes.distinct, guarantees, evaluations, strict=True
        ):
            whole, values = evaluation.whole, stop.thresholds.values
            if at not in numbers:
                risk = Estimate(0.0, 0.0, float(bound)) if whole is None else whole.risk
                numbers[at] = measured(evaluation.tally, loss, risk, relative)
            one = values[0] if len(values) == 1 and guarantee.shift is None else None
            words = headline(self._controller.loss, len(self._class_names), guarantee)
            facts.append(promised(stop.value, guarantee, words, evaluation, one) | numbers[at])
            facts[-1] |= {
                "widest": [position[row] for row in striking.widest[at].rows],
                "missed": [position[row] for row in striking.missed[at].rows],
            }
            if not self._plain:
                promise, _, _ = " ".join(str(guarantee).split()).partition(f", {guarantee.condition()}")
                strata = zip(evaluation.strata, self._shown, strict=True)
                facts[-1] |= {
                    "lead": f"{promise}.",
                    "units": 1.0 if whole is None else whole.n_units,
                    "strata": [stratum_facts(each, values[part]) for each, part in strata],
                }
        return facts

    def _cases(self, striking: StrikingRows) -> list[dict[str, Any]]:
        """Return the striking rows with their sets, or with the number of stops that include each label."""
        outcomes, label = self.rows.outcomes, np.arange(len(self._controller.classes_))
        kept, cases = striking.cases, []
        for row in sorted(striking.striking):
            case = kept[row]
            ends = case.ends[outcomes.distinct]
            inside = (ends[:, :1] <= label) & (label <= ends[:, 1:])
            sets = {"until": inside.sum(axis=0).tolist()} if self._plain else {"sets": ends.tolist()}
            cases.append({"row": row + 1, "values": case.values, "truth": case.truth, **sets})
        return cases

    def _promise(self, guarantee: Guarantee, evaluation: Evaluation) -> dict[str, Any]:
        """Return what is guaranteed beyond one risk for all rows, if anything is."""
        if self._plain:
            return {}
        spec, calibration = self._controller.spec, self._controller.calibration_
        outcomes, strata = self.rows.outcomes, calibration.strata
        unseen = 0 if strata.groups is None else outcomes.part_rows(len(strata.parts))
        facts = promise_facts(spec, calibration, guarantee, evaluation.strata, self._seed)
        return {"promise": facts | {"test_clusters": outcomes.n_clusters, "unseen_rows": unseen}}

    @property
    def _class_names(self) -> list[str]:
        return [str(label) for label in self._controller.classes_.tolist()]

    def _calibration(self, file: str | PathLike[str] | None, columns: Any) -> dict[str, Any]:
        controller = self._controller
        strata = controller.calibration_.strata
        curves = [part.curve for part in strata.parts]
        is_whole = all(curve.is_whole for curve in curves)
        if columns is None and controller.columns_ is not None:
            columns = controller.columns_.to_dict()
        exempt = self._stops[self._start].thresholds.exempt
        promised = [each for each, no_promise in zip(self._ranges, exempt, strict=True) if not no_promise]
        lowest = [each.lowest for each in promised if each is not None]
        return {
            "file": None if file is None else fspath(file),
            "rows": controller.n_rows_,
            "bound": decimal_text(controller.calibration_.costs.bound),
            "most_tied": max(curve.most_tied for curve in curves) if is_whole else None,
            "levels": sum(len(curve.levels) for curve in curves),
            "threshold": threshold_facts(controller.thresholds_[0]) if strata.is_one else None,
            "data_blake3": controller.data_blake3_,
            "columns": columns,
            "smallest_alpha": decimal_text(max(lowest)) if len(lowest) == len(promised) else None,
            "recalibration": recalibration_facts(controller.recalibration),
        }


def summarise(
    controller: RiskController,
    proba: Any,
    y: Any,
    *,
    cases: Any = None,
    groups: Any = None,
    clusters: Any = None,
    sample_weight: Any = None,
    random_state: int | None = None,
    unseen_groups: str = "error",
    calibration_file: str | PathLike[str] | None = None,
    test_file: str | PathLike[str] | None = None,
    columns: Any = None,
    title: str | None = None,
    date: str | None = None,
    rows: bool = True,
) -> dict[str, Any]:
    """Return everything that a report on test rows shows, as JSON types.

    Parameters
    ----------
    controller : RiskController
        Calibrated, with a growth rule that finds its own point labels.
    proba, y, cases, groups, clusters, sample_weight
        The test rows, as for :meth:`ReportSummary.add`.
    random_state, unseen_groups
        As for :class:`ReportSummary`.
    calibration_file, test_file, columns, title, date, rows
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
    summary = ReportSummary(controller, random_state=random_state, unseen_groups=unseen_groups)
    summary.add(proba, y, cases, groups, clusters, sample_weight)
    return summary.finish(calibration_file, test_file, columns, title=title, date=date, rows=rows)
