"""Held-out rows: whole groups, as many as asked for, and a file that is tied to its rows."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproduction.held_out import hold_out, read_split, write_split

groupings = st.lists(st.integers(-5, 15), min_size=1, max_size=60)
seeds = st.integers(0, 1000)


@st.composite
def askings(draw):
    """Groups, and a number of rows that can be held out: two rows on their own are never too large to fit."""
    groups = draw(st.permutations([*draw(groupings), 30, 31]))
    return groups, draw(st.integers(2, len(groups) - 1))


@given(asking=askings(), seed=seeds)
def test_each_row_is_on_one_side_with_its_whole_group(asking, seed):
    groups, n_rows = asking
    train, held = hold_out(groups, n_rows, seed)
    assert sorted([*train, *held]) == list(range(len(groups)))
    assert (np.diff(train) > 0).all()
    assert (np.diff(held) > 0).all()
    assert not {groups[i] for i in train} & {groups[i] for i in held}


@given(asking=askings(), seed=seeds)
def test_no_group_that_still_fits_is_left(asking, seed):
    groups, n_rows = asking
    train, held = hold_out(groups, n_rows, seed)
    room = n_rows - len(held)
    assert room >= 0
    assert all(groups.count(groups[i]) > room for i in train)


@given(groups=groupings, n_rows=st.integers(2, 50), seed=seeds)
def test_with_enough_single_rows_the_count_is_exact(groups, n_rows, seed):
    singles = [100 + i for i in range(n_rows + 1)]
    train, held = hold_out([*groups, *singles], n_rows, seed)
    assert len(held) == n_rows
    assert len(train) == len(groups) + 1


@given(asking=askings(), seed=seeds)
def test_same_seed_same_rows_and_names_of_groups_do_not_matter(asking, seed):
    groups, n_rows = asking
    first = hold_out(groups, n_rows, seed)
    again = hold_out([f"{group + 5:02}" for group in groups], n_rows, seed)
    assert all(map(np.array_equal, first, again))


def test_other_seed_other_rows():
    held = [hold_out(np.arange(100), 50, seed)[1] for seed in range(2)]
    assert not np.array_equal(*held)


def test_every_row_has_the_same_chance():
    """Over 2,000 draws, five standard errors about the share of rows held out."""
    draws, n, n_rows = 2_000, 12, 4
    times = sum(np.bincount(hold_out(np.arange(n), n_rows, seed)[1], minlength=n) for seed in range(draws))
    share = n_rows / n
    assert np.abs(times / draws - share).max() < 5 * np.sqrt(share * (1 - share) / draws)


@pytest.mark.parametrize("n_rows", [-1, 0, 1, 5, 6])
def test_number_of_rows_must_leave_rows_on_both_sides(n_rows):
    with pytest.raises(ValueError, match=rf"n_rows={n_rows} can't be held out of 5 rows"):
        hold_out(range(5), n_rows)


@pytest.mark.parametrize("groups", [[0] * 3 + [1] * 3, [0] * 3 + [1]])
def test_groups_that_are_too_large_are_refused(groups):
    with pytest.raises(ValueError, match=r"n_rows=2 is too few for whole groups: only [01] rows fit"):
        hold_out(groups, 2)


NAMES = ["ant", "bee", "cat", "dog", "eel"]


@pytest.fixture
def split(tmp_path):
    path = tmp_path / "split.json"
    write_split(path, NAMES, [0, 2, 4], [3, 1], seed=7)
    return path


def test_split_comes_back(split):
    train, held = read_split(split, NAMES)
    assert train.tolist() == [0, 2, 4]
    assert held.tolist() == [1, 3]


def test_drawn_split_comes_back(tmp_path):
    train, held = hold_out(np.arange(200) // 3, 80, seed=3)
    names = [str(i) for i in range(200)]
    write_split(tmp_path / "split.json", names, train, held, seed=3)
    assert all(map(np.array_equal, read_split(tmp_path / "split.json", names), (train, held)))


def test_file_has_the_rows_but_not_the_names(split):
    document = json.loads(split.read_text())
    assert (document["n_rows"], document["seed"], document["held_out"]) == (5, 7, [1, 3])
    assert not any(name in split.read_text() for name in NAMES)


@pytest.mark.parametrize(
    "names",
    [NAMES[:-1], [*NAMES, "fox"], NAMES[::-1], [*NAMES[:-1], "elk"]],
    ids=["fewer", "more", "order", "other"],
)
def test_split_of_other_rows_is_refused(split, names):
    with pytest.raises(ValueError, match=f"is a split of other rows: 5 rows in it, {len(names)} here"):
        read_split(split, names)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"held_out": [1, 2]}, "does not match its digest"),
        ({"seed": 8}, "does not match its digest"),
        ({"sha256": "0"}, "does not match its digest"),
        ({"extra": 1}, "does not match its digest"),
        ({"format": "recipe"}, "is no ordinalrisk split"),
        ({"schema_version": 2}, "has schema version 2; this version reads 1"),
    ],
)
def test_changed_file_is_refused(split, change, message):
    split.write_text(json.dumps(json.loads(split.read_text()) | change))
    with pytest.raises(ValueError, match=message):
        read_split(split, NAMES)


@pytest.mark.parametrize(
    ("text", "message"), [('{"format": ', "is not a whole JSON file"), ("[]", "is no ordinalrisk split")]
)
def test_other_file_is_refused(split, text, message):
    split.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_split(split, NAMES)


@pytest.mark.parametrize("held", [[1], [1, 3, 4], [1, 5], [1, -2]])
def test_rows_that_are_no_split_are_not_written(tmp_path, held):
    with pytest.raises(ValueError, match=r"Each of 5 rows must be in one of train \(3\) and held"):
        write_split(tmp_path / "split.json", NAMES, [0, 2, 4], held, seed=0)
    assert not list(tmp_path.iterdir())
