"""Evaluate a calibration on files with known labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ordinalrisk import __version__
from ordinalrisk.calibration.fingerprint import DataFingerprint
from ordinalrisk.calibration.guarantees import Guarantee, guarantee_of
from ordinalrisk.calibration.score_counts import ScoreCounts, difference_of
from ordinalrisk.composition.parts import Part
from ordinalrisk.controller import RiskController, require_calibrated
from ordinalrisk.display.tables import ColumnsByName, Table
from ordinalrisk.evaluation.class_table import ClassTable, class_table
from ordinalrisk.evaluation.estimates import CONFIDENCE
from ordinalrisk.evaluation.far_off import FarOff
from ordinalrisk.evaluation.joint_outcomes import JointOutcomes
from ordinalrisk.evaluation.outcomes import Evaluation, Outcomes
from ordinalrisk.evaluation.verdict import StratumRisk, Verdict
from ordinalrisk.files.find_columns import AskedColumns, Note
from ordinalrisk.inputs.arrays import to_numpy
from ordinalrisk.inputs.batch import Batch, SummaryGroup
from ordinalrisk.inputs.labels import as_classes, class_indices
from ordinalrisk.inputs.numbers import decimal_text
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.jobs.score_files import (
    Paths,
    Progress,
    Reading,
    as_calibrated,
    at_risk,
    parts_of,
)
from ordinalrisk.joint_controller import JointController
from ordinalrisk.losses.kinds import IntervalLoss, of_side
from ordinalrisk.prediction.predictor import Predictor, require_columns, warn_of_uncertified
from ordinalrisk.recalibration.applying import recalibrated
from ordinalrisk.report.facts import measured
from ordinalrisk.report.headline import headline
from ordinalrisk.report.inline import evaluation_html


@dataclass(frozen=True)
class FileEvaluation(Table):
    """The loss on rows with known labels, compared with the guarantee.

    Notebooks show the verdict and the numbers. A data frame has a row for each true class.

    Attributes
    ----------
    guarantee : Guarantee
        What was guaranteed.
    found : Evaluation
        The counts of all rows, what the rows of each group and true class show, and the verdict.
    loss : IntervalLoss
        The loss.
    classes : list
        The labels in order.
    n_rows : int
        The number of rows.
    verdict : Verdict
        Whether the rows agree with the guarantee, in one word and in sentences.
    headline : str
        The guarantee in a few words, such as "At most 10 % of sets miss the truth."
    colour : {"green", "amber", "red"}
        ``"green"`` if the rows agree and no class, group or size of sets is far off; ``"red"`` if they
        disagree; else ``"amber"``, also if the rows show nothing.
    sentence : str
        What the colour stands for, such as "The test rows agree with the guarantee on average, but 96 % of
        class 'very poor' are missed (24 of 25 rows)."
    far_off : list of FarOff
        The classes, groups and sizes of sets that are covered far less often than guaranteed.
    by_class : ClassTable
        Coverage, risk and size of the rows of each true class, with 95 % intervals.
    strata : list of StratumRisk
        What the rows of each group and true class show; empty if there is one guarantee for all rows.
    drift : str or None
        How the scores differ from the calibration's, if the difference is large and not due to chance.
    numbers : dict
        Risk, coverage and sizes, for all rows and for each true class, with 95 % intervals.
    """

    guarantee: Guarantee
    found: Evaluation
    loss: IntervalLoss
    classes: list[Any]
    drift: str | None = None

    @property
    def n_rows(self) -> int:
        return self.found.tally.n_rows

    @property
    def verdict(self) -> Verdict:
        return self.found.verdict

    @property
    def headline(self) -> str:
        return headline(self.loss, len(self.classes), self.guarantee)

    @property
    def colour(self) -> str:
        return self.found.light.colour

    @property
    def sentence(self) -> str:
        return self.found.light.sentence

    @property
    def far_off(self) -> list[FarOff]:
        return [*self.found.light.far_off]

    @property
    def strata(self) -> list[StratumRisk]:
        return self.found.strata

    @cached_property
    def by_class(self) -> ClassTable:
        relative = self.guarantee.measure is not None
        return class_table(self.found.tally, as_classes(self.classes), self._counted, CONFIDENCE, relative)

    def _columns(self) -> ColumnsByName:
        return self.by_class._columns()

    def __str__(self) -> str:
        light = f"{self.colour.upper()}: {self.sentence}"
        return "\n".join([self.headline, light, *filter(None, [self.drift]), "", str(self.by_class)])

    def _repr_html_(self) -> str:
        return evaluation_html(
            type(self).__name__,
            self.headline,
            self.colour,
            " ".join(filter(None, (self.sentence, self.drift))),
            self.numbers,
            self.classes,
            self.found.tally.class_rows.tolist(),
            self.strata,
        )

    @cached_property
    def numbers(self) -> dict[str, Any]:
        return measured(self.found.tally, self._counted, relative=self.guarantee.measure is not None)

    @cached_property
    def _counted(self) -> IntervalLoss:
        """The loss that the guarantee is about."""
        return of_side(self.loss, self.guarantee.side, len(self.classes))

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers, ready for JSON.

        Returns
        -------
        dict
            Numbers and text only.

        Examples
        --------
        >>> import tempfile
        >>> import ordinalrisk as orisk
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 20
        >>> controller = orisk.RiskController(alpha=0.1).calibrate(proba, [0, 1, 1] * 20)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with open(f"{folder}/test.csv", "w") as file:
        ...         print("p0,p1,p2,y", *["0.7,0.2,0.1,0"] * 50, sep=chr(10), file=file)
        ...     columns = {"scores": "p0,p1,p2", "label": "y"}
        ...     found = orisk.jobs.evaluate(controller, f"{folder}/test.csv", **columns)
        >>> found.to_dict()["rows"]
        50
        """
        numbers, tally = self.numbers, self.found.tally
        by_class = {"coverage": "class_coverage", "risk": "class_risk"}
        document = {
            "format": "ordinalrisk evaluation",
            "package_version": __version__,
            "alpha": decimal_text(self.guarantee.alpha),
            "rows": self.n_rows,
            "recalibration": self.guarantee.recalibration,
            "headline": self.headline,
            "colour": self.colour,
            "sentence": self.sentence,
            "verdict": self.verdict.word,
            "verdict_text": self.verdict.text,
            "drift": self.drift,
            "far_off": [each.to_dict() for each in self.far_off],
            "looked_at": self.found.light.n_looked_at,
            "total_loss": str(tally.total_loss(self._counted)),
            "confidence": CONFIDENCE,
            "risk": None if math.isnan(numbers["risk"][0]) else numbers["risk"],
            **{name: numbers[name] for name in ("coverage", "mean_size", "sizes")},
            "classes": [
                {"label": label, "rows": int(tally.class_rows[k])}
                | {name: numbers[key][k] and numbers[key][k][0] for name, key in by_class.items()}
                | {"size": numbers["class_size"][k]}
                for k, label in enumerate(self.classes)
            ],
        }
        if self.strata:
            document["strata"] = [
                {
                    "group": stratum.guarantee.group,
                    "label": stratum.guarantee.label,
                    "rows": stratum.n_rows,
                    "pool": [*stratum.guarantee.pool],
                    "clusters": stratum.n_units if stratum.guarantee.unit == "cluster" else None,
                    "alpha": decimal_text(stratum.guarantee.alpha),
                    "risk": None if stratum.realised is None else [*map(float, stratum.realised.risk)],
                    "verdict": stratum.word,
                }
                for stratum in self.strata
            ]
        return document


