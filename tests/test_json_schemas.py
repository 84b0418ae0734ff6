"""The published JSON Schemas: every file that is written is valid, and one that is changed is not."""

import copy
import json
from decimal import Decimal
from fractions import Fraction

import jsonschema
import numpy as np
import pytest
from file_formats import score_table, write_table
from rows_in_parts import calibrate_in_parts
from saved_documents import with_digests
from sizes import search_few_steps
from strategies import GROWTH_RULES
from strategies import LOSSES as LAWS
from unchecked import FEW, UNCHECKED

import ordinalrisk as orisk
from ordinalrisk.saving.json_schemas import json_schema

pytestmark = [FEW, UNCHECKED]

K = 4
KINDS = {
    "calibration": orisk.RiskController,
    "online": orisk.OnlineRiskController,
    "monitor": orisk.RiskMonitor,
    "drift": orisk.ScoreDrift,
    "recalibrator": orisk.Recalibrator,
    "triage": orisk.TriageController,
}
LOSSES = [
    orisk.WeightedLoss(),
    orisk.WeightedLoss([0.1, 0.3, 0, 0.7]),
    orisk.WeightedLoss([Fraction(1, 3), Fraction(2, 7), 1, Decimal("0.25")], normalize=False),
    orisk.WeightedLoss([Decimal("1E+3"), 1e-7, 2, 10**30]),
    orisk.DivergenceLoss(),
    orisk.DivergenceLoss(0.5, under=2, over=Fraction(1, 3)),
    orisk.DivergenceLoss(positions=[-18, 30.5, Decimal("65.1"), 100], over=0, normalize=False),
    orisk.CostTableLoss([[0, 1, 2, 3], [5, 0, 1, 9], [50, 20, 0, Fraction(1, 3)], [7, 7, 7, 0]]),
]
RULES = [rule for rule in GROWTH_RULES if rule.point != "median"]
COLUMNS = {"scores": ["a", "b", "c", "d"], "label": "y"}
CLASSES = [[2, 3, 5, 7], ["none", "mild", "modérée", 'se"vere\n'], [0, 0.5, "one", True], [-1.5, 0, 1, 1e300]]
GROUPS = np.array(["north", "south"])


VALIDATORS = {kind: jsonschema.Draft202012Validator(json_schema(kind)) for kind in KINDS}


def saved(found, path):
    found.save(path / "saved.json")
    return json.loads((path / "saved.json").read_text(encoding="utf-8"))


def valid(kind, document):
    return VALIDATORS[kind].is_valid(document)


def assert_valid(kind, document):
    VALIDATORS[kind].validate(document)


def calibrated(
    draw, classes=None, loss="coverage", growth="frontier", alpha=None, rows=120, with_rows=(), **how
):
    """A calibration with parameters, and with the row options."""
    proba, y = draw(rows, K, 0)
    loss = orisk.RiskController(loss).loss
    labels = np.empty(rows, object)
    labels[:] = [k if classes is None else classes[k] for k in y.tolist()]
    controller = orisk.RiskController(
        loss, loss.bound(K) / 5 if alpha is None else alpha, growth, classes, **how
    )
    extras = {
        "groups": GROUPS[np.arange(rows) % 2],
        "clusters": np.arange(rows) // 2,
        "sample_weight": np.linspace(0.1, 2, rows),
        "class_ratios": [1, "1/3", 0.25, 0],
    }
    return controller.calibrate(proba, labels, **{name: extras[name] for name in with_rows})


