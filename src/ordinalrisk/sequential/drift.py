"""A test for a drift of scores: whether new rows are as certain as the calibration rows, without labels."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import to_builtins

from ordinalrisk.calibration.confidence_bounds import checked_delta
from ordinalrisk.calibration.score_counts import (
    BinCounts,
    mean_uncertainty,
    no_counts,
    score_bins,
    why_not_compared,
)
from ordinalrisk.growth.rules import require_valid
from ordinalrisk.inputs.labels import as_classes
from ordinalrisk.inputs.numbers import as_fraction, as_number, checked_seed, from_json, to_json
from ordinalrisk.inputs.random_rows import generator_at
from ordinalrisk.prediction.predictor import require_columns
from ordinalrisk.recalibration.applying import recalibrated
from ordinalrisk.saving.document_with_digests import FilePath, naming, require
from ordinalrisk.saving.run_documents import DriftDocument, WatchedFile
from ordinalrisk.saving.shared_fields import saved_counts, saved_names
from ordinalrisk.sequential.state import Watch
from ordinalrisk.sequential.wealth import Bets, Floats

if TYPE_CHECKING:
    from ordinalrisk.controller import RiskController

_SEED_BITS = 53
_DOWN = 1 - 2.0**-48
_SLOPES = (-0.8, -0.4, -0.2, 0.2, 0.4, 0.8)
_CURVATURES = (-0.8, -0.4, 0.4, 0.8)
N_BETS = len(_SLOPES) + len(_CURVATURES)


class ScoreDrift(Watch):
    r"""An alarm for new rows with other scores than the calibration rows, false with probability ``delta``.

    It needs no labels. It looks at the uncertainty of each row, one minus the largest probability, and tests

        the new rows are exchangeable with the calibration rows.

    You may look after every row: the probability of ever raising the alarm although this is true is at most
    ``delta``. The guarantee needs exchangeable rows, so an alarm says that it may no longer hold. It does not
    say that the guarantee is broken: see :class:`RiskMonitor` for that. Without an alarm it may be broken
    too: labels can change while the scores look as before.

    The conformal p-value of a row is the share of rows so far, calibration rows and the row itself included,
    that are at least as uncertain, with random numbers to break ties:

    .. math:: p = \frac{\#\{u_i > u\} + U\,\#\{u_i = u\}}{n}, \quad U \sim \text{uniform on } [0, 1]

    Such p-values are independent and uniform if rows are exchangeable. Bets on their mean and their spread
    start with a total wealth of 1, and the alarm is raised when it reaches :math:`1 / \delta`.

    Parameters
    ----------
    controller : RiskController
        Calibrated by row and without weights.
    delta : number
        The probability of a false alarm, between 0 and 1.
    random_state : int, optional
        The seed of the coins; by default it is drawn at random, and saved.

    Attributes
    ----------
    alarm_ : bool
        Whether the alarm was raised, now or before.
    alarm_row_ : int or None
        The row at which it was raised, the first new row being 1.
    rise_row_ : int or None
        The row after which the evidence was lowest before the alarm: about where the drift began.
    evidence_ : float
        The wealth of the bets now, from a start of 1; at most 1e300.
    p_value_ : float
        One over the largest evidence so far: a valid p-value at any time.
    n_rows_ : int
        The number of new rows so far.
    uncertainty_, calibrated_uncertainty_ : float
        The mean uncertainty of the new rows and of the calibration rows, up to 1 % of it.
    files_ : list of WatchedFile
        The files that were compared, by number of rows and fingerprint; see :meth:`remember`.

    Notes
    -----
    New rows join the rows that later ones are compared with. So a drift is found soon after it begins or, if
    it is slow, never. An alarm stays.

    All rows are compared together: if the calibration has groups, a new mix of groups is a drift too.

    The uncertainty does not depend on the order of the columns. So columns in another order are an error if
    they have names, and not seen without: compare the shares of the most probable labels as well.

    If rows come from clusters, such as patients, calibrate on one row of each, drawn at random, and compare
    one row of each new cluster, drawn at random: such rows are exchangeable one by one.

    Uncertainties are compared in narrow bins: 64 for each halving, down to 2^-16.

    References
    ----------
    Vovk, Nouretdinov, Gammerman. Testing exchangeability on-line. ICML 2003.

    Vovk et al. Retrain or not retrain: conformal test martingales for change-point detection. COPA 2021.

    Examples
    --------
    The model becomes less certain:

    >>> from ordinalrisk import RiskController
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([8, 2, 1], 1500)
    >>> y = [rng.choice(3, p=p) for p in proba[:500]]
    >>> controller = RiskController(alpha=0.2, condition_on="label").calibrate(proba[:500], y)
    >>> drift = ScoreDrift(controller, delta=0.01, random_state=0)
    >>> drift.update(proba[500:])
    False
    >>> drift.update(rng.dirichlet([4, 2, 1], 500))
    True
    >>> drift
    ScoreDrift(delta=0.01): alarm at row 10..., p-value ... after 1500 rows, mean uncertainty 0.3..., when
    calibrating 0.2...
    """

    def __init__(self, controller: RiskController, delta: Any = 0.01, *, random_state: Any = None) -> None:
        calibration = getattr(controller, "calibration_", None)
        if calibration is None:
            raise ValueError("ScoreDrift needs a calibrated RiskController; call calibrate(proba, y) first.")
        if why := why_not_compared(calibration):
            remedy = (
                " Calibrate on one row of each cluster, drawn at random, and compare one row of each new one."
                if calibration.unit == "cluster"
                else ""
            )
            raise ValueError(f"The scores of this calibration can't be compared: {why}.{remedy}")
        seed = secrets.randbits(_SEED_BITS) if random_state is None else checked_seed(random_state)
        self._begin(calibration.classes, calibration.score_counts, calibration.data_blake3, delta, seed)
        self._recalibration = calibration.recalibration

    _document = DriftDocument

    def _begin(self, classes: Any, calibrated: BinCounts, data_blake3: str, delta: Any, seed: int) -> None:
        self.delta = as_number(delta, "delta")
        checked_delta(self.delta)
        self.classes_, self.data_blake3_, self.random_state = classes, data_blake3, seed
        self._calibrated, self._seen = calibrated, no_counts()
        self._tested = Bets(N_BETS, float(1 / as_fraction(self.delta)))
        self._lowest = (0, 1.0)  # rows and evidence
        self.files_: list[WatchedFile] = []

    @property
    def _bets(self) -> Bets:
        return self._tested

    @property
    def uncertainty_(self) -> float:
        return mean_uncertainty(self._seen)

    @property
    def calibrated_uncertainty_(self) -> float:
        return mean_uncertainty(self._calibrated)

    def update(self, proba: Any) -> bool:
        """Compare new rows, in the order in which they come.

        Any cut of rows into batches gives the same state, bit for bit. Nothing has changed if there is an
        error.

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities, or the scores that the map of the calibration takes, as for
            :meth:`RiskController.predict_set`. A state that was saved in an older schema has no map: it takes
            the probabilities that the map makes.

        Returns
        -------
        bool
            Whether the alarm was raised, now or before.

        Examples
        --------
        >>> from ordinalrisk import RiskController
        >>> controller = RiskController(alpha=0.2).calibrate([[0.6, 0.4], [0.3, 0.7]] * 20, [0, 1] * 20)
        >>> drift = ScoreDrift(controller, random_state=0)
        >>> drift.update([[0.7, 0.3]])
        False
        >>> round(drift.calibrated_uncertainty_, 2), round(drift.uncertainty_, 1)
        (0.35, 0.3)
        """
        matrix = recalibrated(proba, self._recalibration)
        require_columns(proba, matrix.shape[1], self.classes_)
        return self._compare(matrix)

    def _compare(self, matrix: Any) -> bool:
        """Compare rows of probabilities that the map of the calibration, if it has one, has made already."""
        require_valid(matrix)
        coins = generator_at(self.n_rows_, self.random_state).random(len(matrix))
        bins, all_rows = score_bins(matrix).tolist(), self._calibrated + self._seen
        n_rows = int(all_rows.sum())
        for place, coin in zip(bins, coins.tolist(), strict=True):
            all_rows[place] += 1
            n_rows += 1
            above = int(all_rows[place + 1 :].sum())
            self._bet((above + coin * int(all_rows[place])) / n_rows)
        self._seen = all_rows - self._calibrated
        return self.alarm_

    def _bet(self, p_value: float) -> None:
        was_raised = self.alarm_
        evidence = float(self._tested.take(score_bet_factors(p_value)[None])[0])
        if was_raised:
            return
        if evidence < self._lowest[1]:
            self._lowest = self.n_rows_, evidence
        if self.alarm_:
            self._tested.rise_row = self._lowest[0] + 1

    def _values(self) -> dict[str, Any]:
        row, evidence = self._lowest
        return self._tested.values() | {
            "classes": saved_names(self.classes_.tolist()),
            "delta": to_json(self.delta),
            "data_blake3": self.data_blake3_,
            "seed": self.random_state,
            "calibrated": saved_counts(self._calibrated),
            "seen": saved_counts(self._seen),
            "lowest": {"n_rows": row, "evidence": evidence.hex()},
            "files": to_builtins(self.files_),
            "recalibration": to_builtins(self._recalibration),
        }

    @classmethod
    def _restored(cls, path: FilePath, saved: DriftDocument) -> ScoreDrift:
        field = partial(naming, path)
        drift = cls.__new__(cls)
        with field("classes"):
            classes = as_classes(saved.classes)
        with field("calibrated"):
            calibrated = saved.calibrated.dense()
            require(bool(calibrated.any()), "must have rows")
        with field("delta"):
            delta = from_json(saved.delta)
            drift._begin(classes, calibrated, saved.data_blake3, delta, 0)
        with field("seed"):
            drift.random_state = checked_seed(saved.seed)
        with field("seen"):
            drift._seen = saved.seen.dense()
            require(int(drift._seen.sum()) == saved.n_rows, "must count each row once")
        drift._recalibration = saved.recalibration
        with field("recalibration"):
            n_labels = len(classes) if saved.recalibration is None else saved.recalibration.n_labels
            require(n_labels == len(classes), "must have a probability for each label")
        drift.files_ = [*saved.files]
        drift._tested.restore(path, saved)
        with field("lowest"):
            drift._lowest = saved.lowest.n_rows, float.fromhex(saved.lowest.evidence)
            require(drift._lowest[0] <= drift.n_rows_, "must be one of the rows")
            require(0 < drift._lowest[1] <= 1, "must be at most the evidence at the start")
        with field("rise_row"):
            expected = drift._lowest[0] + 1 if drift.alarm_ else None
            require(saved.rise_row == expected, "must follow the row of the lowest evidence")
        return drift

    def __repr__(self) -> str:
        text = f"ScoreDrift(delta={self.delta!r})"
        if not self.n_rows_:
            return text
        state = f"alarm at row {self.alarm_row_}" if self.alarm_ else "no alarm"
        return (
            f"{text}: {state}, p-value {self.p_value_:.3g} after {self.n_rows_} rows, mean uncertainty "
            f"{self.uncertainty_:.4g}, when calibrating {self.calibrated_uncertainty_:.4g}"
        )


def score_bet_factors(p_value: float) -> Floats:
    """Return the factor of each bet's wealth; for a uniform p-value, its mean is just below 1.

    Bets on the mean have the factor ``1 + s (2 p - 1)``, bets on the spread ``1 + s (6 p^2 - 6 p + 1)``.
    """
    slope, curvature = 2 * p_value - 1, 6 * p_value * (p_value - 1) + 1
    factors = [1 + s * slope for s in _SLOPES] + [1 + s * curvature for s in _CURVATURES]
    return np.array(factors) * _DOWN
