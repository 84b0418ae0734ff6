"""Tables, remarks, the page and the JSON of a reproduction: every number in them is the reproduction's."""

import json
import re
from dataclasses import asdict, fields, replace
from functools import cache

import numpy as np
import pytest
from unchecked import UNCHECKED

from ordinalrisk import RiskController, alpha_for_size, metrics
from reproduction import diabetic_retinopathy, remarks, simulated, utkface
from reproduction.page import page
from reproduction.protocol import TrialMeans, halves
from reproduction.run import Centroids, RealisedRisks, reproduce
from reproduction.scores import Scores
from reproduction.tables import (
    TextTable,
    centroid_table,
    class_table,
    decimals,
    published_table,
    rules_table,
    rules_tables,
    weight_table,
)

EXPERIMENTS = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in (simulated, utkface, diabetic_retinopathy)
}
NORMALISATIONS = ("min_shift", "softmax")
PICTURES = ("data", "examples", "sizes", "risks", "centroids", "classes")
TRIALS, N_ROWS = 3, 400
for_each_experiment = pytest.mark.parametrize("name", EXPERIMENTS)


def made_up_scores(n_classes, n_rows=N_ROWS, key="made-up", missing=(), authors_layout=False):
    """Scores of a model that is often off by one; some classes may have no rows."""
    rng = np.random.default_rng(n_classes)
    y = rng.choice(np.setdiff1d(np.arange(n_classes), missing), n_rows)
    seen = y + rng.normal(0, 0.9, n_rows)
    logits = -((np.arange(n_classes) - seen[:, None]) ** 2) / 1.5
    names = [f"{row // 2}_{'left' if row % 2 else 'right'}.jpeg" for row in range(n_rows)]
    return Scores(names, y, logits, key, f"scores in {key}.csv", authors_layout)


@cache
def reproduced(
    name, trials=TRIALS, missing=(), from_authors=False, growths=("paper", "adaptive", "frontier")
):
    experiment = EXPERIMENTS[name]
    if from_authors:
        experiment = replace(experiment, released_rows=N_ROWS)
    scores = made_up_scores(len(experiment.classes), key=name, missing=missing, authors_layout=from_authors)
    return reproduce(experiment, scores, trials=trials, seed=4, growths=growths)


def with_results(reproduction, change):
    """The same with every mean over trials changed, by normalisation and position."""
    return replace(
        reproduction,
        results={name: [change(name, r) for r in results] for name, results in reproduction.results.items()},
    )


def with_risks(reproduction, risk, risk_se=0.001):
    return with_results(reproduction, lambda name, r: replace(r, risk=risk(name, r), risk_se=risk_se))


def published(reproduction, r):
    experiment = reproduction.experiment
    return experiment.published[r.scenario][experiment.alphas.index(r.alpha)]


def as_published(reproduction, **others):
    """Every risk that of the paper, but for some ``{"S1": 0.01}`` further off at the second alpha."""
    second = reproduction.experiment.alphas[1]

    def risk(name, r):
        return published(reproduction, r) + (others.get(r.scenario, 0) if r.alpha == second else 0)

    return with_risks(reproduction, risk)


def all_tables(reproduction):
    return [
        published_table(reproduction),
        *rules_tables(reproduction),
        *(class_table(reproduction, name, rule) for name in NORMALISATIONS for rule in reproduction.growths),
        centroid_table(reproduction),
        weight_table(reproduction),
    ]


def column(table, title):
    """The cells under a title that occurs once."""
    [k] = [k for k, text in enumerate(table.header) if text == title]
    return [row[k] for row in table.rows]


def said(sentences):
    return "\n".join(sentences)


# tables


def test_text_pads_columns():
    table = TextTable("caption", ("name", "a", ""), [("x", "1.5", ""), ("longer", "-10", "differs")])
    assert table.text().splitlines() == [
        "name      a",
        "x       1.5",
        "longer  -10  differs",
    ]


def test_text_of_a_table_without_rows_is_its_header():
    assert TextTable("caption", ("name", "a"), []).text() == "name  a"


def test_markdown_aligns_numbers_right():
    table = TextTable("caption", ("name", "a", ""), [("x", "1.5", ""), ("", "-10", "differs")])
    assert table.markdown().splitlines() == [
        "| name | a |  |",
        "| --- | ---: | --- |",
        "| x | 1.5 |  |",
        "|  | -10 | differs |",
    ]


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="zip"):
        TextTable("caption", ("name", "a"), [("x",)]).text()


@pytest.mark.parametrize(
    ("alpha", "alphas", "text"),
    [
        (0.1, (0.1,), "0.10"),
        (0.2, (0.02, 0.2), "0.20"),
        (0.2, (0.005, 0.2), "0.200"),
        (0.005, (0.005, 0.2), "0.005"),
        (1, (1, 2), "1.00"),
        (0.25, (0.25, 0.1234), "0.2500"),
    ],
)
def test_alphas_have_the_decimals_of_the_longest(alpha, alphas, text):
    assert decimals(alpha, alphas) == text


