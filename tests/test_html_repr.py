"""What notebooks show: well-formed, self-contained, escaped, and the numbers themselves."""

import re
import warnings
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch
from devices import DEVICE
from hypothesis import given
from hypothesis import strategies as st

import ordinalrisk as orisk
from ordinalrisk import IntervalSet, RiskController

NASTY = ["<script>alert(1)</script>", "a & b", "\"quoted\" 'name'", "</td></tr></table>", "&lt;"]
FILLED = "background:#"


def tree(fragment):
    """The fragment as a tree: it is well-formed, and one element."""
    return ET.fromstring(fragment)


def text_of(element):
    return "".join(element.itertext())


def table_rows(fragment):
    return [[*row] for row in tree(fragment).iter("tr")]


def lines_of(fragment):
    """The two columns of a controller's table."""
    return {text_of(name): text_of(value) for name, value in table_rows(fragment)}


def drawn_cells(row):
    [cells] = [cell for cell in row if cell.get("aria-hidden")]
    return [FILLED in span.get("style") for span in cells]


def calibrated(draw, n_rows=300, alpha=0.1, classes=None, **parameters):
    proba, y = draw(n_rows)
    labels = y if classes is None else np.array(classes, object)[y]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RiskController(alpha=alpha, classes=classes, **parameters).calibrate(proba, labels)


def some_reprs(draw):
    controller = calibrated(draw, classes=NASTY)
    return [
        RiskController(),
        RiskController(classes=NASTY),
        controller,
        calibrated(draw, n_rows=5),
        calibrated(draw, alpha=0.99),
        controller.predict_set(draw(20)[0]),
        IntervalSet([], [], classes=NASTY),
        IntervalSet([0], [59], classes=range(60)),
    ]


def test_all_are_well_formed_and_stand_by_themselves(draw):
    for shown in some_reprs(draw):
        root = tree(shown._repr_html_())
        tags = {element.tag for element in root.iter()}
        assert tags <= {"div", "b", "table", "tr", "th", "td", "span"}
        assert {name for element in root.iter() for name in element.attrib} <= {
            "style",
            "title",
            "aria-hidden",
        }


def test_equal_things_look_equal(draw):
    assert [shown._repr_html_() for shown in some_reprs(draw)] == [
        shown._repr_html_() for shown in some_reprs(draw)
    ]


def test_no_style_fixes_the_colour_of_text_or_page(draw):
    for shown in some_reprs(draw):
        for element in tree(shown._repr_html_()).iter():
            style = dict(part.split(":", 1) for part in element.get("style", "").split(";") if part)
            assert "color" not in style
            assert style.get("background", "transparent") == "transparent" or element.tag == "span"
            assert "url" not in element.get("style", "")


# controllers


def test_a_controller_that_is_not_calibrated_says_so():
    controller = RiskController(orisk.WeightedLoss([1, 2]), alpha=0.2, growth="rps")
    page = controller._repr_html_()
    assert lines_of(page) == {
        "loss": repr(controller.loss),
        "alpha": "0.2",
        "growth": repr(controller.growth),
    }
    assert "Not calibrated yet; call calibrate(proba, y)" in text_of(tree(page))


@pytest.mark.parametrize("classes", [["a", "<b>"], 3, "ab", range(3), np.array([1, 2])], ids=repr)
def test_classes_are_shown_as_given_until_they_are_checked(classes):
    assert lines_of(RiskController(classes=classes)._repr_html_())["classes"] == repr(classes)


