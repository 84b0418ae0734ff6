"""Scores that predict worse than the label shares alone, and what may have gone wrong with them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from ordinalrisk.checks.evidence import is_more_common, is_positive
from ordinalrisk.checks.fit import Floats, Labels, ScoredRows
from ordinalrisk.display.text_table import listed
from ordinalrisk.losses.cost_table import CostTable

_FEWEST_ROWS = 20
_FEWEST_SURE = 200
_MOST_WRONG = 0.005  # of all rows
_MOST_WRONG_BEYOND = 0.05  # of the rows that do not have the most common class
_WORSE = 1.05  # less is harmless
_GOOD = 0.6  # of the score of the label shares; below it, no other order is far better
_FAR_BETTER = 0.7  # of the score of the order that was given
_ALMOST_AS_GOOD = 1.02
_MOST_CLASSES_TO_ORDER = 30
_MOST_NAMES = 12
_LEAST_SCORE = 1e-4  # so that no single row decides
_SHUFFLED = -3.0  # standard deviations


def score_warnings(rows: ScoredRows) -> Iterator[str]:
    """Warn if the scores do not fit the labels, with a likely cause."""
    if len(rows) < _FEWEST_ROWS or np.count_nonzero(rows.counts) < 2:
        return
    mine, of_shares = rows.scores.mean(), rows.of_shares.mean()
    is_worse = mine > _WORSE * of_shares and is_positive(rows.scores - rows.of_shares)
    cause = _other_labels(rows) or ("" if mine < _GOOD * of_shares else _other_order(rows))
    if not is_worse:
        if cause:
            yield f"The scores would fit the labels far better after a change. {cause}"
        return
    yield (
        f"The scores predict worse than the shares of the classes alone: their mean ranked probability score "
        f"is {mine:.3g} on {len(rows):,} calibration rows, that of the shares {of_shares:.3g} (0 is best). "
        f"{cause or _no_order(rows)}"
    )


def _other_labels(rows: ScoredRows) -> str:
    """Say so if labels shifted by one would fit far better."""
    K, names = rows.n_classes, rows.classes.tolist()
    for by, absent, words in ((-1, 0, "one too high"), (1, K - 1, "one too low")):
        if K < 3 or rows.counts[absent]:
            continue
        moved = rows.with_labels_moved(by)
        if _is_far_better(moved.scores, rows):
            base = " as if they counted from 1" if by == -1 and names == [*range(K)] else ""
            fix = f"y {'-' if by == -1 else '+'} 1"
            return (
                f"The labels look {words}{base}: no row has class {names[absent]!r}, and with {fix} the mean "
                f"ranked probability score would be {moved.scores.mean():.3g} instead of "
                f"{rows.scores.mean():.3g}. If that is so, pass {fix}, or name the classes that the columns "
                "stand for with `classes`."
            )
    return ""


def _other_order(rows: ScoredRows) -> str:
    """Say so if the columns would fit far better in another order."""
    K = rows.n_classes
    best = _best_order(rows)
    if best is not None and (best == np.arange(K)).all():
        return ""
    named = ((words, rows.with_columns(order).scores, order) for words, order in _usual_orders(rows))
    found = [(words, scores.mean(), order) for words, scores, order in named if _is_far_better(scores, rows)]
    found.sort(key=lambda each: each[1])
    if best is not None:
        scores = rows.with_columns(best).scores
        better = not found or scores.mean() * _ALMOST_AS_GOOD < found[0][1]
        if better and _is_far_better(scores, rows, n_tried=math.factorial(K)):
            found = [("in another order", scores.mean(), best)]
    if not found:
        return ""
    words, score, order = found[0]
    held = [rows.classes.tolist()[k] for k in np.argsort(order)]
    shown = listed(map(repr, held), _MOST_NAMES)
    return (
        f"The columns of the scores look as if they were {words}: if they stood for {shown}, the mean ranked "
        f"probability score would be {score:.3g} instead of {rows.scores.mean():.3g}. "
        f"{_put_right(rows, order.tolist(), held)}; if not, the scores are far off: recalibrate them."
    )


def _put_right(rows: ScoredRows, order: list[int], held: list[Any]) -> str:
    """Say how to put the columns in order; or the classes, if these are words in alphabetical order."""
    few, names = len(held) <= _MOST_NAMES, rows.classes.tolist()
    pick = f"pass proba[:, {order}]" if few else "put them into the order of the classes"
    words = all(isinstance(name, str) and re.fullmatch(r"\D{2,}", name) for name in names)
    if not words or names != sorted(names):
        return f"If that is so, {pick}"
    name = f"pass `classes={held}`" if few else "pass them as `classes`"
    return (
        "The classes are in alphabetical order, which is seldom that of their meaning. If the columns are in "
        f"the order of meaning, {name}; if the classes are, {pick}"
    )


def _usual_orders(rows: ScoredRows) -> Iterator[tuple[str, Labels]]:
    """Yield orders that columns often have by mistake: which column holds the score of each class."""
    K, names = rows.n_classes, [str(name) for name in rows.classes.tolist()]
    reverse = np.arange(K)[::-1]
    yield "in reverse order", reverse
    alphabetical = np.argsort(np.array(sorted(range(K), key=names.__getitem__)))
    if (alphabetical != np.arange(K)).any() and (alphabetical != reverse).any():
        yield "in alphabetical order", alphabetical
    if K > 2:
        yield "moved to the right by one", np.roll(np.arange(K), -1)
        yield "moved to the left by one", np.roll(np.arange(K), 1)


def _best_order(rows: ScoredRows) -> Labels | None:
    """Return the order of the columns under which the labels are most likely; None with many classes."""
    K = rows.n_classes
    if K > _MOST_CLASSES_TO_ORDER:
        return None
    logs = np.log(np.maximum(rows.proba, _LEAST_SCORE))
    gain = np.stack([np.bincount(rows.labels, logs[:, j], minlength=K) for j in range(K)], axis=1)
    if (gain.argmax(axis=1) == np.arange(K)).all():  # then no other order is as good
        return np.arange(K)
    from scipy.optimize import linear_sum_assignment

    order: Labels = linear_sum_assignment(gain, maximize=True)[1]
    return order


def _is_far_better(scores: Floats, rows: ScoredRows, n_tried: float = 4.0) -> bool:
    return bool(scores.mean() < _FAR_BETTER * rows.scores.mean()) and is_positive(
        rows.scores - scores, n_tried
    )


def _no_order(rows: ScoredRows) -> str:
    if _distance_from_shuffled(rows) > _SHUFFLED:
        return (
            "They fit no better than if the labels were shuffled: are the labels in another order than the "
            "rows of the scores, or do the scores belong to another question?"
        )
    return (
        "They do follow the labels, but are far too sure of themselves or on another scale; recalibrate the "
        "scores on rows of their own, or check how they became probabilities."
    )


def _distance_from_shuffled(rows: ScoredRows) -> float:
    """Return how far the mean score is from its mean over shuffled labels, in standard deviations.

    The mean and the deviation over all shuffles are exact (Hoeffding 1951).
    """
    n, of_each = len(rows), rows.of_each_label
    shares = rows.counts / n
    of_row = of_each @ shares
    centred = of_each - of_row[:, None] - of_each.mean(axis=0) + of_row.mean()
    deviation = math.sqrt(float((centred**2).sum(axis=0) @ shares) / max(n - 1, 1) / n)
    return float(rows.scores.mean() - of_row.mean()) / deviation if deviation else 0.0


def training_warnings(rows: ScoredRows) -> Iterator[str]:
    """Warn if nearly every row has its true class as the only most probable one.

    A model that always predicts a very common class is nearly always right too, so most rows of the other
    classes must be right as well.
    """
    n, beyond = len(rows), len(rows) - int(rows.counts.max())
    if n < _FEWEST_SURE:
        return
    own = rows.proba[np.arange(n), rows.labels]
    n_wrong = np.count_nonzero((rows.proba >= own[:, None]).sum(axis=1) > 1)
    if n_wrong <= _MOST_WRONG * n and n_wrong < _MOST_WRONG_BEYOND * beyond:
        yield (
            f"The true class is the most probable one in {n - n_wrong:,} of {n:,} calibration rows. Was the "
            "model trained on these rows, or are the labels its own predictions? Then the guarantee does not "
            "hold for new rows: calibrate on rows that the model has not seen. If the classes are that easy "
            "to predict, `check=False` turns the checks off."
        )


def tie_warnings(rows: ScoredRows, costs: CostTable, alpha: Fraction) -> Iterator[str]:
    """Warn if the true class ties for the smallest score so often that sets include nearly all labels.

    To cover such a row, a set needs all tied labels. Only losses by class are checked: a distance can be
    small even if the true class is missed.
    """
    K = rows.n_classes
    if K < 3 or len(rows) < _FEWEST_ROWS or not all(costs.two_valued(k) for k in range(K)):
        return
    smallest = rows.proba.min(axis=1)
    own = rows.proba[np.arange(len(rows)), rows.labels]
    at_floor = np.flatnonzero(own == smallest)
    at_floor = at_floor[(rows.proba[at_floor] == smallest[at_floor, None]).sum(axis=1) > 1]
    if not len(at_floor):
        return
    weight = np.array([float(costs.bound_of(k)) for k in range(K)])[rows.labels[at_floor]].mean()
    if not weight:
        return
    affordable = alpha / Fraction(weight)
    if affordable < 1 and is_more_common(len(at_floor), len(rows), affordable):
        zeros = np.count_nonzero(own[at_floor] == 0)
        what = "is exactly 0" if zeros > len(at_floor) / 2 else "is the smallest of the row"
        yield (
            f"In {len(at_floor) / len(rows):.0%} of {len(rows):,} calibration rows the score of the true "
            f"class {what}, as for other classes there. alpha allows fewer misses, so sets must include "
            "all of these classes. Rounded or truncated scores, hard predictions and missing tokens of a "
            "language model cause this: keep more digits, ask for more log-probabilities, or recalibrate "
            "the scores."
        )