@for_each_experiment
def test_the_published_table_has_each_cell_of_the_paper_beside_ours(name):
    reproduction = reproduced(name)
    experiment, table = reproduction.experiment, published_table(reproduction)
    assert f"Table {experiment.table}:" in table.caption
    assert "(paper rule, min_shift scores)" in table.caption
    ours = {(r.scenario, r.alpha): r for r in reproduction.results["min_shift"] if r.growth == "paper"}
    rows = iter(table.rows)
    for scenario, risks in experiment.published.items():
        for k, (alpha, risk) in enumerate(zip(experiment.alphas, risks, strict=True)):
            here = ours[scenario, alpha]
            assert next(rows) == (
                "" if k else f"{scenario} {experiment.meaning[scenario]}",
                decimals(alpha, experiment.alphas),
                f"{risk:.3f}" if experiment.table == 2 else f"{risk:.4f}",
                f"{here.risk:.4f}",
                f"{here.risk_se:.4f}",
                f"{here.risk - risk:+z.4f}",
                "differs" if abs(here.risk - risk) > 0.003 else "",
            )
    assert next(rows, None) is None


@pytest.mark.parametrize(
    ("off", "text", "mark"),
    [
        (0.0029, "+0.0029", ""),
        (-0.0029, "-0.0029", ""),
        (0.0031, "+0.0031", "differs"),
        (-0.0031, "-0.0031", "differs"),
    ],
)
def test_cells_further_off_than_the_tolerance_differ(off, text, mark):
    table = published_table(as_published(reproduced("simulated"), S3=off))
    changed = 2 * 4 + 1
    assert (column(table, "difference")[changed], column(table, "")[changed]) == (text, mark)
    assert set(column(table, "")[:changed] + column(table, "")[changed + 1 :]) == {""}


def test_one_trial_has_no_standard_error():
    reproduction = reproduced("diabetic-retinopathy", trials=1)
    assert set(column(published_table(reproduction), "s.e.")) == {"-"}
    assert {c.risk_se for c in reproduction.comparisons} == {None}


@for_each_experiment
@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_the_rules_table_has_risk_and_size_of_each_rule(name, normalisation):
    reproduction = reproduced(name)
    experiment = reproduction.experiment
    table = rules_tables(reproduction)[NORMALISATIONS.index(normalisation)]
    assert f"{normalisation} scores" in table.caption
    assert table.header == ("scenario", "alpha", "paper", "size", "adaptive", "size", "frontier", "size")
    cell = {(r.scenario, r.alpha, r.growth): r for r in reproduction.results[normalisation]}
    expected = [
        (
            f"{scenario} {experiment.meaning[scenario]}" if alpha == experiment.alphas[0] else "",
            decimals(alpha, experiment.alphas),
            *(
                text
                for rule in reproduction.growths
                for text in (
                    f"{cell[scenario, alpha, rule].risk:.4f}",
                    f"{cell[scenario, alpha, rule].size:.2f}",
                )
            ),
        )
        for scenario in experiment.scenarios
        for alpha in experiment.alphas
    ]
    assert table.rows == expected


def test_a_rules_table_of_some_results():
    reproduction = reproduced("diabetic-retinopathy")
    some = [r for r in reproduction.results["softmax"] if r.growth != "adaptive" and r.scenario == "S2"]
    table = rules_table(some[::-1], reproduction.experiment, "backwards")
    assert (table.caption, table.header) == (
        "backwards",
        ("scenario", "alpha", "frontier", "size", "paper", "size"),
    )
    assert column(table, "alpha") == ["0.20", "0.14", "0.08", "0.02"]
    assert column(table, "paper") == [f"{r.risk:.4f}" for r in some[::-1] if r.growth == "paper"]
    assert column(table, "frontier") == [f"{r.risk:.4f}" for r in some[::-1] if r.growth == "frontier"]


@for_each_experiment
@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("growth", ["paper", "frontier"])
def test_the_class_table_has_coverage_and_size_of_each_class(name, normalisation, growth):
    reproduction = reproduced(name)
    experiment, table = reproduction.experiment, class_table(reproduction, normalisation, growth)
    assert f"alpha = {experiment.class_alpha} ({growth} rule, {normalisation} scores)" in table.caption
    results = [
        r
        for scenario in experiment.scenarios
        for r in reproduction.results[normalisation]
        if (r.scenario, r.growth, r.alpha) == (scenario, growth, experiment.class_alpha)
    ]
    assert table.header == ("class", *(text for r in results for text in (r.scenario, "size")))
    assert len(results) == len(experiment.scenarios)
    for k, (label, *cells) in enumerate(table.rows):
        assert label == experiment.classes[k]
        assert cells[::2] == [f"{r.class_coverage[k]:.3f}" for r in results]
        assert cells[1::2] == [f"{r.class_size[k]:.2f}" for r in results]
    assert len(table.rows) == len(experiment.classes)