@pytest.mark.parametrize(
    ("n_rows", "alpha", "also"),
    [(300, 0.1, ""), (5, 0.1, ", every set includes all labels"), (300, 0.99, ", single labels")],
)
def test_a_calibrated_controller_tells_what_it_found(n_rows, alpha, also, draw):
    controller = calibrated(draw, n_rows, alpha)
    page = controller._repr_html_()
    lines = lines_of(page)
    assert lines == {
        "loss": "WeightedLoss()",
        "alpha": str(alpha),
        "growth": "FrontierGrowth(point='mode')",
        "classes": "0 < 1 < 2 < 3 < 4 (5)",
        "calibrated on": f"{n_rows} rows",
        "threshold": f"{controller.threshold_:.6g}{also}",
        "data": f"{controller.data_blake3_[:12]}…",
    }
    assert str(controller.guarantee()).replace("\n", " ") in text_of(tree(page))
    titles = [element.get("title") for element in tree(page).iter() if element.get("title")]
    assert controller.data_blake3_ in titles
    assert (repr(controller.threshold_) in titles) == (not also)


def test_rows_are_counted_with_commas(draw):
    assert lines_of(calibrated(draw, 1_500)._repr_html_())["calibrated on"] == "1,500 rows"


def test_many_classes_are_shown_by_the_first_and_the_last():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(11), 100)
    page = RiskController(alpha=0.3).calibrate(proba, rng.integers(0, 11, 100))._repr_html_()
    assert lines_of(page)["classes"] == "0 < 1 < 2 < 3 < 4 < 5 < 6 < 7 < … < 10 (11)"
    ten = RiskController(alpha=0.3).calibrate(rng.dirichlet(np.ones(10), 100), rng.integers(0, 10, 100))
    assert lines_of(ten._repr_html_())["classes"] == " < ".join(map(str, range(10))) + " (10)"


def test_a_long_loss_is_cut_and_told_whole():
    loss = orisk.WeightedLoss([i % 7 + 0.123 for i in range(100)])
    page = RiskController(loss)._repr_html_()
    assert lines_of(page)["loss"] == repr(loss)[:160] + "…"
    assert repr(loss) in [element.get("title") for element in tree(page).iter()]


# options


