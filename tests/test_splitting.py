"""Splitting rows: nothing is lost, nothing comes twice, and clusters stay whole."""

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unchecked import UNCHECKED

from ordinalrisk import RiskController
from ordinalrisk.splitting import split_folds, split_rows

pytestmark = UNCHECKED

NAMES = {
    "integers": lambda numbers: numbers,
    "strings": lambda numbers: np.array([f"patient {number}" for number in numbers]),
    "lists of both": lambda numbers: [int(n) if n % 2 else str(n - 1) for n in numbers],
    "floats": lambda numbers: numbers / 7,
    "dates": lambda numbers: np.datetime64("2024-02-28") + numbers,
    "series": lambda numbers: pd.Series(numbers, index=numbers[::-1]),
    "categories": lambda numbers: pd.Series(pd.Categorical([f"c{number}" for number in numbers])),
}
cluster_numbers = st.lists(st.integers(0, 8), min_size=2, max_size=40).filter(lambda ids: len({*ids}) > 1)
shares = st.integers(1, 99).map(lambda percent: Fraction(percent, 100))


def assert_same(parts, others):
    for part, other in zip(parts, others, strict=True):
        np.testing.assert_array_equal(part, other)


def assert_partition(parts, n_rows):
    for part in parts:
        assert part.dtype == np.int64
        assert part.tolist() == sorted(part.tolist())
    assert sorted(np.concatenate(parts).tolist()) == list(range(n_rows))


def assert_whole(parts, clusters):
    names = [{clusters[row] for row in part} for part in parts]
    assert sum(map(len, names)) == len(set().union(*names))


# two parts


@given(n_rows=st.integers(2, 60), share=shares, seed=st.integers(0, 99))
def test_rows_are_in_one_part_each_in_the_share_that_was_asked(n_rows, share, seed):
    first, second = split_rows(n_rows, share=share, random_state=seed)
    assert_partition([first, second], n_rows)
    reachable = min(max(share * n_rows, 1), n_rows - 1)
    assert abs(len(first) - reachable) <= Fraction(1, 2)


@given(ids=cluster_numbers, share=shares, seed=st.integers(0, 99))
def test_clusters_are_whole_and_as_many_as_the_share_says(ids, share, seed):
    first, second = split_rows(len(ids), share=share, clusters=ids, random_state=seed)
    assert_partition([first, second], len(ids))
    assert_whole([first, second], ids)
    n_first, n_clusters = len({ids[row] for row in first}), len({*ids})
    reachable = min(max(share * n_clusters, 1), n_clusters - 1)
    assert abs(n_first - reachable) <= Fraction(1, 2)


def test_large_clusters_are_as_likely_in_the_first_part_as_small_ones():
    """A first part that is filled up with rows would hold the large one in only 17 % of the draws."""
    ids = [0] * 100 + [*range(1, 301)]
    held = [0 in split_rows(ids, share=0.25, clusters=ids, random_state=seed)[0] for seed in range(2_000)]
    assert abs(np.mean(held) - 75 / 301) < 4 * np.sqrt(0.25 * 0.75 / 2_000)


def test_every_row_is_as_likely_as_any_other():
    """Each of 10 rows is among the first 3 in 4000 draws 1200 times, give or take 5 standard deviations."""
    counts = np.zeros(10)
    for seed in range(4000):
        counts[split_rows(10, share=0.3, random_state=seed)[0]] += 1
    assert (abs(counts - 1200) < 5 * (4000 * 0.3 * 0.7) ** 0.5).all()


@pytest.mark.parametrize("share", [0.29, "0.29", Decimal("0.29"), Fraction(29, 100)], ids=repr)
def test_a_share_means_the_decimals_that_are_written(share):
    assert len(split_rows(100, share=share)[0]) == 29


@pytest.mark.parametrize("rows", [7, np.int64(7), [0, 1, 2] * 2 + [0], np.zeros((7, 3)), pd.Series(range(7))])
def test_rows_may_be_counted_or_given(rows):
    assert_same(split_rows(rows, random_state=3), split_rows(7, random_state=3))


def test_the_seed_decides():
    assert_same(split_rows(50, random_state=4), split_rows(50, random_state=4))
    assert split_rows(50, random_state=4)[0].tolist() != split_rows(50, random_state=5)[0].tolist()


# folds


@given(n_rows=st.integers(2, 60), folds=st.integers(2, 9), seed=st.integers(0, 99))
def test_folds_hold_every_row_once(n_rows, folds, seed):
    folds = min(folds, n_rows)
    parts = split_folds(n_rows, folds, random_state=seed)
    assert_partition(parts, n_rows)
    assert len(parts) == folds
    sizes = [*map(len, parts)]
    assert max(sizes) - min(sizes) <= 1


@given(ids=cluster_numbers, folds=st.integers(2, 9), seed=st.integers(0, 99))
def test_folds_hold_every_cluster_once(ids, folds, seed):
    folds = min(folds, len({*ids}))
    parts = split_folds(len(ids), folds, clusters=ids, random_state=seed)
    assert_partition(parts, len(ids))
    assert_whole(parts, ids)
    n_clusters = [len({ids[row] for row in part}) for part in parts]
    assert max(n_clusters) - min(n_clusters) <= 1
    assert min(n_clusters) >= 1


def test_folds_are_the_parts_of_a_permutation():
    parts = np.array_split(np.random.default_rng(3).permutation(23), 5)
    assert_same(split_folds(23, 5, random_state=3), [np.sort(part) for part in parts])


# names of clusters