def test_a_class_without_rows_has_a_dash():
    reproduction = reproduced("diabetic-retinopathy", missing=(3,))
    table = class_table(reproduction, "softmax", "paper")
    assert table.rows[3] == ("Severe", *"------")
    assert not any("-" in row[1:] for row in table.rows[:3] + table.rows[4:])


@for_each_experiment
def test_the_centroid_table_has_every_centroid(name):
    reproduction = reproduced(name)
    experiment, table = reproduction.experiment, centroid_table(reproduction)
    assert f"mean size {experiment.centroid_size}, or" in table.caption
    found = reproduction.centroids
    assert column(table, "scenario") == [f"{c.scenario} {experiment.meaning[c.scenario]}" for c in found]
    assert column(table, "scores") == [c.normalisation for c in found]
    assert column(table, "alpha") == [f"{c.alpha:.4f}" for c in found]
    assert column(table, "size") == [f"{c.size:.2f}" for c in found]
    assert column(table, "centroid") == [f"{c.mean:.3f}" for c in found]
    assert column(table, "distance") == [f"{c.from_middle:.3f}" for c in found]


def with_coverage(reproduction, coverage):
    """The same with these shares of covered rows of each class, by scenario, where sets have equal size."""
    return replace(
        reproduction,
        centroids=[replace(c, class_coverage=coverage(c)) for c in reproduction.centroids],
    )


def test_the_weight_table_has_the_classes_of_more_than_average_weight_and_the_others():
    """Of grades with the weights 1, 1, 1, 2, 2 the last two."""
    shares = {
        ("softmax", "frontier", "S1"): (0.1, 0.2, 0.3, 0.4, 0.6),
        ("softmax", "frontier", "S2"): (0.5, 0.5, 0.8, 0.9, None),
        ("min_shift", "paper", "S2"): (None, None, None, 0.25, 0.5),
    }
    reproduction = with_coverage(
        reproduced("diabetic-retinopathy"),
        lambda c: shares.get((c.normalisation, c.growth, c.scenario), (1.0,) * 5),
    )
    table = weight_table(reproduction)
    assert table.header == ("scenario", "rule, scores", "size", "heavy", "then", "light", "then")
    name = "S2 double weight on 3, 4"
    sizes = [f"{c.size:.2f}" for c in reproduction.centroids if c.scenario == "S2"]
    assert table.rows == [
        (name, "paper, min_shift", sizes[0], "1.000", "0.375", "1.000", "-"),
        (name, "paper, softmax", sizes[1], "1.000", "1.000", "1.000", "1.000"),
        (name, "frontier, softmax", sizes[2], "0.500", "0.900", "0.200", "0.600"),
    ]


@pytest.mark.parametrize(
    ("name", "scenario", "favoured"),
    [
        ("simulated", "S2", range(5, 10)),
        ("simulated", "S3", range(5, 10)),
        ("utkface", "S2", range(4)),
        ("utkface", "S3", range(16, 20)),
    ],
)
def test_the_favoured_classes_of_each_experiment(name, scenario, favoured):
    reproduction = reproduced(name)
    K = len(reproduction.experiment.classes)
    marked = with_coverage(reproduction, lambda c: tuple(float(k in favoured) for k in range(K)))
    rows = [row[3:] for row in weight_table(marked).rows if row[0].startswith(scenario)]
    assert rows == [("1.000", "1.000", "0.000", "0.000")] * 3


def widest(reproduction):
    """With the most digits that any number can have: full sets, risks of one."""
    K = len(reproduction.experiment.classes)
    changed = with_results(
        reproduction,
        lambda name, r: replace(
            r, risk=1.0, risk_se=0.5, size=K, class_coverage=(1.0,) * K, class_size=(K,) * K
        ),
    )
    centroids = [replace(c, alpha=0.5, size=K, mean=K - 1, from_middle=K / 2) for c in reproduction.centroids]
    return replace(changed, centroids=centroids)


@for_each_experiment
def test_text_fits_80_columns(name):
    reproduction = reproduced(name)
    full = widest(reproduction)
    assert f"  {len(reproduction.experiment.classes):.2f}" in rules_tables(full)[0].text()
    for table in [*all_tables(reproduction), *all_tables(full)]:
        lines = table.text().splitlines()
        assert max(map(len, lines)) <= 80, table.caption
        assert len(lines) == 1 + len(table.rows)
        assert not any(line.endswith(" ") for line in lines)


# the numbers themselves