def calibrated_from_file(draw, folder, controller=None, **columns):
    proba, y = draw(60, K, 0)
    scores = np.log(proba) if columns.get("logits") else proba
    others = {"site": GROUPS[np.arange(60) % 2], "patient": np.arange(60) // 2, "w": np.linspace(0.1, 2, 60)}
    path = write_table(score_table(scores, y, COLUMNS["scores"], **others), folder / "rows.parquet")
    return orisk.jobs.calibrate(
        controller or orisk.RiskController(), path, **COLUMNS, **columns, classes=range(K)
    )


OPTIONS = {
    "plain": {},
    "one half": {"alpha": Decimal("0.5")},
    "nothing certified": {"alpha": 0.001, "rows": 20},
    "delta": {"delta": 0.1},
    "delta, by a ratio": {"delta": Fraction(1, 3), "confidence_bound": "binomial"},
    "hoeffding bentkus": {"delta": 0.1, "confidence_bound": "hoeffding_bentkus", "loss": "divergence"},
    "betting": {"delta": 0.1, "confidence_bound": "betting", "loss": "divergence"},
    "betting with clusters": {"delta": 0.1, "loss": "divergence", "with_rows": ["clusters"]},
    "groups": {"with_rows": ["groups"]},
    "by class": {"condition_on": "label"},
    "by class, one of which costs nothing": {
        "condition_on": "label",
        "loss": orisk.WeightedLoss([1, 1, 0, 1]),
        "alpha": 0.2,
    },
    "alpha by class": {"alpha": {0: 0.1, 1: Fraction(1, 3), 2: 0.2, 3: Decimal("0.25")}},
    "groups by class with delta": {"with_rows": ["groups"], "condition_on": "label", "delta": 0.2},
    "clusters": {"with_rows": ["clusters"]},
    "clusters in groups": {"with_rows": ["clusters", "groups"]},
    "row weights": {"with_rows": ["sample_weight"]},
    "row weights in groups": {"with_rows": ["sample_weight", "groups"]},
    "class ratios": {"with_rows": ["class_ratios"]},
    "randomized": {"randomize": True},
}


@pytest.fixture(scope="module", params=OPTIONS, ids=lambda name: name.replace(" ", "-"))
def document(request, draw, tmp_path_factory):
    return saved(calibrated(draw, **OPTIONS[request.param]), tmp_path_factory.mktemp("saved"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_one_and_of_the_version_that_is_written(kind, documents):
    published, written = json_schema(kind), dict(documents)[kind]
    version = written["schema_version"]
    jsonschema.Draft202012Validator.check_schema(published)
    assert published["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert published["properties"]["schema_version"]["enum"] == [version]
    assert published["properties"]["format"]["enum"] == [published["title"]] == [written["format"]]
    assert published["$id"] == f"urn:ordinalrisk:schema:{kind}:{version}"
    assert [*published["properties"]] == [*written]
    assert [*published["$defs"]["Digests"]["properties"]] == [*written["digests"]]


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_described(kind):
    def undescribed(part, path):
        if isinstance(part, list):
            return [name for each in part for name in undescribed(each, path)]
        if not isinstance(part, dict):
            return []
        found = [] if path[-1:] != ["$field"] or part.get("description") else [path]
        for key, each in part.items():
            if key == "properties":
                for name, field in each.items():
                    found += undescribed(field, [*path, name, *(["$field"] if name != "kind" else [])])
            else:
                found += undescribed(each, [*path, key])
        return found

    published = json_schema(kind)
    published["$defs"].pop("Digests")
    assert undescribed(published, []) == []
    assert published["title"]
    assert all(each.get("description") for each in published["$defs"].values())


def test_what_schemas_share_is_the_same_in_each():
    definitions = [json_schema(kind)["$defs"] for kind in KINDS]
    for name in {name for each in definitions for name in each if name != "Digests"}:
        assert len({json.dumps(each[name]) for each in definitions if name in each}) == 1, name


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_every_loss_with_every_rule_is_valid(loss, rule, draw, tmp_path):
    assert_valid("calibration", saved(calibrated(draw, loss=loss, growth=rule), tmp_path))
    run = orisk.OnlineRiskController(loss, loss.bound(K) / 5, rule)
    run.replay(*draw(30, K, 1))
    assert_valid("online", saved(run, tmp_path))
    monitor = orisk.RiskMonitor(loss, loss.bound(K) / 5)
    monitor.update(draw(30, K, 1)[1], orisk.IntervalSet([1] * 30, [2] * 30, classes=range(K)))
    assert_valid("monitor", saved(monitor, tmp_path))


def test_every_option_is_valid(document):
    assert_valid("calibration", document)


@pytest.mark.parametrize("classes", CLASSES, ids=str)
def test_names_of_every_type_are_valid(classes, draw, tmp_path):
    assert_valid("calibration", saved(calibrated(draw, classes), tmp_path))
    assert_valid("online", saved(orisk.OnlineRiskController(alpha=0.1, classes=classes), tmp_path))
    assert_valid("monitor", saved(orisk.RiskMonitor(alpha=0.1, classes=classes), tmp_path))


@pytest.mark.parametrize("how", [{}, {"delta": 0.1}, {"condition_on": "label"}], ids=str)
def test_curves_in_windows_are_valid(how, draw, tmp_path, monkeypatch):
    search_few_steps(monkeypatch)
    proba, y = draw(1000, K, 0)
    controller = orisk.RiskController("coverage", 0.1, **how)
    parted, _ = calibrate_in_parts(controller, proba, y, [300], more_alphas=[0.3, Fraction(1, 3)])
    found = saved(parted, tmp_path)
    assert any(
        len(part["curve"]["windows"]) > 1 or part["curve"]["windows"][0]["below"] for part in found["strata"]
    )
    assert found["more_alphas"]
    assert_valid("calibration", found)


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"logits": True, "group": "site", "cluster": "patient"},
        {"group": "site", "weight": "w"},
        {"rescale": True},
    ],
    ids=str,
)
def test_columns_of_files_are_valid(columns, draw, tmp_path):
    found = saved(calibrated_from_file(draw, tmp_path, **columns), tmp_path)
    assert found["columns"].items() >= (COLUMNS | columns).items()
    assert_valid("calibration", found)


def test_runs_and_monitors_in_the_middle_are_valid(draw, tmp_path):
    proba, y = draw(400, K, 0)
    run = orisk.OnlineRiskController(alpha="1/3", rate=Fraction(1, 7)).calibrate(proba, y)
    sets = run.replay(proba, np.roll(y, 1))
    assert_valid("online", saved(run, tmp_path))
    run = orisk.OnlineRiskController(alpha=0.01, rate=1)
    run.replay([[0.7, 0.2, 0.1, 0.0]], [3])
    below_0 = saved(run, tmp_path)
    assert below_0["place"] < 0
    assert_valid("online", below_0)
    monitor = orisk.RiskMonitor(alpha=0.01, delta=Fraction(1, 9))
    assert monitor.update(np.roll(y, 1), sets)
    ringing = saved(monitor, tmp_path)
    assert ringing["alarm_row"] >= 1
    assert_valid("monitor", ringing)


def places(document, path=()):
    """The path of every value, of the first and last item of a list."""
    if path:
        yield path
    if isinstance(document, dict):
        for name in document:
            yield from places(document[name], (*path, name))
    if isinstance(document, list):
        for i in {0, len(document) - 1} if document else ():
            yield from places(document[i], (*path, i))


def at(document, path):
    for step in path:
        document = document[step]
    return document


def changed(document, path, change):
    other = copy.deepcopy(document)
    change(at(other, path[:-1]), path[-1])
    return other


def put(value):
    return lambda holder, key: holder.__setitem__(key, value)


@pytest.fixture(scope="module")
def documents(draw, tmp_path_factory):
    """One file of each kind, and a calibration that uses as much as can be used together."""
    folder = tmp_path_factory.mktemp("saved")
    proba, y = draw(60, K, 0)
    options = orisk.RiskController("divergence", 0.2, delta=0.2, condition_on="label")
    much = calibrated_from_file(draw, folder, options, group="site", cluster="patient")
    run = orisk.OnlineRiskController(orisk.CostTableLoss(1 - np.eye(K, dtype=int)), 0.1)
    sets = run.replay(proba, y)
    run.predict_set(proba[:3])
    monitor = orisk.RiskMonitor("divergence", 0.1)
    monitor.update(y, sets, clusters=[f"patient {i}" for i in range(60)])
    monitor.remember("0" * 64, 60)
    drift = orisk.ScoreDrift(calibrated(draw), 0.5, random_state=1)
    assert drift.update(proba[np.repeat(proba.max(axis=1).argsort()[:5], 20)])
    drift.remember("0" * 64, 100)
    by_class = calibrated(draw, loss=orisk.WeightedLoss([1, 2, 3, 4]), with_rows=["class_ratios"])
    return [
        ("calibration", saved(much, folder)),
        ("calibration", saved(by_class, folder)),
        ("online", saved(run, folder)),
        ("monitor", saved(monitor, folder)),
        ("drift", saved(drift, folder)),
        ("recalibrator", saved(orisk.Recalibrator().fit(np.roll(proba, 1, axis=1), y), folder)),
        ("recalibrator", saved(orisk.Recalibrator("isotonic").fit(proba, y), folder)),
        ("triage", saved(triage_from_file(draw, folder), folder)),
    ]


def triage_from_file(draw, folder):
    proba, y = draw(400, K, 0)
    y[:200] = proba[:200].argmax(axis=1)
    path = write_table(
        score_table(proba, y, "abcd", site=GROUPS[np.arange(400) // 200]), folder / "triage.parquet"
    )
    made = orisk.TriageController("divergence", 0.2, 0.2)
    return orisk.jobs.triage(made, path, **COLUMNS, classes=range(K), group="site")


READ = {  # every version
    "calibration": (4, 5, 6, 7),
    "online": (1, 2),
    "monitor": (1, 2, 3),
    "drift": (1, 2, 3),
    "recalibrator": (1,),
    "triage": (1,),
}
MAY_BE_MISSING = {"relative", "stake", "stakes", "in_any_order", "starts"}  # they came later


def test_what_is_missing_is_refused_by_schema_and_loader(documents, tmp_path):
    for kind, document in documents:
        for path in places(document):
            if isinstance(at(document, path[:-1]), dict) and path[-1] not in MAY_BE_MISSING:
                other = changed(document, path, dict.__delitem__)
                assert not valid(kind, other), path
                if path[0] != "digests":
                    assert_not_loaded(kind, other, tmp_path)


def test_what_is_unknown_is_refused_by_schema_and_loader(documents, tmp_path):
    for kind, document in documents:
        for path in [(), *places(document)]:
            if isinstance(at(document, path), dict):
                other = changed(document, (*path, "more"), put(1))
                assert not valid(kind, other), path
                if path[-1:] != ("digests",):  # of which it takes what it knows
                    assert_not_loaded(kind, other, tmp_path)


def test_another_type_is_refused_by_schema_and_loader(documents, tmp_path):
    for kind, document in documents:
        for path in places(document):
            if path[0] != "digests":
                other = changed(document, path, put({"wrong": 1}))
                assert not valid(kind, other), path
                assert_not_loaded(kind, other, tmp_path)
            else:
                assert not valid(kind, changed(document, path, put(1))), path


def test_negative_counts_are_refused(documents):
    for kind, document in documents:
        for path in places(document):
            value = at(document, path)
            if (
                type(value) in (int, float)
                and path[0] not in ("classes", "place", "log_scores")
                and path[:2] != ("recalibration", "map")
                and not {"at", "levels"} & {*path}
            ):
                assert not valid(kind, changed(document, path, put(-1))), path


@pytest.mark.parametrize("number", [0, 2, 3, 5, 7, "4", "1", None, 4.5])
def test_another_schema_is_refused_by_schema_and_loader(number, documents, tmp_path):
    for kind, document in documents:
        if number in READ[kind]:
            continue
        other = changed(document, ("schema_version",), put(number))
        assert not valid(kind, other)
        assert_not_loaded(kind, other, tmp_path)


def test_a_document_of_another_kind_is_refused(documents):
    for kind, document in documents:
        for other in KINDS:
            assert valid(other, document) == (other == kind)


def test_fields_that_contradict_each_other_are_refused_by_the_loader(documents, tmp_path):
    """Groups without positions, labels without a condition, steps and windows, a bound without delta."""
    [(kind, much), (_, plain), *_] = documents
    window = {"below": 0, "levels": [0.5], "totals": [1]}
    for other in [
        changed(much, ("groups",), put(None)),
        changed(much, ("strata", 0, "group"), put(None)),
        changed(much, ("strata", 0, "label"), put(None)),
        changed(much, ("strata", 0, "curve", "windows"), put([window])),
        changed(much, ("options", "condition_on"), put(None)),
        changed(plain, ("strata", 0, "curve", "windows"), put(None)),
        changed(plain, ("strata", 0, "label"), put(0)),
        changed(plain, ("strata", 0, "group"), put(0)),
        changed(plain, ("groups",), put(["north"])),
        changed(plain, ("options", "bound"), put("betting")),
        changed(plain, ("alpha",), put([0.1, 0.1])),
        changed(changed(much, ("columns", "logits"), put(True)), ("columns", "rescale"), put(True)),
    ]:
        assert_not_loaded(kind, other, tmp_path)


def test_values_that_a_field_can_not_have_are_refused_by_schema_and_loader(documents, tmp_path):
    [(kind, much), (_, plain), *_] = documents
    for other in [
        changed(plain, ("groups",), put([])),
        changed(plain, ("classes",), put([0, 1, 2, 2])),
        changed(much, ("columns", "scores"), put(["a", "a", "b", "c"])),
        changed(plain, ("data_blake3",), put("0" * 63)),
        changed(plain, ("data_blake3",), put("0" * 64 + "\n")),
        changed(plain, ("unit",), put("patient")),
        changed(plain, ("shift",), put("labels")),
        changed(plain, ("alpha",), put("nan")),
        changed(plain, ("alpha",), put(0)),
        changed(plain, ("loss", "kind"), put("Other loss")),
        changed(plain, ("growth", "point"), put("mean")),
        changed(plain, ("strata",), put([])),
    ]:
        assert not valid(kind, other)
        assert_not_loaded(kind, other, tmp_path)


def test_names_that_this_version_lacks_are_not_loaded(documents, tmp_path):
    """A later version may know more losses, growth rules and bounds."""
    [(kind, much), (_, plain), *_] = documents
    for path in ("loss", "kind"), ("growth", "name"), ("options", "bound"):
        other = changed(much if path[0] == "options" else plain, path, put("other"))
        assert_not_loaded(kind, other, tmp_path)


def assert_not_loaded(kind, document, folder):
    path = folder / "changed.json"
    path.write_text(json.dumps(with_digests(document)), encoding="utf-8")
    with pytest.raises(ValueError, match="can't be loaded"):
        KINDS[kind].load(path)


@pytest.mark.parametrize("loss", LAWS.values(), ids=LAWS.keys())
def test_each_loss_is_valid_and_read_as_it_was_saved(loss, draw, tmp_path):
    loss = loss(K)
    assert_valid("calibration", saved(calibrated(draw, loss=loss), tmp_path))
    assert orisk.RiskController.load(tmp_path / "saved.json").loss == loss
    run = orisk.OnlineRiskController(loss, loss.bound(K) / 5, classes=range(K))
    assert_valid("online", saved(run, tmp_path))
    assert orisk.OnlineRiskController.load(tmp_path / "saved.json").loss == loss
    monitor = orisk.RiskMonitor(loss, loss.bound(K) / 5, classes=range(K))
    assert_valid("monitor", saved(monitor, tmp_path))
    assert orisk.RiskMonitor.load(tmp_path / "saved.json").loss == loss
    triage = orisk.TriageController(loss, loss.bound(K) / 5).calibrate(*draw(30, K, 1))
    assert_valid("triage", saved(triage, tmp_path))
    assert orisk.TriageController.load(tmp_path / "saved.json").loss == loss


def test_schemas_list_every_loss():
    kinds = {loss(K).to_dict()["kind"] for loss in LAWS.values()}
    for kind in {*KINDS} - {"drift", "recalibrator"}:
        assert json_schema(kind)["properties"]["loss"]["discriminator"]["mapping"].keys() == kinds
