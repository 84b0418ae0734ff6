"""Results are tables in notebooks, and convert to data frames without losing names."""

import pickle
import xml.etree.ElementTree as ET
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ordinalrisk as orisk

SCALE = ["low", "mid", "<high>"]
N_ROWS = 240


@pytest.fixture(scope="module")
def rows(draw):
    proba, labels = draw(N_ROWS, 3, seed=8)
    return proba, np.array(SCALE)[labels]


@pytest.fixture(scope="module")
def controller(rows):
    return orisk.RiskController("divergence", 0.1, classes=SCALE).calibrate(*rows)


@pytest.fixture
def evaluation(rows, controller, here):
    frame = pd.DataFrame(rows[0], columns=["p0", "p1", "p2"]).assign(y=rows[1], site=np.arange(N_ROWS) % 2)
    frame.to_csv("test.csv", index=False)
    return orisk.jobs.evaluate(controller, "test.csv", scores="p0,p1,p2", label="y")


def some_results(rows, controller, evaluation):
    proba, y = rows
    by_group = orisk.RiskController(alpha=0.2, classes=SCALE).calibrate(
        proba, y, groups=np.arange(N_ROWS) % 2
    )
    few = {"classes": SCALE, "alphas": [0.1, 0.2], "losses": {"a & b": "coverage", "distance": "divergence"}}
    return {
        "comparisons": orisk.compare(proba, y, growths=["frontier", "paper"], **few),
        "trade-off": orisk.trade_off(proba, y, **few),
        "weights": orisk.weights_for_coverage(proba, y, {"low": 0.5, "<high>": 0.8}, classes=SCALE),
        "guarantee": controller.guarantee(),
        "guarantees": by_group.guarantee(),
        "classes": orisk.metrics.by_class(y, controller.predict_set(proba), "divergence"),
        "evaluation": evaluation,
    }


def test_each_shows_as_a_table_that_stands_by_itself(rows, controller, evaluation):
    for name, result in some_results(rows, controller, evaluation).items():
        root = ET.fromstring(result._repr_html_())
        assert {element.tag for element in root.iter()} <= {"div", "b", "table", "tr", "th", "td", "span"}, (
            name
        )
        styles = [element.get("style", "") for element in root.iter()]
        assert not any("url" in style or ";color:" in style or style.startswith("color:") for style in styles)
        [first, *_] = root.iter("table")
        frame = result.to_pandas()
        if name != "evaluation":
            assert [cell.text for cell in first.iter("th")] == list(frame.columns)
            assert len([*first.iter("tr")]) == len(frame) + 1


def test_each_prints_as_text(rows, controller, evaluation):
    """No table prints as its fields; a name is not escaped as in HTML."""
    for name, result in some_results(rows, controller, evaluation).items():
        text = str(result)
        assert not any(field in text for field in ("array(", "Comparison(", "=Estimate")), name
        if name in ("comparisons", "classes"):
            assert text.split("\n")[0].split() == list(result.to_pandas().columns)
            assert len(text.split("\n")) == len(result.to_pandas()) + 1
    classes = orisk.metrics.by_class(rows[1], controller.predict_set(rows[0]), "divergence")
    assert "\n<high>  " in str(classes)
    assert str(evaluation).startswith(
        f"{evaluation.headline}\n{evaluation.colour.upper()}: {evaluation.sentence}\n"
    )
    assert str(evaluation).endswith(str(classes))


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("confidence", [None, 0.9])
def test_metrics_by_class_and_group_are_those_of_their_rows(rows, controller, relative, confidence):
    proba, y = rows
    loss, sets, groups = orisk.WeightedLoss([1, 2, 5]), controller.predict_set(proba), np.arange(N_ROWS) % 3
    options = {"confidence": confidence, "relative": relative}
    whole = orisk.metrics.relative_risk if relative else orisk.metrics.risk
    by_group = orisk.metrics.by_group(y, sets, [f"g{k}" for k in groups], loss, **options)
    assert (by_group.groups, by_group.rows.tolist()) == (["g0", "g1", "g2"], [80, 80, 80])
    by_class = orisk.metrics.by_class(y, sets, loss, **options)
    for k, label in enumerate(SCALE):
        mine, of_class = groups == k, y == label
        shown = by_group.to_pandas().iloc[k]
        if confidence is None:
            assert shown["risk"] == whole(y[mine], sets[mine], loss)
            assert shown["coverage"] == orisk.metrics.coverage(y[mine], sets[mine])
            assert shown["size"] == orisk.metrics.mean_size(sets[mine])
            assert by_class.risk[k] == pytest.approx(whole(y[of_class], sets[of_class], loss))
        else:
            found = whole(y[mine], sets[mine], loss, confidence=confidence)
            assert tuple(shown[["risk", "risk_low", "risk_high"]]) == tuple(found)
    with pytest.raises(ValueError, match="groups must have one value for each of the 240 rows"):
        orisk.metrics.by_group(y, sets, groups[:5], loss)