def test_results_are_means_over_controllers_on_random_halves():
    reproduction = reproduced("diabetic-retinopathy")
    experiment, scores = reproduction.experiment, reproduction.scores
    for name in NORMALISATIONS:
        proba = scores.proba(name)
        for growth in reproduction.growths:
            for scenario, loss in experiment.scenarios.items():
                found = []
                for trial in range(TRIALS):
                    calibration, test = halves(N_ROWS, trial, seed=4)
                    controller = RiskController(loss, 0.08, growth, check=False)
                    controller.calibrate(proba[calibration], scores.y[calibration])
                    sets = controller.predict_set(proba[test])
                    found.append([metrics.risk(scores.y[test], sets, loss), metrics.mean_size(sets)])
                [result] = [
                    r
                    for r in reproduction.results[name]
                    if (r.scenario, r.growth, r.alpha) == (scenario, growth, 0.08)
                ]
                assert [result.risk, result.size] == pytest.approx(np.mean(found, axis=0))
                errors = np.std(found, axis=0, ddof=1) / TRIALS**0.5
                assert [result.risk_se, result.size_se] == pytest.approx(errors)


def test_realised_risks_are_those_of_the_released_scores_and_the_first_rule():
    reproduction = reproduced("diabetic-retinopathy", growths=("frontier", "paper"))
    scores, proba = reproduction.scores, reproduction.scores.proba("min_shift")
    assert [r.scenario for r in reproduction.realised] == list(reproduction.experiment.scenarios)
    for realised in reproduction.realised:
        assert realised.alpha == reproduction.experiment.histogram_alphas[realised.scenario]
        loss = reproduction.experiment.scenarios[realised.scenario]
        risks = []
        for trial in range(TRIALS):
            calibration, test = halves(N_ROWS, trial, seed=4)
            controller = RiskController(loss, realised.alpha, "frontier", check=False)
            controller.calibrate(proba[calibration], scores.y[calibration])
            risks.append(metrics.risk(scores.y[test], controller.predict_set(proba[test]), loss))
        assert realised.risks == pytest.approx(tuple(risks))


@for_each_experiment
@UNCHECKED
def test_centroids_are_those_of_sets_at_the_mean_size(name):
    reproduction = reproduced(name)
    experiment, scores = reproduction.experiment, reproduction.scores
    K = len(experiment.classes)
    ways = [("min_shift", "paper"), ("softmax", "paper"), ("softmax", "frontier")]
    assert [(c.normalisation, c.growth, c.scenario) for c in reproduction.centroids] == [
        (*way, scenario) for way in ways for scenario in experiment.scenarios
    ]
    for c in reproduction.centroids:
        proba, found, coverage = scores.proba(c.normalisation), [], []
        for trial in range(TRIALS):
            calibration, test = halves(N_ROWS, trial, seed=4)
            controller = RiskController(experiment.scenarios[c.scenario], growth=c.growth)
            controller.calibrate(proba[calibration], scores.y[calibration])
            alpha = alpha_for_size(controller, proba[test], experiment.centroid_size)
            sets = controller.predict_set(proba[test], alpha=alpha)
            distance = np.abs(sets.centroid - (K - 1) / 2)
            found.append([float(alpha), sets.size.mean(), sets.centroid.mean(), distance.mean()])
            coverage.append(metrics.class_coverage(scores.y[test], sets))
        assert [c.alpha, c.size, c.mean, c.from_middle] == pytest.approx(np.mean(found, axis=0))
        assert c.class_coverage == pytest.approx(tuple(np.mean(coverage, axis=0)))
        assert c.size <= experiment.centroid_size
        assert len(c.shares) == 2 * K - 1
        assert sum(c.shares) == pytest.approx(1)
        assert c.shares @ (np.arange(2 * K - 1) / 2) == pytest.approx(c.mean)


def test_the_published_numbers_are_compared_with_the_first_rule():
    reproduction = reproduced("diabetic-retinopathy", growths=("frontier", "paper"))
    for normalisation in NORMALISATIONS:
        first = [r for r in reproduction.results[normalisation] if r.growth == "frontier"]
        compared = reproduction.compared(normalisation)
        assert [(c.scenario, c.alpha, c.risk, c.risk_se) for c in compared] == [
            (r.scenario, r.alpha, r.risk, r.risk_se) for r in first
        ]
        assert [c.published for c in compared] == [published(reproduction, r) for r in first]
    assert reproduction.comparisons == reproduction.compared("min_shift")
    assert "(frontier rule, min_shift scores)" in published_table(reproduction).caption


def test_scores_of_another_number_of_classes_are_refused():
    message = "simulated has 10 classes; got scores in made-up.csv with 7"
    with pytest.raises(ValueError, match=message):
        reproduce(simulated.EXPERIMENT, made_up_scores(7))


