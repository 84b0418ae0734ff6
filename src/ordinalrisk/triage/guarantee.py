"""What triage guarantees for the rows that are accepted, in numbers and in words."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ordinalrisk.display.tables import ColumnsByName, Table
from ordinalrisk.display.text_table import listed
from ordinalrisk.evaluation.estimates import CONFIDENCE, Estimate
from ordinalrisk.inputs.numbers import decimal_text

_WIDTH = 78


@dataclass(frozen=True)
class Certified:
    """The certified threshold of a group, or of all rows.

    Attributes
    ----------
    group : label or None
        The group; None if there are no groups.
    n_rows : int
        The number of calibration rows.
    threshold : float
        Rows are accepted if the model's own risk of their label is below it: infinite if all are, minus
        infinity if none is.
    n_accepted : int
        The number of calibration rows that are accepted.
    total_loss : Fraction
        The sum of their losses.
    n_needed : int
        The fewest accepted rows that can certify ``alpha``, if none has a loss.
    """

    group: Any
    n_rows: int
    threshold: float
    n_accepted: int
    total_loss: Fraction
    n_needed: int

    @property
    def mean_loss(self) -> float | None:
        """The mean loss of the accepted calibration rows; None if there are none."""
        return float(self.total_loss / self.n_accepted) if self.n_accepted else None

    @property
    def share(self) -> Estimate:
        r"""The share of new rows that is accepted, with an interval of confidence 0.95.

        The interval holds for whichever threshold the labels led to (Dvoretzky, Kiefer, Wolfowitz 1956;
        Massart 1990): its half width is :math:`\sqrt{\log(2 / 0.05) / 2n}`.
        """
        value = self.n_accepted / self.n_rows
        if not math.isfinite(self.threshold):
            return Estimate(value, value, value)
        reach = math.sqrt(-math.log((1 - CONFIDENCE) / 2) / (2 * self.n_rows))
        return Estimate(value, max(value - reach, 0.0), min(value + reach, 1.0))


@dataclass(frozen=True)
class TriageGuarantee(Table):
    r"""What holds for new rows that are accepted.

    .. math:: P\big( E[L \mid \text{accepted, calibration}] \le \alpha \big) \ge 1 - \delta

    ``print`` shows it in words. Notebooks and data frames show one row for each group, or a single row.

    Attributes
    ----------
    alpha, delta : Fraction
        The largest expected loss of an accepted row, and the probability that it is exceeded.
    bound : Fraction
        ``B``, the largest loss.
    tests : str
        The kind of test: ``"exact binomial"`` or ``"betting"``.
    parts : tuple of Certified
        What is certified in each group, or for all rows.

    Examples
    --------
    >>> import ordinalrisk as orisk
    >>> proba = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]] * 100
    >>> y = [0, 1, 0] * 100
    >>> print(orisk.TriageController(alpha=0.05, delta=0.05).calibrate(proba, y).guarantee())
    With probability at least 0.95 over the draw of the calibration rows, the
    expected loss of a new row that is accepted is at most 0.05, if it and the
    calibration rows are independent draws from one population (n = 300 rows,
    losses from 0 to B = 1; exact binomial tests; for this alpha by itself).
    Rows are accepted if the model's own risk of their label is below 0.6. Of the
    calibration rows 66.7 % are accepted, with a mean loss of 0; of new rows
    between 58.8 % and 74.5 %, with confidence 95 %.
    """

    alpha: Fraction
    delta: Fraction
    bound: Fraction
    tests: str
    parts: tuple[Certified, ...]

    def __str__(self) -> str:
        sentences = [self._promise(), *self._accepted()]
        return "\n".join(textwrap.fill(text, _WIDTH, break_on_hyphens=False) for text in sentences if text)

    def _words(self) -> str:
        return " ".join(str(self).split("\n"))

    def _columns(self) -> ColumnsByName:
        parts, shares = self.parts, [part.share for part in self.parts]
        groups = {"group": [part.group for part in parts]} if self._has_groups else {}
        return {
            **groups,
            "alpha": [float(self.alpha)] * len(parts),
            "rows": [part.n_rows for part in parts],
            "threshold": [part.threshold for part in parts],
            "accepted": [share.value for share in shares],
            "accepted_low": [share.low for share in shares],
            "accepted_high": [share.high for share in shares],
            "mean_loss": [part.mean_loss for part in parts],
        }

    @property
    def _has_groups(self) -> bool:
        return self.parts[0].group is not None

    def _promise(self) -> str:
        counts = [part.n_rows for part in self.parts]
        n = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
        of_group = " of its group" if self._has_groups else ""
        each = f"in each of {len(counts)} groups by itself, " if self._has_groups else ""
        text = (
            f"{each}with probability at least {decimal_text(1 - self.delta)} over the draw of the "
            "calibration rows, the expected loss of a new row that is accepted is at most "
            f"{decimal_text(self.alpha)}, if it and the calibration rows{of_group} are independent draws "
            f"from one population (n = {n} rows, losses from 0 to B = {decimal_text(self.bound)}; "
            f"{self.tests} tests; for this alpha by itself)."
        )
        return text[0].upper() + text[1:]

    def _accepted(self) -> list[str]:
        sentences = []
        for part in self.parts:
            of = "" if part.group is None else f" of group {part.group!r}"
            if part.threshold == -math.inf:
                sentences.append(f"All rows{of} are referred: {self._needed([part])}")
                continue
            share, loss = part.share, part.mean_loss
            if part.threshold == math.inf:
                sentences.append(
                    f"All rows{of} are accepted; the mean loss of the calibration rows is {loss:.4g}."
                )
                continue
            sentences.append(
                f"Rows{of} are accepted if the model's own risk of their label is below "
                f"{part.threshold:.6g}. Of the calibration rows {share.value:.1%} are accepted, with a "
                f"mean loss of {loss:.4g}; of new rows between {share.low:.1%} and {share.high:.1%}, with "
                f"confidence {CONFIDENCE:.0%}.".replace("%", " %")
            )
        return sentences

    def _needed(self, parts: list[Certified]) -> str:
        return (
            f"no share of them is certified. It takes at least {max(part.n_needed for part in parts)} "
            "accepted rows without a loss, and more if some have one."
        )

    @property
    def warning(self) -> str | None:
        """The warning if all rows, or all rows of some groups, are referred; else None."""
        none = [part for part in self.parts if part.threshold == -math.inf]
        if not none:
            return None
        names = f" of {listed(repr(part.group) for part in none)}" if self._has_groups else ""
        few = " to ".join(map(str, sorted({min(p.n_rows for p in none), max(p.n_rows for p in none)})))
        return (
            f"All rows{names} are referred: with alpha={decimal_text(self.alpha)} and "
            f"delta={decimal_text(self.delta)}, {self._needed(none)} There are {few} calibration rows."
        )
