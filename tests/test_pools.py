"""Classes with few rows: adjacent ones can share a threshold, and classes can be exempt, as guaranteed."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from command import refusal, run, succeeds
from file_formats import score_table, write_table
from report_words import headline
from saved_documents import rewrite
from sklearn.linear_model import LogisticRegression
from unchecked import FEW, UNCHECKED

import ordinalrisk as orisk
from ordinalrisk import RiskController

pytestmark = UNCHECKED

SHARES = np.array([0.55, 0.3, 0.1, 0.05])
SURE = np.array([8.0, 5.0, 2.0, 1.0])  # how sure the model is of each class


def draw(rng, n, labels=None, shares=SHARES, sure=SURE):
    """Rows with rare classes on top, which the model hardly knows."""
    y = rng.choice(4, n, p=shares) if labels is None else np.asarray(labels)
    weight = np.ones((len(y), len(sure)))
    weight[np.arange(len(y)), y] += sure[y]
    scores = rng.gamma(weight)
    return scores / scores.sum(axis=1, keepdims=True), y


def by_class(alpha=0.2, **options):
    return RiskController(alpha=alpha, condition_on="label", **options)


def needed(alpha):
    return math.ceil(1 / alpha) - 1


def pools_by_definition(n_rows, alpha, exempt=()):
    """The pool of each class for a new row of this class, following the sentence in the documentation."""
    found = []
    for label in range(len(n_rows)):
        count = [n + (k == label) for k, n in enumerate(n_rows)]
        pools = [[k] for k in range(len(n_rows)) if k not in exempt]

        def beside(i, pools=pools):
            return [
                j
                for j in (i - 1, i + 1)
                if 0 <= j < len(pools) and pools[min(i, j)][-1] + 1 == pools[max(i, j)][0]
            ]

        while True:
            sizes = [sum(count[k] for k in pool) for pool in pools]
            small = [i for i in range(len(pools)) if sizes[i] < needed(alpha) + 1 and beside(i)]
            if not small:
                break
            one = min(small, key=lambda i: (sizes[i], i))
            other = min(beside(one), key=lambda i: (sizes[i], i))
            first = min(one, other)
            pools[first : first + 2] = [pools[first] + pools[first + 1]]
        found.append(next((tuple(pool) for pool in pools if label in pool), (label,)))
    return found


def shares_missed(controller, rng, n=40, sure=SURE):
    """The share of missed rows of each class, on many new rows of each."""
    proba, y = draw(rng, n, np.repeat(np.arange(len(sure)), n), sure=sure)
    return (~controller.predict_set(proba).contains(y)).reshape(len(sure), n).mean(axis=1)


def mean_and_error(missed, weights):
    """The mean of ``missed`` over draws, weighted by how likely a row is there, and its standard error."""
    total = weights.sum()
    mean = (missed * weights).sum() / total
    return mean, math.sqrt(((missed - mean) ** 2 * weights**2).sum()) / total


def pooled_draws(alpha, trials, **options):
    """The missed shares of all classes in draws of few rows, and the pool of each class."""
    missed, pools, counts = [], [], []
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        proba, y = draw(rng, 45)
        controller = by_class(alpha, **options).calibrate(proba, y)
        n_rows = np.bincount(y, minlength=4)
        missed.append(shares_missed(controller, rng))
        pools.append(pools_by_definition(n_rows, alpha))
        counts.append(n_rows)
    return np.array(missed), pools, np.array(counts)


@FEW
def test_the_rows_of_each_pool_by_count_keep_the_promise_together():
    """Of each pool that there can be, whichever pools a draw of calibration rows has."""
    alpha, trials = 0.2, 2_500
    missed, pools, _ = pooled_draws(alpha, trials, pool_classes=True)
    seen = {pool for draws in pools for pool in draws}
    assert {(0,), (2, 3), (2,), (3,)} <= seen
    tested = 0
    for pool in seen:
        here = np.array([[SHARES[k] * (draws[k] == pool) for k in pool] for draws in pools])
        losses = missed[:, list(pool)]
        if (here > 0).any(axis=1).sum() < 100:
            continue
        tested += 1
        rows = here.sum(axis=1)
        mean = np.divide((losses * here).sum(axis=1), rows, out=np.zeros(trials), where=rows > 0)
        risk, error = mean_and_error(mean, rows)
        assert risk <= alpha + 3 * error, pool
    assert tested >= 4


def test_a_tenth_more_than_alpha_would_be_noticed_in_a_pool():
    """With 99 rows of the two rare classes, their rows are missed as often as the guarantee allows."""
    alpha, trials, mix = 0.2, 600, SHARES[2:] / SHARES[2:].sum()
    risks = {}
    for made_for in (alpha, alpha * 1.1):
        missed = np.zeros(trials)
        for seed in range(trials):
            rng = np.random.default_rng(seed)
            proba, y = draw(rng, 149, np.r_[[0] * 25, [1] * 25, rng.choice([2, 3], 99, p=mix)])
            controller = by_class(made_for, pool_classes=[(2, 3)]).calibrate(proba, y)
            missed[seed] = shares_missed(controller, rng, 100)[2:] @ mix
        risks[made_for] = mean_and_error(missed, np.ones(trials))
    risk, error = risks[alpha]
    assert alpha - 3 * error - 0.01 < risk <= alpha + 3 * error
    risk, error = risks[alpha * 1.1]
    assert risk > alpha + 3 * error


@FEW
@pytest.mark.parametrize("counts_new_row", [True, False], ids=["as guaranteed", "by a look at the rows"])
def test_pools_that_do_not_count_the_new_row_break_the_promise(counts_new_row):
    """The hard class is pooled if it is rare among calibration rows by chance; among new rows it is not."""
    alpha, trials = 0.2, 4_000
    shares, sure = np.array([0.3, 0.3, 0.3, 0.1]), np.array([8, 8, 8, -0.9])
    missed, rows = [], []
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        n_rows = rng.multinomial(80, shares)
        if counts_new_row:
            pools, how = pools_by_definition(n_rows, alpha), True
        else:
            pools, how = [(2, 3) if n_rows[3] < needed(alpha) else ()] * 4, [(2, 3)]
        here = np.array([shares[k] * (pools[k] == (2, 3)) for k in (2, 3)])
        if here.any():
            controller = by_class(alpha, pool_classes=how)
            controller.calibrate(*draw(rng, 80, np.repeat(range(4), n_rows), sure=sure))
            rows.append(here.sum())
            missed.append(shares_missed(controller, rng, sure=sure)[2:] @ here / here.sum())
    risk, error = mean_and_error(np.array(missed), np.array(rows))
    assert len(rows) > 100
    assert (risk <= alpha + 3 * error) == counts_new_row


@FEW
def test_pools_by_count_keep_the_promise_where_they_form_and_break_it_where_shown():
    """The hard class is a fifth of the rows, and it is pooled where it is rare by chance.

    Where the counts of all rows form the pool (1, 2), the guarantee holds. Calibrations with one to three
    rows of class 2 show the same pool, and the rows of classes 1 and 2 are missed too often after them.
    """
    alpha, n, shares, sure = 0.2, 40, np.array([0.2, 0.6, 0.2]), np.array([8, 1, -0.95])
    counts = np.random.default_rng(0).multinomial(n, shares, 20_000)
    counts = counts[(counts[:, 2] > 0) & (counts[:, 2] < 5) & (counts[:, 0] > 3)]
    missed, formed, shown = [], [], []
    for seed, n_rows in enumerate(counts):
        rng = np.random.default_rng(seed)
        controller = by_class(alpha, pool_classes=True)
        controller.calibrate(*draw(rng, n, np.repeat(range(3), n_rows), sure=sure))
        pools = pools_by_definition(n_rows, alpha)
        formed.append([shares[k] * (pools[k] == (1, 2)) for k in (1, 2)])
        shown.append([shares[k] * (controller.guarantee().parts[2].pool == (1, 2)) for k in (1, 2)])
        missed.append(shares_missed(controller, rng, sure=sure)[1:])
    risks = {}
    for name, rows in (("formed", np.array(formed)), ("shown", np.array(shown))):
        total = rows.sum(axis=1)
        mean = np.divide((missed * rows).sum(axis=1), total, out=np.zeros(len(total)), where=total > 0)
        risks[name] = mean_and_error(mean, total)
    risk, error = risks["formed"]
    assert risk <= alpha + 3 * error
    risk, error = risks["shown"]
    assert risk > alpha + 3 * error


@pytest.mark.parametrize("pools", [True, [(1, 2)]], ids=["by count", "named"])
def test_the_guarantee_of_pools_by_count_says_over_what_it_is_an_average(pools):
    proba, y = draw(np.random.default_rng(0), 50, [0] * 30 + [1] * 17 + [2] * 3, sure=SURE[:3])
    guarantee = by_class(0.1, pool_classes=pools).calibrate(proba, y).guarantee()
    words = (
        "These pools follow from row counts, so the guarantee of such a pool is an average over all draws in "
        "which the counts of the calibration rows and the new row form it. It need not hold for the counts "
        "of this calibration alone."
    )
    for text in (guarantee, guarantee.parts[2]):
        assert (words in " ".join(str(text).split())) == (pools is True)
        formed = "is, on average over all draws that form its pool, at most 0.1, provided" in str(
            text
        ).replace("\n", " ")
        assert formed == (pools is True)
    assert "a new row with one of the true classes 1, 2 is" in " ".join(str(guarantee.parts[2]).split())
    assert words not in " ".join(str(guarantee.parts[0]).split())


def test_a_pool_that_only_one_of_its_classes_sees_is_called_a_pool():
    proba, y = draw(np.random.default_rng(0), 40, [0] * 16 + [1] * 20 + [2] * 4, sure=SURE[:3])
    guarantee = by_class(0.2, pool_classes=True).calibrate(proba, y).guarantee()
    assert [part.pool for part in guarantee.parts] == [(), (1, 2), ()]
    assert str(guarantee).startswith("For each of 3 pools of true classes")


@FEW
@pytest.mark.parametrize("seed", range(30))
def test_thresholds_are_those_of_the_pooled_rows_alone(seed):
    rng = np.random.default_rng(seed)
    proba, y = draw(rng, int(rng.integers(10, 80)))
    exempt = [1] if seed % 3 == 0 else []
    alpha = 0.2
    controller = by_class(alpha, pool_classes=True, exempt_classes=exempt).calibrate(proba, y)
    pools = pools_by_definition(np.bincount(y, minlength=4), alpha, exempt)
    for label, pool in enumerate(pools):
        mine = np.isin(y, pool)
        if label in exempt:
            expected = math.inf
        elif mine.sum() < needed(alpha):
            expected = -math.inf
        else:
            expected = RiskController(alpha=alpha).calibrate(proba[mine], y[mine]).threshold_
        assert controller.threshold_[label] == expected
    guarantee = controller.guarantee()
    assert [part.pool or (part.label,) for part in guarantee.parts] == pools
    assert [part.exempt for part in guarantee.parts] == [label in exempt for label in range(4)]
    assert guarantee.n_rows == len(y)


def test_named_pools_share_a_threshold_for_every_loss_and_group():
    rng = np.random.default_rng(0)
    proba, y = draw(rng, 400)
    sites = np.array(["north", "south"])[rng.integers(0, 2, 400)]
    for loss in ("divergence", orisk.WeightedLoss([1, 1, 2, 3])):
        controller = by_class(0.15, loss=loss, pool_classes=[(2, 3)]).calibrate(proba, y, groups=sites)
        for site in ("north", "south"):
            assert controller.threshold_[site, 2] == controller.threshold_[site, 3]
            mine = (sites == site) & (y >= 2)
            curve = RiskController(loss, 0.15).calibrate(proba[mine], y[mine]).risk_curve_
            bound = max(loss_bound(loss, label) for label in (2, 3))
            budget = 0.15 * (mine.sum() + 1) - bound
            threshold = controller.threshold_[site, 2]
            assert float(curve.total_loss(threshold)) <= budget + 1e-9
            if threshold < math.inf:
                assert float(curve.total_loss(np.nextafter(threshold, math.inf))) > budget - 1e-9
            alone = by_class(0.15, loss=loss).calibrate(proba, y, groups=sites)
            assert controller.threshold_[site, 0] == alone.threshold_[site, 0]


def loss_bound(loss, label):
    table = (orisk.DivergenceLoss() if loss == "divergence" else loss).cost_table(4)
    return table[label].max()


def test_an_exempt_class_is_not_in_every_set_and_others_keep_their_promise():
    rng = np.random.default_rng(1)
    proba, y = draw(rng, 300)
    y = np.where((y == 3) & (np.cumsum(y == 3) > 3), 0, y)  # three rows of the rarest class
    with pytest.warns(UserWarning, match="too few rows of 3, so every set includes them"):
        plain = by_class().calibrate(proba, y)
    exempt = by_class(exempt_classes=[3]).calibrate(proba, y)
    new, _ = draw(rng, 2_000)
    assert plain.predict_set(new).mask()[:, 3].all()
    sets = exempt.predict_set(new)
    assert sets.mask()[:, 3].mean() < 0.5
    assert sets.size.mean() < plain.predict_set(new).size.mean() - 0.5
    for label in range(3):
        assert exempt.threshold_[label] == plain.threshold_[label]
    words = " ".join(str(exempt.guarantee()).split())
    assert words.startswith("For each of 3 true classes, the expected loss of a new row is at most 0.2")
    assert words.endswith("There is no guarantee for 3.")
    assert exempt.guarantee().certified
    assert str(exempt.guarantee().parts[3]).endswith("There is no guarantee for this class.")


def test_a_warning_names_the_classes_their_rows_and_the_remedies():
    proba, y = draw(np.random.default_rng(2), 50, [0] * 30 + [1] * 16 + [2] * 3 + [3])
    with pytest.warns(UserWarning, match="too few rows") as caught:
        by_class(0.1, classes=range(4)).calibrate(proba, y)
    assert str(caught[0].message) == (
        "There are too few rows of 2, 3, so every set includes them; at least 9 are needed, and there are 3, "
        "1. `pool_classes=True` lets adjacent classes share a threshold, and `exempt_classes` names classes "
        "without a guarantee."
    )
    pooled = by_class(0.1, pool_classes=True).calibrate(proba, y)
    words = " ".join(str(pooled.guarantee()).split())
    assert words.startswith(
        "For each of 2 pools of true classes, the expected loss of a new row is, on average"
    )
    assert "share a threshold, and the guarantee is for their rows together: 1, 2, 3." in words
    with pytest.warns(UserWarning, match="too few rows") as caught:
        by_class(0.01, pool_classes=True).calibrate(proba, y)
    assert "There are too few rows of 0, 1, 2, 3 together, so" in str(caught[0].message)
    assert "pool_classes" not in str(caught[0].message)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"pool_classes": "ab"}, "pool_classes must be True or pools such as"),
        ({"pool_classes": 3}, "pool_classes must be True or pools such as"),
        ({"pool_classes": ["ab"]}, "each of pool_classes must be a sequence of labels"),
        ({"pool_classes": [("a",)]}, "must have at least two classes"),
        ({"pool_classes": [("a", "a")]}, "more than once"),
        ({"pool_classes": [("a", "b"), ("b", "c")]}, "'b' is in more than one of pool_classes"),
        ({"pool_classes": [("a", "z")]}, "pool_classes has 'z', which is not one of the classes 'a', 'b'"),
        (
            {"pool_classes": [("a", "c")]},
            "The pool 'a', 'c' has a gap; pool adjacent classes, in the order",
        ),
        ({"pool_classes": [("a", "b")], "exempt_classes": ["a"]}, "'a' is in pool_classes and in exempt_cl"),
        ({"exempt_classes": "a"}, "exempt_classes must be a sequence of labels"),
        ({"exempt_classes": ["z"]}, "exempt_classes has 'z', which is not one of the classes"),
        ({"exempt_classes": [*"abcd"]}, "exempt_classes has every class"),
        ({"pool_classes": True, "condition_on": None}, 'add condition_on="label"'),
        ({"exempt_classes": ["a"], "condition_on": None}, 'add condition_on="label"'),
        ({"pool_classes": True, "delta": 0.1}, "delta and pool_classes can't be used together"),
        (
            {"pool_classes": [("a", "b")], "alpha": dict(zip("abcd", [0.1, 0.2, 0.2, 0.2], strict=True))},
            "Classes that share a threshold need the same alpha",
        ),
        (
            {"pool_classes": True, "alpha": dict(zip("abcd", [0.1, 0.2, 0.2, 0.2], strict=True))},
            "Classes that share a threshold need the same alpha",
        ),
    ],
    ids=str,
)
def test_pools_that_make_no_sense_are_refused(options, match):
    proba, y = draw(np.random.default_rng(0), 100)
    with pytest.raises(ValueError, match=match):
        RiskController(**{"alpha": 0.2, "condition_on": "label", "classes": [*"abcd"]} | options).calibrate(
            proba, np.array([*"abcd"])[y]
        )


def test_options_that_need_the_rows_of_each_unit_are_refused():
    proba, y = draw(np.random.default_rng(0), 100)
    with pytest.raises(ValueError, match="pool_classes and clusters can't be used together"):
        by_class(pool_classes=True).calibrate(proba, y, clusters=range(100))
    exempt = by_class(exempt_classes=[3]).calibrate(proba, y, clusters=np.arange(100) // 2)
    assert exempt.threshold_[3] == math.inf
    with_delta = by_class(0.3, exempt_classes=[3], delta=0.2).calibrate(proba, y)
    assert with_delta.threshold_[3] == math.inf


def test_dask_collections_can_have_exempt_classes_but_no_pools():
    da = pytest.importorskip("dask.array")
    proba, y = draw(np.random.default_rng(0), 400)
    parts = [da.from_array(values, chunks=(100, *values.shape[1:])) for values in (proba, y)]
    exempt = by_class(exempt_classes=[3]).calibrate(*parts)
    assert exempt.threshold_ == by_class(exempt_classes=[3]).calibrate(proba, y).threshold_
    with pytest.raises(ValueError, match="pool_classes can't be used with dask"):
        by_class(pool_classes=True).calibrate(*parts)


@FEW
def test_reports_and_notebooks_name_pools_and_exempt_classes(tmp_path):
    rng = np.random.default_rng(3)
    controller = by_class(pool_classes=[(2, 3)], exempt_classes=[0]).calibrate(*draw(rng, 60))
    orisk.report.write_report(controller, *draw(rng, 200), tmp_path / "report.html")
    words = "for their rows together: 2, 3. There is no guarantee for 0."
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "These classes share a threshold and a guarantee: 2 + 3." in " ".join(report.split())
    for text in (controller._repr_html_(), report):
        assert words in " ".join(text.replace("&#x27;", "'").split())
    assert "pool_classes=((2, 3),), exempt_classes=(0,)" in repr(controller)


def test_the_estimator_takes_both():
    rng = np.random.default_rng(0)
    proba, y = draw(rng, 400)
    model = orisk.OrdinalRiskClassifier(
        LogisticRegression(), alpha=0.2, condition_on="label", pool_classes=[(1, 2)], exempt_classes=[3]
    ).fit(proba, y)
    assert model.controller_.pool_classes == ((1, 2),)
    assert model.controller_.threshold_[1] == model.controller_.threshold_[2]
    assert model.controller_.threshold_[3] == math.inf


@FEW
@pytest.mark.parametrize(
    "how", [{"pool_classes": True}, {"pool_classes": [(2, 3)], "exempt_classes": [0]}], ids=str
)
def test_a_loaded_calibration_is_the_same(how, tmp_path):
    path, (proba, y) = tmp_path / "cal.json", draw(np.random.default_rng(5), 60)
    controller = by_class(**how).calibrate(proba, y)
    controller.save(path)
    loaded = RiskController.load(path)
    assert (loaded.pool_classes, loaded.exempt_classes) == (
        controller.pool_classes,
        controller.exempt_classes,
    )
    assert loaded.threshold_ == controller.threshold_
    assert loaded.guarantee() == controller.guarantee()
    assert loaded.predict_set(proba).size.tolist() == controller.predict_set(proba).size.tolist()
    for field, bad in [
        ("pool_classes", [[0, 3]]),
        ("pool_classes", [[2, 9]]),
        ("pool_classes", [[2]]),
        ("pool_classes", False),
        ("exempt_classes", [9]),
        ("exempt_classes", "all"),
    ]:
        controller.save(path)
        rewrite(path, **{field: bad})
        with pytest.raises(ValueError, match=f"field '{field}' is not valid"):
            RiskController.load(path)
    controller.save(path)
    rewrite(path, pool_classes=None)  # so that the thresholds do not follow
    with pytest.raises(ValueError, match="field 'strata' is not valid"):
        RiskController.load(path)


# the command

GRADES = ["good", "fair", "poor", "very poor"]
PER_CLASS = ["--alpha", "0.2", "--per-class", "--classes", ",".join(GRADES)]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    for name, labels in [
        ("old.csv", [0] * 60 + [1] * 30 + [2] * 12 + [3] * 2),
        ("new.csv", [*range(4)] * 60),
    ]:
        proba, y = draw(rng, len(labels), labels)
        write_table(score_table(proba, [GRADES[k] for k in y]), name)
    return tmp_path


@pytest.mark.usefixtures("files")
def test_calibrate_predict_and_evaluate_say_which_classes_have_too_few_rows():
    few = (
        "There are too few rows of 'very poor', so every set includes them; at least 4 are needed, and there "
        "are 2."
    )
    done = succeeds("calibrate", "old.csv", "-o", "cal.json", *PER_CLASS)
    text = " ".join(done.stdout.split())
    remedy = (
        " --pool-classes lets adjacent classes share a threshold, and --exempt-class names classes without "
        "a guarantee."
    )
    assert few + remedy in text
    done = succeeds("predict", "cal.json", "new.csv", "-o", "sets.csv", "--no-drift-note")
    assert few + remedy in " ".join(done.stderr.split())
    done = succeeds("evaluate", "cal.json", "new.csv")
    assert few in " ".join(done.stdout.split())


@pytest.mark.usefixtures("files")
def test_pools_and_exempt_classes_are_options_of_calibrate():
    done = succeeds("calibrate", "old.csv", "-o", "pooled.json", *PER_CLASS, "--pool-classes")
    assert "for their rows together: 'poor', 'very poor'." in " ".join(done.stdout.split())
    succeeds("calibrate", "old.csv", "-o", "named.json", *PER_CLASS, "--pool", "poor, very poor")
    pooled, named = RiskController.load("pooled.json"), RiskController.load("named.json")
    assert pooled.threshold_ == named.threshold_
    assert (pooled.pool_classes, named.pool_classes) == (True, (("poor", "very poor"),))
    done = succeeds("evaluate", "pooled.json", "new.csv", "--json", "found.json")
    strata = json.loads(Path("found.json").read_text())["strata"]
    assert [part["label"] for part in strata] == GRADES
    assert strata[2]["risk"] == strata[3]["risk"], "that of their rows together"
    assert strata[2]["verdict"] == strata[3]["verdict"]
    assert [part["pool"] for part in strata] == [[], [], ["poor", "very poor"], ["poor", "very poor"]]
    text = " ".join(done.stdout.split())
    assert re.search(r"(All|\d of) 3 pools of true classes that could be tested agree", text)
    n_rows = dict(re.findall(r"(good|fair|very poor|poor) (\d+) 0\.\d+ 0\.\d+ 0\.\d+ 0\.2 [a-z]", text))
    assert n_rows == {"good": "60", "fair": "60", "poor": "120", "very poor": "120"}, "those of the risk"
    both = np.isin([*range(4)] * 60, [2, 3])
    proba = np.array([line.split(",")[:4] for line in Path("new.csv").read_text().split("\n")[1:241]], float)
    missed = ~pooled.predict_set(proba).contains([GRADES[k] for k in [*range(4)] * 60])
    assert strata[2]["risk"][0] == missed[both].mean()
    names = ["--exempt-class", "very poor", "--exempt-class", "good"]
    done = succeeds("calibrate", "old.csv", "-o", "exempt.json", *PER_CLASS, *names)
    assert "There is no guarantee for 'good', 'very poor'." in " ".join(done.stdout.split())
    done = succeeds("evaluate", "exempt.json", "new.csv", "--json", "found.json")
    assert "There is no guarantee for good, very poor." in " ".join(done.stdout.split())
    found = json.loads(Path("found.json").read_text())
    assert [part["verdict"] == "nothing" for part in found["strata"]] == [True, False, False, True]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--pool", "poor,awful"], "--pool: 'awful' is not one of the classes"),
        (["--exempt-class", "awful"], "--exempt-class: 'awful' is not one of the classes"),
        (["--pool", "poor,very poor", "--pool-classes"], "--pool-classes chooses the pools by the numbers"),
        (["--pool-classes", "--delta", "0.1"], "--delta and --pool-classes can't be used together"),
        (["--pool", "good,poor"], "The pool 'good', 'poor' has a gap"),
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_wrong_usage(options, line):
    assert refusal(2, "calibrate", "old.csv", "-o", "cal.json", *PER_CLASS, *options).startswith(line)


@pytest.mark.usefixtures("files")
def test_pools_are_for_a_promise_for_each_class():
    plain = ["--alpha", "0.2", "--classes", ",".join(GRADES)]
    for options in (["--pool-classes"], ["--exempt-class", "good"]):
        result = run("calibrate", "old.csv", "-o", "cal.json", *plain, *options)
        assert result.exit_code == 2
        assert "--per-class" in result.stderr


def test_a_table_of_the_guarantee_promises_nothing_for_an_exempt_class():
    rng = np.random.default_rng(0)
    controller = by_class(exempt_classes=[3], pool_classes=[(1, 2)]).calibrate(*draw(rng, 300))
    table = controller.guarantee().to_pandas()
    assert table.alpha.isna().tolist() == [False, False, False, True]
    assert table.certified.tolist() == [True, True, True, False]
    assert table.pool.tolist() == ["", "1, 2", "1, 2", ""]


def test_a_class_that_is_exempt_is_not_warned_of():
    rng = np.random.default_rng(0)
    proba, y = draw(rng, 600, shares=np.array([0.45, 0.35, 0.1, 0.1]), sure=np.array([8.0, 5.0, 2.0, -0.9]))
    with pytest.warns(orisk.CalibrationWarning, match="Some classes are covered less than half"):
        RiskController(alpha=0.2).calibrate(proba, y)
    by_class(exempt_classes=[3]).calibrate(proba, y)


def test_pools_at_another_alpha_need_one_alpha_too():
    rng = np.random.default_rng(0)
    controller = by_class(pool_classes=[(1, 2)]).calibrate(*draw(rng, 300))
    apart = {0: 0.1, 1: 0.3, 2: 0.02, 3: 0.1}
    for ask in (
        lambda: controller.predict_set(draw(rng, 5)[0], alpha=apart),
        lambda: controller.threshold_at(apart),
    ):
        with pytest.raises(ValueError, match="Classes that share a threshold need the same alpha"):
            ask()


@FEW
def test_an_exempt_class_keeps_pools_apart():
    proba, y = draw(np.random.default_rng(0), 60, np.repeat(range(4), [3, 50, 3, 4]))
    pools = by_class(0.1, pool_classes=True, exempt_classes=[1]).calibrate(proba, y).guarantee().parts
    assert [part.pool for part in pools] == [(), (), (2, 3), (2, 3)]


def test_pools_of_shares_count_what_rows_can_lose():
    """Three rows of weight 10 and 52 of weight 1 are not enough together; with forty more they are."""
    y = np.repeat(range(4), [40, 40, 12, 3])
    proba = np.full((95, 4), 0.1)
    proba[range(95), y] = 0.7
    loss = orisk.WeightedLoss([1, 1, 1, 10])
    controller = by_class(0.1, loss=loss, relative=True, pool_classes=True).calibrate(proba, y)
    assert math.isfinite(min(controller.threshold_.values()))
    assert controller.guarantee().parts[3].pool == (0, 1, 2, 3)


@pytest.mark.parametrize("named", [{"exempt_classes": [[3]]}, {"pool_classes": [([3], [2])]}], ids=repr)
def test_names_that_can_not_be_labels_are_refused(named):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="classes"):
        by_class(**named).calibrate(*draw(rng, 300))


def test_the_headline_names_pools_and_exempt_classes():
    """The same is true of a guarantee for each class."""
    rows = draw(np.random.default_rng(0), 300)
    pools, exempt = by_class(pool_classes=[(1, 2)]), by_class(exempt_classes=[3])
    assert headline(pools.calibrate(*rows), *rows) == (
        "For each pool of true classes, at most 20 % of sets miss the truth."
    )
    assert headline(exempt.calibrate(*rows), *rows) == (
        "For each true class except 3, at most 20 % of sets miss the truth."
    )


def test_an_exempt_class_is_not_far_off(tmp_path):
    """There is no guarantee for it, so it is no reason for another colour."""
    rng = np.random.default_rng(0)
    sure = np.array([8.0, 5.0, 5.0, -0.9])
    shares = np.full(4, 0.25)
    controller = by_class(exempt_classes=[3], classes=range(4))
    controller.calibrate(*draw(rng, 800, shares=shares, sure=sure))
    write_table(score_table(*draw(rng, 800, shares=shares, sure=sure)), tmp_path / "test.csv")
    found = orisk.jobs.evaluate(controller, tmp_path / "test.csv", scores="p0,p1,p2,p3", label="y")
    assert not [each for each in found.far_off if each.kind == "class"]


def test_rows_that_can_lose_nothing_have_no_risk_in_json(tmp_path):
    rng = np.random.default_rng(0)
    controller = RiskController(
        orisk.WeightedLoss([0, 1, 1, 1]), 0.2, relative=True, check=False, classes=range(4)
    )
    controller.calibrate(*draw(rng, 400))
    write_table(score_table(*draw(rng, 30, np.zeros(30, int))), tmp_path / "test.csv")
    found = orisk.jobs.evaluate(controller, tmp_path / "test.csv", scores="p0,p1,p2,p3", label="y")
    assert found.to_dict()["risk"] is None
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_drift_takes_the_dialect_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    proba, y = draw(np.random.default_rng(0), 300)
    RiskController(alpha=0.2, classes=range(4)).calibrate(proba, y).save("cal.json")
    lines = [";".join(f"{p:.17f}".replace(".", ",") for p in row) for row in proba[:20]]
    Path("new.csv").write_text("\n".join(["p0;p1;p2;p3", *lines]))
    given = ["drift", "state.json", "cal.json", "new.csv", "--scores", "p0,p1,p2,p3", "--rescale"]
    succeeds(*given, "--delimiter", ";", "--decimal", ",")
    assert run(*given, "--delimiter", "|").exit_code != 0


def test_the_headline_of_groups_exempts_the_class_and_not_a_group():
    rng = np.random.default_rng(0)
    proba, y = draw(rng, 300)
    alphas = {0: 0.1, 1: 0.2, 2: 0.1, 3: 0.2}
    groups = rng.choice(["a", "b"], 300)
    controller = by_class(exempt_classes=[3], alpha=alphas).calibrate(proba, y, groups=groups)
    assert orisk.jobs.evaluate_arrays(controller, proba, y, groups=groups).headline == (
        "In each of 2 groups and for each true class except 3, at most 10 % of sets miss the truth for 0 and "
        "2, at most 20 % for 1."
    )