@pytest.mark.parametrize("n_rows", [1, 3])
def test_two_halves_need_rows(n_rows):
    with pytest.raises(ValueError, match=f"at least 4 rows; got scores in made-up.csv with {n_rows}"):
        reproduce(simulated.EXPERIMENT, made_up_scores(10, n_rows))


def test_progress_is_told_in_full():
    """As many items as announced, each time."""
    told = []

    def track(items, total, description):
        items = list(items)
        told.append((description, total, len(items)))
        return items

    tracked = reproduce(
        diabetic_retinopathy.EXPERIMENT,
        reproduced("diabetic-retinopathy").scores,
        trials=TRIALS,
        seed=4,
        track=track,
    )
    assert all(total == seen for _, total, seen in told)
    assert all(text.startswith("Diabetic retinopathy: ") for text, _, _ in told)
    assert tracked.to_dict() == reproduced("diabetic-retinopathy").to_dict()


# remarks


@for_each_experiment
def test_agreement_counts_cells(name):
    reproduction = reproduced(name)
    n_cells = sum(map(len, reproduction.experiment.published.values()))
    second = reproduction.experiment.alphas[1]
    assert remarks.agreement(as_published(reproduction)).startswith(f"{n_cells} of {n_cells} cells")
    near = remarks.agreement(as_published(reproduction, S1=0.001, S2=-0.0029))
    assert near.startswith(f"{n_cells} of {n_cells} cells are within 0.003 ")
    assert f"-0.0029 (S2 at alpha = {second})" in near
    far = remarks.agreement(as_published(reproduction, S1=0.0125, S2=-0.02, S3=0.002))
    assert far.startswith(f"{n_cells - 2} of {n_cells} cells")
    assert f"-0.0200 (S2 at alpha = {second})" in far


def saturating_at(reproduction, limit):
    """With this divergence risk at the largest alpha."""
    experiment = reproduction.experiment
    last = (experiment.divergence, max(experiment.alphas), "min_shift")
    return with_results(
        reproduction,
        lambda name, r: (
            replace(r, risk=limit, risk_se=None, size=1.0) if (r.scenario, r.alpha, name) == last else r
        ),
    )


def test_nothing_saturates_while_sets_are_larger_than_one():
    for name in EXPERIMENTS:
        larger = with_results(reproduced(name, from_authors=True), lambda _, r: replace(r, size=1.01))
        assert "saturates" not in said(remarks.differences(larger))


def trained_here(reproduction):
    return replace(reproduction, scores=replace(reproduction.scores, trained_here=True))


@pytest.mark.parametrize("limit", [0.0612, 0.0309])
@pytest.mark.parametrize("from_authors", [False, True])
def test_where_divergence_saturates_in_simulated_data(limit, from_authors):
    reproduction = saturating_at(reproduced("simulated", from_authors=from_authors), limit)
    text = said(remarks.differences(reproduction if from_authors else trained_here(reproduction)))
    assert f"{limit:.4f}" in text
    assert "0.0463" in text
    assert ("released file has 400" in text) == from_authors
    assert ("covariance" in text) != from_authors


def test_scores_of_others_are_not_explained_by_what_was_done_here():
    text = said(remarks.differences(saturating_at(reproduced("simulated"), 0.05)))
    assert "covariance" not in text
    assert "released" not in text


def test_the_layout_of_the_authors_does_not_make_their_scores():
    """It takes as many rows as well."""
    theirs = reproduced("diabetic-retinopathy", from_authors=True)
    assert theirs.source == "the authors' scores in diabetic-retinopathy.csv"
    others = replace(theirs, experiment=replace(theirs.experiment, released_rows=N_ROWS + 1))
    assert others.source == "scores in diabetic-retinopathy.csv"
    assert "released file" not in said(remarks.differences(others))


def test_faces_are_told_by_accuracy_and_saturation():
    reproduction = saturating_at(reproduced("utkface"), 0.0423)
    text = said(remarks.differences(reproduction))
    scores = reproduction.scores
    assert f"{scores.accuracy:.3f}" in text
    assert f"{scores.mean_absolute_error:.2f} groups" in text
    for number in ("0.016", "0.30 groups", "1.5 years", "0.0423", "0.80 groups"):
        assert number in text
    [s3] = [c for c in reproduction.comparisons if (c.scenario, c.alpha) == ("S3", 0.2)]
    assert "0.169" in text
    assert f"{s3.risk:.4f}" in text


def test_faces_that_are_recognised_as_well_as_in_the_paper_cast_no_doubt_on_it():
    text = said(remarks.differences(saturating_at(reproduced("utkface"), 0.0161)))
    assert "We know of no model" not in text


def test_other_scores_of_retinas_are_told_by_their_errors():
    reproduction = reproduced("diabetic-retinopathy")
    text = said(remarks.differences(reproduction))
    scores = reproduction.scores
    assert f"400 rows, accuracy {scores.accuracy:.3f}" in text
    assert f"{scores.mean_absolute_error:.2f} grades" in text
    assert "19,000" not in text