def calibrated_with(draw, parameters, **extras):
    proba, y = draw(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RiskController(**{"alpha": 0.1} | parameters).calibrate(proba, y, **extras)


def test_options_are_told_before_and_after_calibration(draw):
    options = {"delta": 0.05, "confidence_bound": "hoeffding_bentkus", "condition_on": "label"}
    told = {"delta": "0.05, hoeffding_bentkus bound", "condition on": "label"}
    assert told.items() <= lines_of(RiskController(**options)._repr_html_()).items()
    controller = calibrated_with(draw, options)
    page = controller._repr_html_()
    assert "For each of 5 true classes by itself, with probability at least 0.95 over the draw" in text_of(
        tree(page)
    )
    assert str(controller.guarantee()).replace("\n", " ") in text_of(tree(page))
    coin = RiskController(randomize=True)._repr_html_()
    assert lines_of(coin)["randomize"] == "labels at the threshold at random"
    by_class = RiskController(alpha={"a": 0.1, "<b>": 0.2})._repr_html_()
    assert lines_of(by_class)["alpha"] == "0.1 for a, 0.2 for <b>"


def inner_rows(page):
    [inner] = [table for table in tree(page).iter("table") if table.find(".//table") is None]
    return [[text_of(cell) for cell in row] for row in inner]


def test_thresholds_of_groups_are_a_small_table(draw):
    groups = ["<script>alert(1)</script>", "south"] * 148 + ["few"] * 4
    controller = calibrated_with(draw, {}, groups=groups, clusters=np.arange(300) // 2)
    page = controller._repr_html_()
    found = controller.threshold_
    assert inner_rows(page) == [
        [groups[0], f"{found[groups[0]]:.6g}", "148 clusters"],
        ["south", f"{found['south']:.6g}", "148 clusters"],
        ["few", "-inf, every set includes all labels", "2 clusters"],
    ]
    assert "300 rows in clusters of 3 groups" in text_of(tree(page))
    assert "<script" not in page


def test_of_many_thresholds_the_first_are_shown(draw):
    controller = calibrated_with(draw, {"condition_on": "label", "alpha": 0.05}, groups=np.arange(300) % 3)
    rows = inner_rows(controller._repr_html_())
    assert len(rows) == 12
    assert rows[1][:2] == ["0", "1"]
    assert "... 3 more" in text_of(tree(controller._repr_html_()))
    proba, y = draw(200)
    with pytest.warns(UserWarning, match="too few"):
        few = RiskController(condition_on="label").calibrate(proba[y > 0], y[y > 0])
    assert inner_rows(few._repr_html_())[0] == ["0", "-inf, always in the set", "0 rows"]


@pytest.mark.parametrize(
    ("extras", "told"),
    [({"sample_weight": np.ones(300)}, "weights"), ({"class_ratios": [1, 2, 1, 1, 1]}, "class ratios")],
)
def test_weights_are_told(draw, extras, told):
    lines = lines_of(calibrated_with(draw, {}, **extras)._repr_html_())
    assert lines["calibrated on"] == f"300 rows, with {told}"
    assert lines["threshold"].endswith(", for a row of mean weight")


# intervals


@given(
    K=st.integers(2, 45),
    n=st.integers(0, 20),
    seed=st.integers(0, 99),
)
def test_rows_and_cells_are_the_intervals(K, n, seed):
    ends = np.sort(np.random.default_rng(seed).integers(0, K, (2, n)), axis=0)
    sets = IntervalSet(*ends, classes=[f"<{k}>" for k in range(K)])
    page = sets._repr_html_()
    mean = f", mean size {sets.size.mean():.4g}" if n else ""
    assert text_of(tree(page)).startswith(f"IntervalSet of {n} rows, {K} classes{mean}")
    head, *rows = table_rows(page) or [None]
    assert len(rows) == min(n, 8)
    for i, row in enumerate(rows):
        first, last = sets.lower_index[i], sets.upper_index[i]
        words = [text_of(cell) for cell in row if not cell.get("aria-hidden")]
        label = f"<{first}>" if first == last else f"<{first}>..<{last}>"
        assert words == [str(i), label, str(last - first + 1)]
        assert len(row) == len(head) == (4 if K <= 40 else 3)
        if K <= 40:
            assert drawn_cells(row) == sets.mask()[i].tolist()
    assert ("more" in text_of(tree(page))) == (n > 8)
    if n > 8:
        assert text_of(tree(page)).endswith(f"... {n - 8} more")


def test_many_rows_are_counted_with_commas():
    n = 100_000
    sets = IntervalSet(np.zeros(n, int), np.ones(n, int), classes=range(3))
    text = text_of(tree(sets._repr_html_()))
    assert text.startswith("IntervalSet of 100,000 rows, 3 classes, mean size 2")
    assert text.endswith("... 99,992 more")
    assert len(sets._repr_html_()) < 10_000


def test_no_rows_have_no_table():
    page = IntervalSet([], [], classes=["a", "b"])._repr_html_()
    assert table_rows(page) == []
    assert text_of(tree(page)) == "IntervalSet of 0 rows, 2 classes"


@pytest.mark.parametrize("k", range(5))
def test_names_are_text_and_nothing_else(k, draw):
    sets = IntervalSet([k], [k], classes=NASTY)
    [_, row] = table_rows(sets._repr_html_())
    assert text_of(row[1]) == NASTY[k]
    page = calibrated(draw, classes=NASTY)._repr_html_()
    assert lines_of(page)["classes"] == " < ".join(NASTY) + " (5)"
    assert not re.search(r"<script|<td></tr", sets._repr_html_() + page)


def test_a_long_name_is_cut_and_told_whole():
    name = '"long" & ' * 20
    [_, row] = table_rows(IntervalSet([0], [0], classes=[name, "b"])._repr_html_())
    assert text_of(row[1]) == name[:40] + "…"
    assert row[1][0].get("title") == name


def test_tensors_on_a_device_are_shown_too(on_a_device):
    lower, upper = (torch.tensor(ends, dtype=torch.int32, device=DEVICE) for ends in ([0, 1], [2, 1]))
    there = IntervalSet.of(lower, upper, np.arange(3))
    assert there._repr_html_() == IntervalSet([0, 1], [2, 1], classes=range(3))._repr_html_()