@pytest.mark.parametrize("how", ["plain", "relative", "groups", "clusters", "weights", "another alpha"])
def test_arrays_are_evaluated_as_files_are(rows, how, here):
    proba, y = rows
    columns = {"groups": np.arange(N_ROWS) % 2, "clusters": np.arange(N_ROWS) // 3}
    columns["sample_weight"] = 1 + np.arange(N_ROWS) % 2 / 2
    role = {"groups": "group", "clusters": "cluster", "weights": "weight"}.get(how)
    name = "sample_weight" if how == "weights" else how
    known = {name: columns[name]} if role else {}
    frame = pd.DataFrame(proba, columns=["p0", "p1", "p2"]).assign(y=y, **known)
    frame.to_csv("test.csv", index=False)
    half = slice(0, N_ROWS // 2)
    of_half = {key: values[half] for key, values in known.items()}
    one = orisk.RiskController("divergence", 0.1, classes=SCALE, relative=how == "relative")
    one.calibrate(proba[half], y[half], **of_half)
    options = {"alpha": 0.2} if how == "another alpha" else {}
    asked = {role: name} if role else {}
    by_file = orisk.jobs.evaluate(one, "test.csv", scores="p0,p1,p2", label="y", **asked, **options)
    found = orisk.jobs.evaluate_arrays(one, proba, y, **known, **options)
    assert found.to_dict() == by_file.to_dict()
    assert str(found) == str(by_file)


def test_numbers_of_a_column_have_the_same_decimals(rows):
    found = orisk.compare(*rows, classes=SCALE, alphas=[0.1, 0.25], growths=["frontier"])
    [shown] = ET.fromstring(found._repr_html_()).iter("table")
    alphas, sizes = ([row[at].text for row in [*shown][1:]] for at in (2, 4))
    assert set(alphas) == {"0.10", "0.25"}
    assert sizes == [f"{each.mean_size.value:.4f}" for each in found]


def test_frames_of_both_libraries_hold_the_same(rows, controller, evaluation):
    for result in some_results(rows, controller, evaluation).values():
        pandas, polars = result.to_pandas(), result.to_polars()
        assert list(pandas.columns) == polars.columns
        for name in pandas.columns:
            here, there = (
                [None if pd.isna(v) else v for v in values]
                for values in (pandas[name], polars[name].to_list())
            )
            assert here == there


def test_comparisons_are_a_list_and_a_table(rows):
    found = orisk.compare(
        *rows, classes=SCALE, alphas=[0.1], growths=["frontier"], losses={"miss": "coverage"}
    )
    assert isinstance(found, list)
    assert found == [found[0]]
    assert type(orisk.trade_off(*rows, classes=SCALE)).__name__ == "TradeOff"
    frame = found.to_pandas()
    assert frame.loc[0, ["loss", "growth", "alpha"]].tolist() == ["miss", "frontier", 0.1]
    assert frame.mean_size_low[0] == found[0].mean_size.low


def test_metrics_by_class_are_the_metrics(rows, controller):
    sets = controller.predict_set(rows[0])
    found = orisk.metrics.by_class(rows[1], sets, "divergence")
    frame = found.to_pandas()
    coverage = orisk.metrics.class_coverage(rows[1], sets, confidence=0.95)
    risk = orisk.metrics.class_risk(rows[1], sets, "divergence", confidence=0.95)
    for name, (value, low, high) in {"coverage": coverage, "risk": risk}.items():
        assert frame[name].tolist() == value.tolist()
        assert frame[f"{name}_low"].tolist() == low.tolist()
        assert frame[f"{name}_high"].tolist() == high.tolist()
    assert frame.rows.tolist() == [(rows[1] == label).sum() for label in SCALE]
    assert frame["size"].tolist() == orisk.metrics.class_size(rows[1], sets).tolist()
    assert frame.label.dtype == pd.CategoricalDtype(SCALE, ordered=True)
    assert list(orisk.metrics.by_class(rows[1], sets, confidence=None).to_pandas()) == [
        *("label", "rows", "coverage", "risk", "size")
    ]


def test_metrics_by_class_of_dask_collections(rows, controller):
    import dask.array as da

    proba = da.from_array(rows[0], chunks=(100, 3))
    labels = np.array([SCALE.index(label) for label in rows[1]])
    y = da.from_array(labels, chunks=100)
    numbered = orisk.RiskController(alpha=0.1).calibrate(rows[0], labels)
    lazy = orisk.metrics.by_class(y, numbered.predict_set(proba))
    eager = orisk.metrics.by_class(y.compute(), numbered.predict_set(rows[0]))
    assert lazy.to_pandas().equals(eager.to_pandas())


def test_an_evaluation_is_shown_as_the_report_does(evaluation):
    page = evaluation._repr_html_()
    shown = " ".join("".join(ET.fromstring(page).itertext()).split())
    assert evaluation.sentence in shown
    assert f"of {N_ROWS} rows" in shown
    for value in evaluation.numbers["risk"]:
        assert f"{value:.4f}" in shown
    assert "<high>" in shown
    assert "<script" not in page
    assert len(page) < 20_000
    assert evaluation.by_class.to_pandas().equals(evaluation.to_pandas())


def test_an_evaluation_shows_its_groups(rows, here):
    groups = np.where(np.arange(N_ROWS) % 2, "<b>", "a")
    controller = orisk.RiskController(alpha=0.2, classes=SCALE).calibrate(*rows, groups=groups)
    frame = pd.DataFrame(rows[0], columns=["p0", "p1", "p2"]).assign(y=rows[1], site=groups)
    frame.to_csv("test.csv", index=False)
    found = orisk.jobs.evaluate(controller, "test.csv", scores="p0,p1,p2", label="y", group="site")
    *_, strata = ET.fromstring(found._repr_html_()).iter("table")
    names = ["".join(row[0].itertext()) for row in strata.iter("tr")]
    assert names == ["guarantee for", "a", "<b>"]


def test_a_guarantee_has_a_row_for_each_part(rows):
    groups = np.where(np.arange(N_ROWS) % 2, "b", "a")
    found = orisk.RiskController(alpha=0.2, classes=SCALE, condition_on="label").calibrate(
        *rows, groups=groups
    )
    frame = found.guarantee().to_pandas()
    assert frame[["group", "label"]].drop_duplicates().shape == (6, 2)
    assert frame.alpha.tolist() == [0.2] * 6
    assert frame.rows.sum() == N_ROWS


# sets with the names of their rows


INDEXES = {
    "names": pd.Index([f"patient {i}" for i in range(N_ROWS)], name="patient"),
    "numbers": pd.Index(np.arange(N_ROWS) * 3 + 1),
    "dates": pd.date_range("2024-01-01", periods=N_ROWS, name="day"),
    "levels": pd.MultiIndex.from_product([["a", "b"], range(N_ROWS // 2)], names=["site", None]),
}


@pytest.mark.parametrize("kind", INDEXES)
def test_frames_of_sets_keep_the_names_of_rows(kind, rows, controller):
    index = INDEXES[kind]
    sets = controller.predict_set(pd.DataFrame(rows[0], columns=SCALE, index=index))
    assert sets.to_pandas().index.equals(index)
    frame = sets[5:9].to_polars()
    names = {"names": ["patient"], "numbers": ["index"], "dates": ["day"], "levels": ["site", "level_1"]}[
        kind
    ]
    assert frame.columns == [*names, "lower", "upper", "size"]
    kept = [each[0] if len(names) == 1 else tuple(each) for each in frame[names].rows()]
    assert kept == index[5:9].tolist()
    third = {"names": "patient 2", "numbers": "7", "dates": "2024-01-03", "levels": "a, 2"}[kind]
    assert f">{third}" in sets._repr_html_()


def test_rows_without_names_get_no_column(rows, controller):
    for proba in (rows[0], pd.DataFrame(rows[0])):
        assert controller.predict_set(proba).to_polars().columns == ["lower", "upper", "size"]
    named = controller.predict_set(rows[0]).to_polars(index=[f"r{i}" for i in range(N_ROWS)])
    assert named["index"].to_list()[:2] == ["r0", "r1"]


def test_an_index_called_like_a_column_is_refused(rows, controller):
    sets = controller.predict_set(pd.DataFrame(rows[0], index=pd.RangeIndex(N_ROWS, name="size")))
    with pytest.raises(ValueError, match="The index and a column are both called 'size'; rename the index"):
        sets.to_polars()


def test_labels_in_frames_are_ordered(rows, controller):
    sets = controller.predict_set(rows[0])
    pandas, polars = sets.to_pandas(), sets.to_polars()
    for end in ("lower", "upper"):
        assert pandas[end].dtype == pd.CategoricalDtype(SCALE, ordered=True)
        assert polars[end].dtype == pl.Enum(SCALE)
        assert pandas[end].tolist() == polars[end].to_list() == getattr(sets, end).tolist()
    assert (pandas.lower <= pandas.upper).all()
    assert polars.select((pl.col("lower") <= pl.col("upper")).all()).item()


def test_labels_that_are_numbers_stay_numbers(rows):
    sets = orisk.IntervalSet([0, 1], [0, 2], classes=[18, 30, 65])
    assert sets.to_pandas().upper.tolist() == [18, 65]
    assert sets.to_polars()["upper"].dtype == pl.Int64


# an alpha that is exact and prints as a number


def test_an_alpha_that_was_found_is_a_number_and_exact(rows, tmp_path):
    controller = orisk.RiskController(classes=SCALE).calibrate(*rows)
    alpha = orisk.alpha_for_size(controller, rows[0], 1.5)
    assert repr(alpha) == str(alpha) == str(float(alpha))
    assert f"{alpha:.3f}" == f"{float(alpha):.3f}"
    assert alpha == alpha.fraction
    assert type(alpha.fraction) is Fraction
    assert (N_ROWS + 1) % alpha.fraction.denominator == 0
    assert pickle.loads(pickle.dumps(alpha)) == alpha
    exact = orisk.RiskController(alpha=alpha.fraction, classes=SCALE).calibrate(*rows)
    found = orisk.RiskController(alpha=alpha, classes=SCALE).calibrate(*rows)
    assert found.threshold_ == exact.threshold_ == controller.threshold_at(alpha)
    found.save(tmp_path / "cal.json")
    loaded = orisk.RiskController.load(tmp_path / "cal.json")
    assert loaded.guarantee().alpha == alpha.fraction
    assert repr(found.alpha) == repr(alpha.fraction)
    assert repr(orisk.alpha_for_singletons(controller, rows[0], 0.3)).startswith("0.")