def test_the_scores_of_the_authors_need_their_normalisation():
    """The largest difference under each normalisation, by its size and not its sign; two eyes a patient."""
    reproduction = reproduced("diabetic-retinopathy", from_authors=True)
    off = {("min_shift", "S1"): 0.0011, ("min_shift", "S2"): -0.0017, ("softmax", "S3"): -0.0432}

    def risk(name, r):
        return published(reproduction, r) + (off.get((name, r.scenario), 0) if r.growth == "paper" else 0.3)

    text = said(remarks.differences(with_risks(reproduction, risk)))
    assert re.search(r"min_shift.* 0\.0017 .*softmax.* 0\.0432", text)
    assert "19,000" in text
    assert "has 400, of 200 patients" in text


@for_each_experiment
def test_means_above_alpha_are_counted(name):
    reproduction = reproduced(name)
    below = with_risks(reproduction, lambda name, r: r.alpha * 0.9)
    assert "above" not in said(remarks.differences(below))
    experiment = reproduction.experiment
    some = {("S1", "paper"): 0.002, ("S2", "frontier"): 0.0034}

    def risk(name, r):
        return r.alpha + (some.get((r.scenario, r.growth), -0.001) if name == "softmax" else -0.001)

    text = said(remarks.differences(with_risks(reproduction, risk, risk_se=0.002)))
    n_cells = 2 * len(experiment.scenarios) * 3 * len(experiment.alphas)
    assert f"Of {n_cells} mean risks {2 * len(experiment.alphas)} lie above alpha" in text
    assert "at most 1.7 standard errors" in text


def with_sizes(reproduction, sizes):
    """Two labels everywhere, but for some sizes by normalisation, rule, scenario and alpha."""
    return with_results(
        reproduction,
        lambda name, r: replace(r, size=sizes.get((name, r.growth, r.scenario, r.alpha), 2.0)),
    )


@for_each_experiment
def test_frontier_is_praised_where_it_is_smaller_and_only_there(name):
    reproduction = reproduced(name)
    alpha, other = reproduction.experiment.alphas[1:3]
    changed = with_sizes(
        reproduction,
        {
            ("min_shift", "paper", "S2", alpha): 4.25,
            ("min_shift", "frontier", "S2", alpha): 3.75,
            ("min_shift", "paper", "S1", alpha): 2.4,
            ("min_shift", "frontier", "S3", other): 2.04,
            ("softmax", "frontier", "S3", other): 2.06,
            ("softmax", "frontier", "S1", alpha): 1.5,
            ("softmax", "adaptive", "S1", alpha): 1.0,
        },
    )
    [released, softmax] = [s for s in remarks.findings(changed) if "frontier needs" in s]
    assert re.search(rf"min_shift.* 3\.75 .* 4\.25 \(S2 at alpha = {alpha}\)", released)
    assert "nowhere more than 0.05 labels above it" in released
    assert re.search(rf"softmax.* 1\.50 .* 2\.00 \(S1 at alpha = {alpha}\)", softmax)
    assert re.search(rf"but 2\.06 .* 2\.00 \(S3 at alpha = {other}\)", softmax)


def test_rules_that_were_not_run_are_not_compared():
    reproduction = reproduced("diabetic-retinopathy", growths=("adaptive", "frontier"))
    assert "needs" not in said(remarks.findings(reproduction))


@for_each_experiment
def test_centroids_are_told_by_scenario_and_normalisation(name):
    """Each centroid has numbers of its own: the sentence of a normalisation must have the right ones."""
    reproduction = reproduced(name)
    experiment = reproduction.experiment
    scenarios = list(experiment.scenarios)

    def marked(c):
        k = 10 * NORMALISATIONS.index(c.normalisation) + scenarios.index(c.scenario)
        k += 0 if c.growth == reproduction.growths[0] else 50
        return replace(c, mean=1 + k / 100, from_middle=3 + k / 100)

    changed = replace(reproduction, centroids=[marked(c) for c in reproduction.centroids])
    sentences = [s for s in remarks.findings(changed) if "centred" in s]
    assert len(sentences) == 2
    for i, sentence in enumerate(sentences):
        last = len(scenarios) - 1
        assert f"with {NORMALISATIONS[i]} scores" in sentence
        assert f"mean size {experiment.centroid_size} " in sentence
        assert re.search(rf"3\.{i}0 .*equal weights.* 3\.{i}{last} .*divergence", sentence)
        assert f"from 1.{i}0 to 1.{i}1 (S2, {experiment.meaning['S2']})" in sentence
        assert (f"1.{i}2 (S3, {experiment.meaning['S3']})" in sentence) == (last > 2)