@dataclass(frozen=True)
class JointEvaluation(Table):
    """The loss of joint sets on rows with known labels, compared with each of their guarantees.

    Attributes
    ----------
    parts : dict
        The :class:`FileEvaluation` of each guarantee, by name. A guarantee of one side counts the sets as if
        their other end were free.
    n_rows : int
        The number of rows.
    mean_size : float
        The mean size of the joint sets.
    colour : {"green", "amber", "red"}
        The worst colour of the guarantees.
    """

    parts: Mapping[str, FileEvaluation]
    mean_size: float

    @property
    def n_rows(self) -> int:
        return next(iter(self.parts.values())).n_rows

    @property
    def colour(self) -> str:
        return max((part.colour for part in self.parts.values()), key=["green", "amber", "red"].index)

    def _columns(self) -> ColumnsByName:
        parts = [*self.parts.values()]
        return {
            "guarantee": [*self.parts],
            "alpha": [float(part.guarantee.alpha) for part in parts],
            "risk": [float(part.numbers["risk"][0]) for part in parts],
            "verdict": [part.verdict.word for part in parts],
            "colour": [part.colour for part in parts],
        }

    def _words(self) -> str:
        return f"The joint sets of {self.n_rows:,} rows have {self.mean_size:.4g} labels on average."

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers, ready for JSON.

        Returns
        -------
        dict
            Numbers and text only.

        Examples
        --------
        >>> import tempfile
        >>> import ordinalrisk as orisk
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 20
        >>> joint = orisk.JointController([orisk.RiskController(alpha=0.1)]).calibrate(proba, [0, 1, 1] * 20)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with open(f"{folder}/test.csv", "w") as file:
        ...         print("p0,p1,p2,y", *["0.7,0.2,0.1,0"] * 50, sep=chr(10), file=file)
        ...     columns = {"scores": "p0,p1,p2", "label": "y"}
        ...     found = orisk.jobs.evaluate(joint, f"{folder}/test.csv", **columns)
        >>> [*found.to_dict()["guarantees"]]
        ['1']
        """
        return {
            "format": "ordinalrisk joint evaluation",
            "package_version": __version__,
            "rows": self.n_rows,
            "mean_size": self.mean_size,
            "colour": self.colour,
            "guarantees": {name: part.to_dict() for name, part in self.parts.items()},
        }


def evaluate(
    controller: RiskController | JointController,
    paths: Paths,
    *,
    alpha: Any = None,
    label: str | None = None,
    scores: str | Sequence[str] | None = None,
    logits: bool | None = None,
    rescale: bool = False,
    group: str | None = None,
    cluster: str | None = None,
    weight: str | None = None,
    random_state: int | None = None,
    input_format: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    sheet: str | None = None,
    dask: Any = None,
    note: Note | None = None,
    progress: Progress | None = None,
) -> FileEvaluation | JointEvaluation:
    """Compare the loss on files with known labels with what was guaranteed.

    The loss is the one that the guarantee is about: with clusters the mean of the cluster means, with weights
    the weighted mean. With weights, the rows must be drawn like the calibration rows, not from the new
    population: that would weight them twice.

    Parameters
    ----------
    controller : RiskController or JointController
        Calibrated.
    paths : path, URL or pattern, or several of them
        The files, as for :func:`calibrate`.
    alpha : number or mapping, optional
        Another risk than the one calibrated for.
    label, scores, logits, rescale, group, cluster, weight
        As for :func:`calibrate`; by default as calibrated.
    random_state : int, optional
        For a randomized calibration: equal seeds give equal sets.
    input_format, delimiter, decimal, sheet, dask, note, progress
        As for :func:`calibrate`.

    Returns
    -------
    FileEvaluation or JointEvaluation
        The numbers and the verdict; for a :class:`~ordinalrisk.JointController`, those of each guarantee.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 20
    >>> controller = RiskController(alpha=0.1).calibrate(proba, [0, 1, 1] * 20)
    >>> path, rows = f"{tempfile.mkdtemp()}/test.csv", [[0.7, 0.2, 0.1, 0], [0.1, 0.3, 0.6, 2]] * 50
    >>> pd.DataFrame(rows, columns=["p0", "p1", "p2", "y"]).to_csv(path, index=False)
    >>> found = evaluate(controller, path, scores="p0,p1,p2", label="y")
    >>> found.verdict.word, found.colour, found.n_rows
    ('agrees', 'green', 100)
    """
    asked = AskedColumns(scores, label, logits, rescale, group, cluster, weight)
    reading = Reading(input_format, dask, note, progress, delimiter, decimal, sheet)
    with as_calibrated(controller, paths, asked, reading, labelled=True, by_cluster=True) as files:
        controller = at_risk(controller, alpha)
        with files.executor() as executor:
            if random_state is not None:
                files.number_rows(executor)
            rows = executor.fold(files.parts, _no_rows(controller, random_state))
    files.require_rows(rows.outcomes.n_rows)
    if not isinstance(controller, JointController):
        [part] = parts_of(controller)
        return _evaluated(part, files.classes, rows.outcomes, rows.fingerprint, rows.scores)
    joint: JointOutcomes = rows.outcomes
    found = {
        part.full_name: _evaluated(part, files.classes, outcomes, fingerprint, rows.scores, joint=True)
        for part, outcomes, fingerprint in zip(
            controller.calibrated_parts, joint.of_parts, joint.fingerprints, strict=True
        )
    }
    return JointEvaluation(found, joint.mean_size)


def evaluate_arrays(
    controller: RiskController,
    proba: Any,
    y: Any,
    *,
    alpha: Any = None,
    groups: Any = None,
    clusters: Any = None,
    sample_weight: Any = None,
    random_state: int | None = None,
    unseen_groups: str = "error",
) -> FileEvaluation:
    """Compare the loss on arrays with known labels with the guarantee, as :func:`evaluate` does for files.

    Parameters
    ----------
    controller : RiskController
        Calibrated.
    proba : array-like of shape (n, K)
        Class probabilities, as for :meth:`ordinalrisk.RiskController.predict_set`, on the host.
    y : array-like of shape (n,)
        The true labels, of the controller's classes.
    alpha : number or mapping, optional
        Another risk than the one calibrated for.
    groups, clusters, sample_weight : array-like of shape (n,), optional
        Those that the calibration was made with, as for :meth:`ordinalrisk.RiskController.calibrate`.
    random_state : int, optional
        For a randomized calibration: equal seeds give equal sets.
    unseen_groups : {"error", "full"}
        As for :meth:`ordinalrisk.RiskController.predict_set`.

    Returns
    -------
    FileEvaluation
        The numbers and the verdict.

    Examples
    --------
    >>> import ordinalrisk as orisk
    >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 20
    >>> controller = orisk.RiskController(alpha=0.1).calibrate(proba, [0, 1, 1] * 20)
    >>> found = orisk.jobs.evaluate_arrays(controller, [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]] * 50, [0, 2] * 50)
    >>> found.colour, found.n_rows
    ('green', 100)
    """
    require_same_rows(proba=proba, y=y, groups=groups, clusters=clusters, sample_weight=sample_weight)
    require_calibrated(controller)
    controller = at_risk(controller, alpha)
    matrix, classes = recalibrated(to_numpy(proba, "proba"), controller.recalibration), controller.classes_
    require_columns(proba, matrix.shape[1], classes)
    labels = class_indices(to_numpy(y, "y"), classes, len(matrix))
    rows = _no_rows(controller, random_state, unseen_groups)
    rows.add(Batch(matrix, labels, groups, clusters, sample_weight))
    [part] = parts_of(controller)
    return _evaluated(part, classes.tolist(), rows.outcomes, rows.fingerprint, rows.scores)


def _no_rows(
    controller: RiskController | JointController, random_state: int | None, unseen_groups: str = "error"
) -> SummaryGroup:
    """Return what is to be counted."""
    if isinstance(controller, JointController):
        joint = JointOutcomes(controller.calibrated_parts, random_state=random_state)
        return SummaryGroup(outcomes=joint, scores=ScoreCounts())
    predictor = Predictor.of(controller.spec, controller.calibration_)
    return SummaryGroup(
        outcomes=Outcomes([predictor], random_state=random_state, unseen_groups=unseen_groups),
        fingerprint=DataFingerprint(at_most=predictor.calibration.strata.n_rows),
        scores=ScoreCounts(),
    )


def _evaluated(
    part: Part,
    classes: list[Any],
    outcomes: Outcomes,
    fingerprint: DataFingerprint,
    scores: ScoreCounts,
    joint: bool = False,
) -> FileEvaluation:
    calibration, guarantee = part.calibration, guarantee_of(part.predictor.thresholds)
    of_sets = _of_larger_sets(guarantee) if joint else guarantee
    warn_of_uncertified(outcomes.n_uncertified, outcomes.n_rows, stacklevel=4)
    calibrated_on = fingerprint.hexdigest() == calibration.data_blake3
    [evaluation] = outcomes.finish(calibration, [of_sets], calibrated_on=calibrated_on)
    drift = difference_of(calibration, scores.counts)
    return FileEvaluation(guarantee, evaluation, part.spec.loss, classes, drift)


def _of_larger_sets(guarantee: Guarantee) -> Guarantee:
    """Return the guarantee without what is true of its own sets only: joint sets lose less than these."""
    parts = tuple(_of_larger_sets(part) for part in guarantee.parts)
    return replace(guarantee, saturated=False, calibration_risk=None, parts=parts)