@pytest.mark.parametrize("named", NAMES.values(), ids=NAMES.keys())
def test_names_of_any_type_mean_the_same(named):
    numbers = np.random.default_rng(1).integers(0, 9, 50)
    clusters = named(numbers)
    assert_same(
        split_rows(50, clusters=clusters, random_state=2), split_rows(50, clusters=numbers, random_state=2)
    )
    assert_same(
        split_folds(50, 4, clusters=clusters, random_state=2),
        split_folds(50, 4, clusters=numbers, random_state=2),
    )


def test_the_order_of_names_plays_no_part():
    numbers = np.random.default_rng(1).integers(0, 9, 50)
    assert_same(
        split_rows(50, clusters=-numbers, random_state=2), split_rows(50, clusters=numbers, random_state=2)
    )
    assert_same(
        split_folds(50, 4, clusters=(numbers * 5) % 9, random_state=2),
        split_folds(50, 4, clusters=numbers, random_state=2),
    )


def test_rows_of_their_own_are_clusters_of_one():
    assert_same(split_rows(20, clusters=range(20), random_state=2), split_rows(20, random_state=2))
    assert_same(
        split_folds(20, 3, clusters=[*"abcdefghijklmnopqrst"], random_state=2),
        split_folds(20, 3, random_state=2),
    )


@pytest.mark.parametrize("split", [split_rows, lambda n, **more: split_folds(n, 2, **more)])
@pytest.mark.parametrize(
    "clusters",
    [
        ["a", "b", None, "c"],
        [1.0, 2.0, float("nan"), 3.0],
        np.array([1.0, 2.0, np.nan, np.nan]),
        pd.Series(["a", "b", None, "c"]),
        pd.Series([1, 2, None, 4], dtype="Int64"),
        np.array(["2024-01-01", "2024-01-02", "NaT", "2024-01-02"], "datetime64[D]"),
    ],
    ids=repr,
)
def test_a_missing_name_is_an_error_with_its_row(split, clusters):
    with pytest.raises(ValueError, match=r"clusters\[2\] is missing"):
        split(4, clusters=clusters)


# errors


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"share": 0}, "share must lie strictly between 0 and 1; got 0."),
        ({"share": 1}, "share must lie strictly between 0 and 1; got 1."),
        ({"share": "half"}, "share must be a finite number; got 'half'."),
        ({"random_state": -1}, "random_state must be a whole number, 0 or larger; got -1."),
        ({"random_state": 0.5}, "random_state must be a whole number, 0 or larger; got 0.5."),
        ({"random_state": True}, "random_state must be a whole number, 0 or larger; got True."),
        ({"clusters": ["a"] * 6}, "Two parts need at least two clusters; all rows belong to one cluster."),
        ({"clusters": ["a"] * 5}, "clusters must have one value for each of the 6 rows"),
    ],
)
def test_two_parts_say_what_is_wrong(wrong, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        split_rows(6, **wrong)


@pytest.mark.parametrize("rows", [1, 0, -3, [5]], ids=repr)
def test_one_row_has_no_two_parts(rows):
    with pytest.raises(ValueError, match=r"^Two parts need at least two rows; got -?[013]\.$"):
        split_rows(rows)


@pytest.mark.parametrize("rows", [2.5, None, np.array(4.0)], ids=repr)
def test_rows_that_can_not_be_counted(rows):
    with pytest.raises(
        ValueError, match="n_or_y must be the number of rows, or have one entry for each row; got"
    ):
        split_rows(rows)


@pytest.mark.parametrize(
    ("folds", "more", "message"),
    [
        (1, {}, "folds must be a whole number from 2 to the number of rows, 6; got 1."),
        (7, {}, "folds must be a whole number from 2 to the number of rows, 6; got 7."),
        (2.0, {}, "folds must be a whole number from 2 to the number of rows, 6; got 2.0."),
        (True, {}, "folds must be a whole number from 2 to the number of rows, 6; got True."),
        (
            4,
            {"clusters": [*"aabbcc"]},
            "folds must be a whole number from 2 to the number of clusters, 3; got 4.",
        ),
        (2, {"random_state": -1}, "random_state must be a whole number, 0 or larger; got -1."),
    ],
)
def test_folds_say_what_is_wrong(folds, more, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        split_folds(6, folds, **more)


# what a guarantee needs of a split


def risks_on_a_sorted_file(random_states, alpha=0.3, K=3, n=60):
    """The risk of a model that predicts the shares of its training rows; labels are uniform, files sorted."""
    rng, risks = np.random.default_rng(1), []
    for random_state in random_states:
        y = np.sort(rng.integers(0, K, n))
        train, calibration = split_rows(n, random_state=random_state)
        share = np.bincount(y[train], minlength=K) / len(train)
        controller = RiskController(alpha=alpha, growth="paper", randomize=True)
        controller.calibrate(np.tile(share, (len(calibration), 1)), y[calibration])
        sets = controller.predict_set(np.tile(share, (40, 1)), random_state=rng)
        risks.append(np.mean(1 - sets.size / K))
    return np.mean(risks), np.std(risks) / np.sqrt(len(risks))


def test_on_a_sorted_file_a_random_split_keeps_alpha_and_one_split_for_all_files_does_not():
    risk, error = risks_on_a_sorted_file(range(1_500))
    assert 3 * error < 0.03
    assert risk <= 0.3 + 3 * error
    risk, error = risks_on_a_sorted_file([6] * 300)
    assert risk - 3 * error > 0.33


def test_without_a_random_state_splits_differ():
    assert len({split_rows(50)[0].tobytes() for _ in range(5)}) == 5
    assert len({split_folds(50, 2)[0].tobytes() for _ in range(5)}) == 5