@for_each_experiment
def test_weights_move_sets_towards_the_heavier_classes(name):
    """Of a model that errs evenly: the direction that the scenarios are made for."""
    reproduction = reproduced(name)
    for normalisation in NORMALISATIONS:
        mean = {
            c.scenario: c.mean for c in reversed(reproduction.centroids) if c.normalisation == normalisation
        }
        if name == "utkface":
            assert mean["S2"] < mean["S1"] < mean["S3"]
        else:
            assert mean["S1"] < mean["S2"]


def test_classes_of_least_and_most_coverage_are_named():
    reproduction = reproduced("diabetic-retinopathy")
    wanted = {
        "S1": (0.9, None, 0.7, 1.0, 0.8),
        "S2": (0.55, 0.6, 0.7, 0.8, 0.9),
        "S3": (1.0, 0.5, None, 0.6, 0.7),
    }

    def change(name, r):
        at = (name, r.growth, r.alpha) == ("softmax", "frontier", reproduction.experiment.class_alpha)
        return replace(r, class_coverage=wanted[r.scenario] if at else (0.1, 0.2, 0.3, 0.4, 0.45))

    text = remarks.class_spread(with_results(reproduction, change))
    assert "alpha = 0.02 (frontier rule, softmax scores)" in text
    assert "S1 from 0.70 (Moderate) to 1.00 (Severe)" in text
    assert "S2 from 0.55 (No DR) to 0.90 (Proliferative)" in text
    assert "S3 from 0.50 (Mild) to 1.00 (No DR)" in text


@for_each_experiment
def test_remarks_are_sentences_without_holes(name):
    """Also after one trial, with a class without rows and with one growth rule."""
    for reproduction in (
        reproduced(name),
        reproduced(name, trials=1, missing=(1,), growths=("rps",)),
        reproduced(name, from_authors=True),
    ):
        sentences = [
            remarks.agreement(reproduction),
            *remarks.differences(reproduction),
            *remarks.findings(reproduction),
            remarks.class_spread(reproduction),
        ]
        for sentence in sentences:
            assert sentence.endswith(".")
            assert "  " not in sentence
            assert not re.search(r"\b(nan|None|inf)\b|[{}]", sentence), sentence


# the page


def sections(text):
    return re.split(r"(?m)^## ", text)[1:]


@pytest.fixture(scope="module")
def everything():
    return [reproduced(name) for name in EXPERIMENTS]


@pytest.fixture(scope="module")
def pictures(everything):
    return {
        r.scores.key: [(name, f"figures/{r.scores.key}-{name}.png") for name in PICTURES] for r in everything
    }


def test_every_picture_is_on_the_page_once_and_in_its_section(everything, pictures):
    text = page(everything, pictures, "command")
    for reproduction, section in zip(everything, sections(text), strict=True):
        shown = re.findall(r"(?m)^!\[([^]]+)\]\(([^)]+)\)$", section)
        assert sorted(path for _, path in shown) == sorted(
            path for _, path in pictures[reproduction.scores.key]
        )
        assert len({caption for caption, _ in shown}) == len(PICTURES)


def test_pictures_that_were_not_drawn_are_not_shown(everything):
    assert "![" not in page(everything, {}, "command")
    some = {"utkface": [("risks", "figures/a.png")], "another": [("risks", "figures/b.png")]}
    assert re.findall(r"!\[[^]]+\]\(([^)]+)\)", page(everything, some, "command")) == ["figures/a.png"]


def test_every_table_and_remark_is_in_its_section(everything, pictures):
    text = page(everything, pictures, "command")
    for r, section in zip(everything, sections(text), strict=True):
        assert section.startswith(f"{r.experiment.title}: {r.scores.source}\n")
        tables = [
            published_table(r),
            *rules_tables(r),
            class_table(r, "min_shift", "paper"),
            *(class_table(r, "softmax", growth) for growth in ("paper", "adaptive", "frontier")),
            centroid_table(r),
            weight_table(r),
        ]
        for table in tables:
            assert f"{table.caption}:\n\n{table.markdown()}\n\n" in section
        assert f"\n{remarks.agreement(r)}\n" in section
        for sentence in [*remarks.differences(r), *remarks.findings(r)]:
            assert f"\n- {sentence}\n" in section
        assert remarks.class_spread(r) in section
        assert f"{r.scores.accuracy:.3f}" in section
        assert f"{r.scores.mean_absolute_error:.3f}" in section


def test_the_summary_has_a_line_for_each_reproduction(everything):
    changed = [as_published(everything[0], S1=-0.0321), *everything[1:]]
    beginning = page(changed, {}, "command").split("\n## ")[0]
    for r in changed:
        assert f"{r.experiment.title}, Table {r.experiment.table} | {r.scores.source} | 400 |" in beginning
    assert "| 400 | 15 of 16 | -0.0321 |" in beginning


