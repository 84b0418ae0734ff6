r"""Thresholds from risk curves, and what they guarantee. Calibration never sees a probability.

For exchangeable rows (Theorem 1) the expected loss of a new row is at most ``alpha`` at

.. math:: \hat\tau = \sup \Big\{ \tau : \sum_{i=1}^n L_i(\tau) \le (n + 1)\,\alpha - B \Big\}.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction

from ordinalrisk.exact import decimal_text
from ordinalrisk.risk_curve import RiskCurve


def checked_alpha(alpha: Fraction, bound: Fraction) -> Fraction:
    """``alpha`` itself if it lies between 0 and the largest loss."""
    if not 0 < alpha < bound:
        raise ValueError(
            f"alpha must lie strictly between 0 and the largest loss, B={decimal_text(bound)}; "
            f"got {decimal_text(alpha)}. It has the units of the loss: for 5 % of a normalized one write "
            "0.05; normalize=False keeps natural units."
        )
    return alpha


def rows_needed(alpha: Fraction, bound: Fraction) -> int:
    """The fewest calibration rows with which a risk of ``alpha`` can be certified.

    Examples
    --------
    >>> rows_needed(Fraction(1, 10), Fraction(1))
    9
    """
    return math.ceil(bound / alpha) - 1


def loss_budget(alpha: Fraction, bound: Fraction, n_rows: int) -> Fraction:
    """What the losses of the calibration rows may add up to; negative where nothing can be certified."""
    return (n_rows + 1) * checked_alpha(alpha, bound) - bound


def expectation_threshold(curve: RiskCurve, alpha: Fraction) -> float:
    r"""``sup {tau : (total_loss(tau) + B) / (n + 1) <= alpha}``, which is attained.

    Minus infinity, full sets, where nothing can be certified; infinity, single labels, where every step fits.
    """
    return curve.first_level_above(loss_budget(alpha, curve.bound, curve.n_rows))


def warn_if_uncertified(alpha: Fraction, bound: Fraction, n_rows: int, stacklevel: int = 3) -> None:
    """Say so where there are too few calibration rows, at the caller's caller's line by default."""
    needed = rows_needed(alpha, bound)
    if n_rows < needed:
        warnings.warn(
            f"alpha={decimal_text(alpha)} needs at least {needed} calibration rows for a loss bounded by "
            f"{decimal_text(bound)}; got {n_rows}, so every set is the full scale.",
            stacklevel=stacklevel,
        )


@dataclass(frozen=True)
class Guarantee:
    """What holds for a new row that is exchangeable with the calibration rows.

    Attributes
    ----------
    alpha : Fraction
        The expected loss is at most this (Theorem 1).
    lower_bound : Fraction or None
        The expected loss is at least this, ``alpha - (M + 2) B / (n + 1)``, for independent rows of which
        never more than ``M`` step at one level (Theorem 4, with the ``M`` observed); None where the theorem
        does not apply.
    n_rows, bound, most_tied
        ``n``, ``B`` and ``M``.
    certified : bool
        False where there are too few rows for ``alpha``: every set is the full scale.
    saturated : bool
        True where even single labels keep within ``alpha``: the realised risk stays below it.
    """

    alpha: Fraction
    lower_bound: Fraction | None
    n_rows: int
    bound: Fraction
    most_tied: int
    certified: bool
    saturated: bool

    def __str__(self) -> str:
        alpha = decimal_text(self.alpha)
        lines = [
            f"The expected loss of a new case is at most {alpha},",
            "if it is exchangeable with the calibration rows",
            f"(n = {self.n_rows} rows, losses from 0 to B = {decimal_text(self.bound)}).",
        ]
        if not self.certified:
            needed = rows_needed(self.alpha, self.bound)
            lines.append(
                f"They are too few, so every set holds all labels. At least {needed} rows are needed."
            )
        elif self.saturated:
            lines.append(f"Single labels already achieve it: the risk saturates below {alpha}.")
        elif self.lower_bound is not None and self.lower_bound > 0:
            lines.append(
                f"It is at least {float(self.lower_bound):.6g} if the rows are independent and never"
            )
            lines.append(
                f"more than M = {self.most_tied} of them, the most seen here, change their loss at one"
            )
            lines.append("level (Theorem 4).")
        return "\n".join(lines)


def expectation_guarantee(curve: RiskCurve, alpha: Fraction) -> Guarantee:
    """The guarantee of :func:`expectation_threshold` in numbers."""
    threshold = expectation_threshold(curve, alpha)
    inner = math.isfinite(threshold)
    slack = (curve.most_tied + 2) * curve.bound / (curve.n_rows + 1)
    return Guarantee(
        alpha=alpha,
        lower_bound=alpha - slack if inner else None,
        n_rows=curve.n_rows,
        bound=curve.bound,
        most_tied=curve.most_tied,
        certified=threshold != -math.inf,
        saturated=threshold == math.inf,
    )
