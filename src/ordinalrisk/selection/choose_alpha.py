"""Choose ``alpha`` by the size of the sets: exact answers from a calibrated curve and scores of new rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.controller import RiskController, require_calibrated
from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.inputs.labels import require_column_order
from ordinalrisk.inputs.numbers import as_fraction, decimal_text
from ordinalrisk.inputs.probability_matrix import as_matrix
from ordinalrisk.inputs.row_index import require_same_rows


class ExactAlpha(Fraction):
    """An ``alpha`` that is an exact fraction, and prints as a number.

    It is accepted wherever an ``alpha`` is, and nothing is rounded there.

    Attributes
    ----------
    fraction : Fraction
        The same value as a plain fraction.

    Examples
    --------
    >>> alpha = ExactAlpha(155, 501)
    >>> print(alpha, f"{alpha:.3f}", alpha.fraction)
    0.3093812375249501 0.309 155/501
    """

    __slots__ = ()

    @property
    def fraction(self) -> Fraction:
        return Fraction(self.numerator, self.denominator)

    def __str__(self) -> str:
        return str(float(self))

    def __repr__(self) -> str:
        return str(self)

    def __format__(self, spec: str) -> str:
        return format(float(self), spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.numerator, self.denominator)


class SizeNotAttainedError(ValueError):
    """No ``alpha`` below the largest loss makes sets small enough."""


def alpha_for_size(
    controller: RiskController, proba: Any, size: Any, *, point_labels: Any = None
) -> ExactAlpha:
    r"""Find the smallest ``alpha`` at which the sets of ``proba`` have at most ``size`` labels on average.

    Only an ``alpha`` that can be certified counts: below ``B / (n + 1)`` every set is the full scale.

    .. math:: \min \{ \alpha : \tfrac{1}{m} \sum_{i=1}^m |C_\alpha(x_i)| \le s \}

    Of a calibration with ``relative`` it is a share: one of :math:`(\sum_i L_i + B) / (\sum_i g_i + B)`.

    Sets change only where the calibrated curve steps, so the answer is one of the curve's own risks
    :math:`(\sum_i L_i + B) / (n + 1)`, found by bisection over its steps and returned as an exact fraction.
    The mean size falls in jumps: at this ``alpha`` it is ``size`` or the first value below it.

    Parameters
    ----------
    controller : RiskController
        A calibrated controller; its own ``alpha`` does not matter.
    proba : array-like of shape (m, K)
        Class probabilities of the rows to average over. No labels are needed.
    size : number
        The mean number of labels, between 1 and K.
    point_labels : array-like of int, optional
        As for :meth:`RiskController.predict_set`.

    Returns
    -------
    ExactAlpha
        A number of the form :math:`(\sum_i L_i + B) / (n + 1)`; its ``fraction`` is exact.

    Raises
    ------
    SizeNotAttainedError
        If no ``alpha`` below the largest loss makes sets so small.

    Notes
    -----
    The paper compares losses at one mean size (Section 3.1); this function finds the ``alpha`` for that.

    Choose on other rows than you calibrate with (:func:`~ordinalrisk.splitting.split_rows`): the guarantee is
    for an ``alpha`` that was chosen without the calibration rows. An ``alpha`` from their own curve estimates
    the risk and does not bound it: luck can make ``alpha`` small, but not the risk. With 20 calibration rows,
    in the third of 2,000 simulated draws with the smallest ``alpha``, its mean was 0.20 and the risk 0.30.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 2, 4, 2, 1], size=1000)
    >>> y = np.array([rng.choice(5, p=p) for p in proba])
    >>> controller = RiskController().calibrate(proba[:500], y[:500])
    >>> alpha = alpha_for_size(controller, proba[500:], 2)
    >>> alpha, alpha.fraction, controller.predict_set(proba[500:], alpha=alpha).size.mean()
    (0.3093812375249501, Fraction(155, 501), np.float64(2.0))
    """
    require_calibrated(controller)
    wanted = as_fraction(size, "size")
    K = len(controller.classes_)
    if not 1 <= wanted <= K:
        raise ValueError(f"size must lie between 1 and the number of labels, {K}; got {size}.")

    def fits(sizes: NDArray[np.int32]) -> bool:
        return int(sizes.sum()) <= wanted * len(sizes)

    return _smallest_alpha(controller, proba, point_labels, fits, f"the mean size down to {size}")


def alpha_for_singletons(
    controller: RiskController, proba: Any, share: Any, *, point_labels: Any = None
) -> ExactAlpha:
    r"""Find the smallest ``alpha`` at which at least a ``share`` of the rows of ``proba`` get a single label.

    The search is that of :func:`alpha_for_size`.

    .. math:: \min \{ \alpha : \tfrac{1}{m} \#\{i : |C_\alpha(x_i)| = 1\} \ge s \}

    Parameters
    ----------
    controller : RiskController
        A calibrated controller; its own ``alpha`` does not matter.
    proba : array-like of shape (m, K)
        Class probabilities of the rows that count. No labels are needed.
    share : number
        The share of single labels, from 0 to 1.
    point_labels : array-like of int, optional
        As for :meth:`RiskController.predict_set`.

    Returns
    -------
    ExactAlpha
        As for :func:`alpha_for_size`.

    Raises
    ------
    SizeNotAttainedError
        If no ``alpha`` below the largest loss gives so many single labels.

    Notes
    -----
    As for :func:`alpha_for_size`: choose on other rows than you calibrate with.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 2, 4, 2, 1], size=1000)
    >>> y = np.array([rng.choice(5, p=p) for p in proba])
    >>> controller = RiskController().calibrate(proba[:500], y[:500])
    >>> alpha = alpha_for_singletons(controller, proba[500:], 0.8)
    >>> alpha, (controller.predict_set(proba[500:], alpha=alpha).size == 1).mean()
    (0.500998003992016, np.float64(0.81))
    """
    require_calibrated(controller)
    wanted = as_fraction(share, "share")
    if not 0 <= wanted <= 1:
        raise ValueError(f"share must lie between 0 and 1; got {share}.")

    def fits(sizes: NDArray[np.int32]) -> bool:
        return int((sizes == 1).sum()) >= wanted * len(sizes)

    return _smallest_alpha(controller, proba, point_labels, fits, f"the share of single labels up to {share}")


def _smallest_alpha(
    controller: RiskController,
    proba: Any,
    point_labels: Any,
    fits: Callable[[NDArray[np.int32]], bool],
    goal: str,
) -> ExactAlpha:
    _require_one_curve(controller)
    require_same_rows(proba=proba, point_labels=point_labels)
    matrix = as_matrix(proba)
    require_column_order(proba, controller.classes_)
    curve: RiskCurve = controller.risk_curve_
    curve.require_whole("Choosing alpha")
    totals: list[int] = [0, *curve.totals.tolist()]

    def alpha(step: int) -> Fraction:
        whole = curve.n_rows + 1 if curve.stake is None else curve.stake + curve.bound
        return (totals[step] * curve.unit + curve.bound) / whole

    def fits_at(step: int) -> bool:
        return fits(controller.predict_set(matrix, alpha=alpha(step), point_labels=point_labels).size)

    largest = curve.bound if curve.stake is None else Fraction(1)
    n_below_bound = len(totals) - (alpha(len(totals) - 1) == largest)
    step = bisect_left(range(n_below_bound), True, key=fits_at)
    if step == n_below_bound:
        limit = "1" if controller.relative else f"B={decimal_text(largest)}"
        why = "the point labels of the calibration rows are as wrong as they can be"
        if controller.side is not None:
            why = "one-sided sets have all labels on one side of the point label, and the point label"
        raise SizeNotAttainedError(f"No alpha below {limit} brings {goal}: {why}.")
    return ExactAlpha(alpha(step))


def _require_one_curve(controller: RiskController) -> None:
    calibration = controller.calibration_
    used = [
        *(option for option in controller.spec.options if option != "relative"),
        *(["groups"] if calibration.strata.groups is not None else []),
        *(["weights"] if calibration.shift is not None else []),
    ]
    if used:
        raise ValueError(
            "alpha is chosen from one curve, that of the expected loss of rows that count alike, but this "
            f"calibration uses {' and '.join(used)}; choose it with a calibration that does not."
        )