def test_the_page_says_how_it_is_made(everything):
    text = page(everything, {}, "python -m reproduction all --trials 3 {braces}")
    assert "\n    python -m reproduction all --trials 3 {braces}\n" in text
    assert f"{TRIALS} such random" in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n\n")


def test_tables_of_the_page_have_equal_columns_in_each_row(everything, pictures):
    text = page(everything, pictures, "command")
    blocks = re.findall(r"(?m)(?:^\|.*\n)+", text)
    assert len(blocks) == 1 + 9 * len(everything)
    for block in blocks:
        lines = block.splitlines()
        assert len({line.count("|") for line in lines}) == 1
        assert re.fullmatch(r"\|( ---:? \|)+", lines[1])
    for before in re.findall(r"(?m)^(.*)\n\|", text):
        assert before == "" or before.startswith("|")


def test_the_page_has_no_absolute_path(everything, pictures):
    text = page(everything, pictures, "python -m reproduction all --scores simulated.csv")
    assert not re.search(r"(?:^|[\s(\"'`=])/\w", text)
    assert not re.search(r"\b[A-Za-z]:\\|\bfile://", text)


# JSON


@for_each_experiment
@pytest.mark.parametrize(
    "options", [{}, {"trials": 1}, {"missing": (0, 3)}], ids=["usual", "one trial", "classes without rows"]
)
def test_json_has_everything_and_no_nan(name, options):
    reproduction = reproduced(name, **options)
    experiment, scores = reproduction.experiment, reproduction.scores
    read = json.loads(json.dumps(reproduction.to_dict(), allow_nan=False))
    assert read["experiment"] == name
    assert read["source"] == scores.source
    assert (read["rows"], read["trials"], read["seed"]) == (400, reproduction.trials, 4)
    assert (read["accuracy"], read["mean_absolute_error"]) == (scores.accuracy, scores.mean_absolute_error)
    assert read["classes"] == list(experiment.classes)
    losses = {name: loss.to_dict() for name, loss in experiment.scenarios.items()}
    assert read["scenarios"] == json.loads(json.dumps(losses))
    for normalisation in NORMALISATIONS:
        results = [listless(TrialMeans, fields) for fields in read["results"][normalisation]]
        assert results == reproduction.results[normalisation]
        assert [(r.scenario, r.growth, r.alpha) for r in results] == [
            (scenario, growth, alpha)
            for scenario in experiment.scenarios
            for growth in ("paper", "adaptive", "frontier")
            for alpha in experiment.alphas
        ]
        for point, curve in zip(
            read["curves"][normalisation], reproduction.curves[normalisation], strict=True
        ):
            assert point.items() <= asdict(curve).items()
            assert {"scenario", "growth", "alpha", "risk", "size"} <= point.keys()
        assert len(read["curves"][normalisation]) == len(experiment.scenarios) * 3 * 40
    assert [listless(RealisedRisks, fields) for fields in read["realised"]] == reproduction.realised
    assert {len(r["risks"]) for r in read["realised"]} == {reproduction.trials}
    assert [listless(Centroids, fields) for fields in read["centroids"]] == reproduction.centroids


def listless(kind, values):
    """The dataclass, its lists tuples again."""
    assert values.keys() == {field.name for field in fields(kind)}
    return kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})


@for_each_experiment
def test_json_has_the_published_table(name):
    reproduction = reproduced(name)
    table = published_table(reproduction)
    cells = reproduction.to_dict()["published"]
    assert [c["published"] for c in cells] == [float(text) for text in column(table, "published")]
    assert [f"{c['risk']:.4f}" for c in cells] == column(table, "here")
    assert [f"{c['difference']:+z.4f}" for c in cells] == column(table, "difference")
    assert ["" if c["agrees"] else "differs" for c in cells] == column(table, "")


def test_a_class_without_rows_is_null():
    reproduction = reproduced("utkface", missing=(0, 3))
    for r in reproduction.to_dict()["results"]["softmax"]:
        assert [k for k, share in enumerate(r["class_coverage"]) if share is None] == [0, 3]
        assert [k for k, size in enumerate(r["class_size"]) if size is None] == [0, 3]


def test_a_hopeless_model_has_larger_sets_at_equal_size():
    """No alpha below the largest loss brings them down; the run goes on and shows the size there is."""
    n_rows, experiment = 500, EXPERIMENTS["diabetic-retinopathy"]
    logits = np.tile([4.0, 3.0, 2.0, 1.0, 0.0], (n_rows, 1))
    scores = Scores(["row"] * n_rows, np.full(n_rows, 4), logits, "hopeless", "made up")
    reproduction = reproduce(experiment, scores, trials=1, growths=["paper"])
    sizes = [c.size for c in reproduction.centroids if c.scenario == "S1"]
    assert sizes
    assert min(sizes) > experiment.centroid_size
