"""The pictures show the numbers: every drawn artist is compared with what it was made from."""

import errno
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure
from matplotlib.text import Text

from reproduction import diabetic_retinopathy, figures, simulated, utkface
from reproduction import experiment_figures as drawn
from reproduction.protocol import TrialMeans, means_over_trials, run_trials
from reproduction.rule_figures import demo_pictures
from reproduction.run import Centroids, RealisedRisks, Reproduction
from reproduction.scores import Scores

EXPERIMENTS = {e.name: e for e in (m.EXPERIMENT for m in (simulated, utkface, diabetic_retinopathy))}
GROWTHS = ("paper", "adaptive", "frontier")
NORMALISATIONS = ("min_shift", "softmax")
CURVE_ALPHAS = (0.005, 0.05, 0.1, 0.2)
NAMES = ["sizes", "risks", "centroids", "classes"]


def a_summary(rng, scenario, growth, alpha, n_classes):
    return TrialMeans(
        scenario,
        growth,
        alpha,
        trials=7,
        risk=alpha,
        risk_se=0.001,
        size=1 + rng.random() * n_classes / 3,
        size_se=0.01,
        class_coverage=tuple(rng.uniform(0.6, 1, n_classes)),
        class_size=tuple(rng.uniform(1, n_classes / 2, n_classes)),
    )


def made_up(experiment, trials=40):
    """A reproduction of any numbers, each different from the others."""
    rng = np.random.default_rng(0)
    n_classes = len(experiment.classes)

    def summaries(alphas):
        return {
            name: [
                a_summary(rng, s, g, a, n_classes)
                for s in experiment.scenarios
                for g in GROWTHS
                for a in alphas
            ]
            for name in NORMALISATIONS
        }

    centroids = []
    for normalisation in NORMALISATIONS:
        for scenario in experiment.scenarios:
            shares = rng.dirichlet(np.ones(2 * n_classes - 1))
            centre = np.arange(2 * n_classes - 1) / 2
            from_middle = shares @ abs(centre - (n_classes - 1) / 2)
            centroids.append(
                Centroids(
                    scenario,
                    normalisation,
                    GROWTHS[0],
                    0.1,
                    3.0,
                    shares @ centre,
                    from_middle,
                    tuple(shares),
                    tuple(shares[:n_classes]),
                )
            )
    return Reproduction(
        experiment,
        Scores(["row"], np.array([0]), np.zeros((1, n_classes)), key="made-up", source="made-up scores"),
        GROWTHS,
        trials,
        seed=0,
        results=summaries(experiment.alphas),
        curves=summaries(CURVE_ALPHAS),
        realised=[
            RealisedRisks(scenario, alpha, tuple(alpha * rng.normal(1, 0.05, trials)))
            for scenario, alpha in experiment.histogram_alphas.items()
        ],
        centroids=centroids,
    )


def some_examples(n=5):
    row, column = np.mgrid[:28, :28]
    images = np.stack([np.dstack([9 * row, 9 * column, row + column + i]) for i in range(n)]).astype(np.uint8)
    groups = utkface.EXPERIMENT.classes
    return drawn.Examples(
        images,
        [f"age {5 * i + 3}" for i in range(n)],
        [f"group {i} ({groups[i]})" for i in range(n)],
        [f"{groups[i]} .. {groups[i + 2]}" for i in range(n)],
        [i == 1 for i in range(n)],
        "alpha = 0.1",
    )


@pytest.fixture(params=EXPERIMENTS)
def reproduction(request):
    return made_up(EXPERIMENTS[request.param])


def data_of(line):
    x, y = line.get_data()
    return list(x), list(y)


def test_pictures_come_one_by_one_with_their_names():
    reproduction = made_up(diabetic_retinopathy.EXPERIMENT)
    pictures = drawn.pictures(reproduction, None)
    assert next(pictures)[0] == "sizes"
    assert [name for name, _ in pictures] == NAMES[1:]
    assert [name for name, _ in drawn.pictures(reproduction, some_examples())] == [*NAMES, "examples"]


def test_sizes_are_those_of_every_rule_and_scenario(reproduction):
    experiment = reproduction.experiment
    figure = drawn.sizes_figure(reproduction)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        f"{name}: {words}" for name, words in experiment.meaning.items()
    ]
    shown = [("softmax", growth) for growth in GROWTHS] + [("min_shift", "paper")]
    for axes, scenario in zip(figure.axes, experiment.scenarios, strict=True):
        assert len(axes.lines) == 2 * len(shown)
        for normalisation, growth in shown:
            for source, of_marks in ((reproduction.curves, False), (reproduction.results, True)):
                chosen = [r for r in source[normalisation] if (r.scenario, r.growth) == (scenario, growth)]
                x, y = [r.alpha for r in chosen], [r.size for r in chosen]
                [line] = [line for line in axes.lines if data_of(line) == (x, y)]
                assert (line.get_marker() in ("", "None")) != of_marks
                assert of_marks or (line.get_linestyle() == ":") == (normalisation == "min_shift")
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [*(f"{rule} rule" for rule in GROWTHS), "paper rule, released normalisation"]


@pytest.mark.parametrize(
    ("sizes", "headline"),
    [
        ([(4, 1), (2, 2)], "Sets are up to 75% smaller by the frontier rule than by the paper rule"),
        (
            [(4, 1), (2, 3)],
            "Sets are from 50% larger to 75% smaller by the frontier rule than by the paper rule",
        ),
        ([(2, 2), (2, 3)], "Mean set size at each alpha"),
    ],
)
def test_size_headline_follows_from_the_sizes(sizes, headline):
    rng = np.random.default_rng(0)
    results = [
        replace(a_summary(rng, "S1", growth, alpha, 10), size=size)
        for alpha, pair in zip((0.1, 0.2), sizes, strict=True)
        for growth, size in zip(("paper", "frontier"), pair, strict=True)
    ]
    figure = figures.size_figure(results, results, {"S1": "equal weights"})
    assert figure.get_suptitle() == headline


@pytest.mark.parametrize("trials", [1, 2, 4, 100])
def test_risks_count_every_trial_beside_alpha_and_their_mean(trials):
    reproduction = made_up(simulated.EXPERIMENT, trials)
    figure = drawn.risks_figure(reproduction)
    for axes, realised in zip(figure.axes, reproduction.realised, strict=True):
        assert sum(bar.get_height() for bar in axes.patches) == trials
        for bar in axes.patches:
            low, high = bar.get_x(), bar.get_x() + bar.get_width()
            inside = sum(low <= risk < high for risk in realised.risks)
            assert abs(inside - bar.get_height()) <= 1  # the last bin holds its upper edge as well
        alpha, mean = axes.lines
        assert list(alpha.get_xdata()) == [realised.alpha] * 2
        assert (alpha.get_linestyle(), alpha.get_color()) == ("--", figures.ORANGE)
        assert data_of(mean) == ([np.mean(realised.risks)], [0])
        text = axes.get_title(loc="left")
        assert f"alpha {realised.alpha:g}, mean {np.mean(realised.risks):.4f}" in text
        low, high = axes.get_xlim()
        assert low < min(*realised.risks, realised.alpha) <= max(*realised.risks, realised.alpha) < high


@pytest.mark.parametrize(
    ("risks", "headline"),
    [
        ((0.1, 0.1), "Mean risk over 2 random halves is at most alpha in each scenario"),
        ((0.1, 0.103), "Mean risk over 2 random halves exceeds alpha by 0.0015 at most"),
        ((0.1, 0.10001), "Mean risk over 2 random halves exceeds alpha by less than 0.0001"),
        ((0.12,), "Risk on one random half exceeds alpha by 0.0200 at most"),
    ],
)
def test_risk_headline_follows_from_the_risks(risks, headline):
    realised = [RealisedRisks("S1", 0.1, risks), RealisedRisks("S4", 0.02, (0.01,) * len(risks))]
    figure = drawn.risks_figure(replace(made_up(simulated.EXPERIMENT), realised=realised))
    assert figure.get_suptitle() == headline


def test_centroids_are_shares_by_label_and_means(reproduction):
    experiment = reproduction.experiment
    figure = drawn.centroids_figure(reproduction)
    label = np.arange(len(experiment.classes))
    for normalisation, upper, lower in zip(NORMALISATIONS, figure.axes[:2], figure.axes[2:], strict=True):
        found = [c for c in reproduction.centroids if c.normalisation == normalisation]
        lines, marks = upper.lines, [line for line in lower.lines if line.get_marker() not in ("", "None")]
        for row, (centroids, line, mark) in enumerate(zip(found, lines, marks, strict=True)):
            assert data_of(line) == (list(label), list(drawn.whole_label_shares(centroids.shares)))
            assert data_of(mark) == ([centroids.mean], [row])
            assert lower.texts[row].get_text() == (
                f"{centroids.mean:.2f}, {centroids.from_middle:.2f} from the middle"
            )
    assert [text.get_text() for text in figure.axes[2].get_yticklabels()] == list(experiment.scenarios)


@pytest.mark.parametrize("n_classes", [2, 5, 20])
def test_gathering_half_centres_keeps_total_and_mean(n_classes):
    shares = np.random.default_rng(n_classes).dirichlet(np.ones(2 * n_classes - 1))
    gathered = drawn.whole_label_shares(tuple(shares))
    assert gathered.sum() == pytest.approx(1)
    mean = shares @ np.arange(2 * n_classes - 1) / 2
    assert gathered @ np.arange(n_classes) == pytest.approx(mean)


@pytest.mark.parametrize(
    ("means", "from_middle", "headline"),
    [
        ((4.5, 6.5, 4.4), (2, 2, 1.5), "S2 moves sets 2.00 labels up and S4 0.50 labels inwards (left)"),
        ((4.5, 4.4, 1.5), (2, 2.5, 3), "S4 moves sets 3.00 labels down (left)"),
        ((4.5, 4.5, 4.5), (2, 2, 1), "S4 moves sets 1.00 labels inwards (left)"),
        ((4.5, 4.5, 4.5), (2, 2, 2), "Where the sets lie on the scale"),
    ],
)
def test_centroid_headline_follows_from_the_means(means, from_middle, headline):
    reproduction = made_up(simulated.EXPERIMENT)
    scenarios = zip(("S1", "S2", "S4"), means, from_middle, strict=True)
    moved = [
        replace(
            next(c for c in reproduction.centroids if c.scenario == name), mean=mean, from_middle=distance
        )
        for name, mean, distance in scenarios
    ]
    softmax = [c for c in reproduction.centroids if c.normalisation == "softmax"]
    figure = drawn.centroids_figure(replace(reproduction, centroids=[*moved, *softmax]))
    assert figure.get_suptitle().removeprefix("Compared with S1, ") == headline


def test_classes_have_their_coverage_and_size_and_gaps_without_rows(reproduction):
    experiment = reproduction.experiment
    gone = 1
    without_rows = {
        name: [
            replace(
                result,
                class_coverage=(result.class_coverage[0], None, *result.class_coverage[2:]),
                class_size=(result.class_size[0], None, *result.class_size[2:]),
            )
            for result in results
        ]
        for name, results in reproduction.results.items()
    }
    reproduction = replace(reproduction, results=without_rows)
    figure = drawn.classes_figure(reproduction)
    ways = [("min_shift", "paper"), ("softmax", "frontier")]
    for way, upper, lower in zip(ways, figure.axes[:2], figure.axes[2:], strict=True):
        results = reproduction.class_results(*way)
        assert [r.scenario for r in results] == list(experiment.scenarios)
        for result, coverage, size in zip(results, upper.lines, lower.lines, strict=True):
            for line, values in ((coverage, result.class_coverage), (size, result.class_size)):
                y = line.get_ydata()
                assert np.flatnonzero(np.isnan(y)).tolist() == [gone]
                assert np.delete(y, gone).tolist() == [v for v in values if v is not None]
    known = [c for c in reproduction.class_results(*ways[0])[0].class_coverage if c is not None]
    assert f"under S1: {min(known):.0%} to {max(known):.0%} (left)" in figure.get_suptitle()


def test_a_scenario_looks_the_same_everywhere_and_unlike_the_others():
    looks = {}
    for name, experiment in EXPERIMENTS.items():
        reproduction = made_up(experiment)
        for figure in (drawn.centroids_figure(reproduction), drawn.classes_figure(reproduction)):
            for axes in figure.axes[:2]:
                shown = [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in axes.lines]
                assert looks.setdefault(name, shown) == shown
        for look in zip(*looks[name], strict=True):
            assert len(set(look)) == len(experiment.scenarios)
    assert len({shown[0] for shown in looks.values()}) == 1  # equal weights
    assert len({shown[-1] for shown in looks.values()}) == 1  # the divergence loss, S3 or S4


def test_examples_show_images_captions_and_misses():
    examples = some_examples(8)
    figure = drawn.examples_figure(examples, "where they come from")
    shown = [axes for axes in figure.axes if axes.images]
    for i, axes in enumerate(shown):
        np.testing.assert_array_equal(axes.images[0].get_array(), examples.images[i])
        caption = axes.get_xlabel().replace("\n", " ")
        expected = f"{examples.captions[i]} {examples.truths[i]} set: {examples.intervals[i]}"
        assert caption == expected + (" a miss" if examples.missed[i] else "")
        assert axes.spines["left"].get_visible() == examples.missed[i]
    assert len(shown) == 8
    assert figure.get_suptitle() == "Intervals cover the truth in 7 of 8 examples"
    assert "where they come from; alpha = 0.1" in [text.get_text() for text in figure.texts]


def test_examples_need_no_intervals():
    examples = some_examples(1)._replace(intervals=None, missed=None)
    figure = drawn.examples_figure(examples, "where they come from")
    assert figure.axes[0].get_xlabel() == "age 3\ngroup 0 (0-4)"
    assert figure.get_suptitle() == "Examples"


def drawn_texts(figure):
    """The box of every text that is drawn; ticks out of view are not."""
    figure.draw_without_rendering()
    ticks, in_view = set(), set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                ticks |= {tick.label1, tick.label2}
                if low <= tick.get_loc() <= high:
                    in_view |= {tick.label1, tick.label2}
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    return {text: text.get_window_extent() for text in texts if text not in ticks or text in in_view}


def test_no_text_overlaps_another_or_leaves_the_picture(reproduction):
    for name, figure in drawn.pictures(reproduction, some_examples(8)):
        boxes = drawn_texts(figure)
        for (a, box_a), (b, box_b) in combinations(boxes.items(), 2):
            assert not box_a.overlaps(box_b), (name, a.get_text(), b.get_text())
        for text, box in boxes.items():
            assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1, (name, text.get_text())
            assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1, (name, text.get_text())


def test_text_wraps_and_is_never_read_as_mathematics():
    figure, [[_]] = figures.panels(1, width=4, height=1)
    figures.head(
        figure, "a headline that is much too long for four inches", f"from $x_{{$ and {'y' * 200}.csv"
    )
    for text, box in drawn_texts(figure).items():
        assert box.x1 <= figure.bbox.x1, text.get_text()
    assert figure.get_suptitle().count("\n") == 1
    assert figure.texts[-1].get_text().endswith("…")


def test_a_long_key_gets_more_rows():
    figure, [[axes]] = figures.panels(1, width=4, height=1)
    key = [axes.plot([], label=f"a line with a long name {k}")[0] for k in range(4)]
    figures.head(figure, "headline", key=key)
    boxes = drawn_texts(figure)
    assert max(box.x1 for box in boxes.values()) <= figure.bbox.x1
    assert len({round(boxes[text].y0) for text in figure.legends[0].get_texts()}) == 4


@pytest.mark.parametrize(("n", "shown"), [(5, 5), (20, 20), (60, 30)])
def test_class_names_are_left_out_only_when_too_close(n, shown):
    _, [[axes]] = figures.panels(1, width=5, height=2)
    figures.class_axis(axes, [f"{k}-{k + 4}" for k in range(n)], width=4.5)
    assert len(axes.get_xticklabels()) == shown
    assert axes.get_xticklabels()[0].get_text() == "0-4"
    assert axes.get_xlim() == (-0.5, n - 0.5)


def test_long_class_names_are_slanted():
    _, [[axes]] = figures.panels(1, width=5, height=2)
    figures.class_axis(axes, [f"a class of long name {k}" for k in range(5)], width=4.5)
    assert {text.get_rotation() for text in axes.get_xticklabels()} == {35}


def all_pictures():
    """Every picture, of the experiment with the fewest scenarios."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 2)), rng.integers(0, 10, 500)
    reproduction = made_up(diabetic_retinopathy.EXPERIMENT)
    return {"data": figures.data_figure(X, y)} | dict(drawn.pictures(reproduction, some_examples(3)))


def test_files_are_whole_and_the_same_when_drawn_again(tmp_path):
    every, some = ("data", *NAMES, "examples"), ("data", "risks", "centroids", "examples")
    for folder, chosen in (("once", every), ("again", some)):
        (tmp_path / folder).mkdir()
        pictures = all_pictures()
        for name in chosen:
            figures.save(pictures[name], tmp_path / folder / f"{name}.svg")
        figures.save(pictures["risks"], tmp_path / folder / "risks.png")
    written = {path.name: path.read_bytes() for path in (tmp_path / "once").iterdir()}
    for path in (tmp_path / "again").iterdir():
        assert path.read_bytes() == written[path.name]
    assert set(written) == {f"{name}.svg" for name in every} | {"risks.png"}
    for name, content in written.items():
        assert len(content) < 300_000
        if name.endswith(".png"):
            assert content.startswith(b"\x89PNG\r\n\x1a\n")
            assert content.endswith(b"IEND\xaeB`\x82")
            assert b"matplotlib" not in content
        else:
            assert ET.fromstring(content).tag == "{http://www.w3.org/2000/svg}svg"
            assert b"dc:date" not in content
            assert b"<text" not in content
    assert b"<image" in written["data.svg"]


def test_saving_twice_changes_nothing(tmp_path):
    figure = drawn.risks_figure(made_up(diabetic_retinopathy.EXPERIMENT))
    for name in ("a.svg", "a.png", "b.svg"):
        figures.save(figure, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"written as \.png or \.svg; got 'picture.jpg'"):
        figures.save(Figure(), tmp_path / "picture.jpg")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["picture.png", "picture.svg"])
def test_a_failed_write_leaves_the_old_file(name, tmp_path, monkeypatch):
    def fails_halfway(figure, path, **_):
        Path(path).write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / name).write_text("old")
    monkeypatch.setattr(Figure, "savefig", fails_halfway)
    with pytest.raises(OSError, match="No space left"):
        figures.save(Figure(), tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "old"


def test_demo_has_its_three_pictures():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 400)
    logits = -((np.arange(10) - y[:, None] - rng.normal(0, 1, (400, 1))) ** 2)
    scores = Scores([str(i) for i in range(400)], y, logits, key="made-up", source="made-up scores")
    experiment = simulated.EXPERIMENT
    results = means_over_trials(
        run_trials(
            scores.proba(),
            y,
            experiment.scenarios,
            growths=GROWTHS,
            alphas=experiment.alphas,
            trials=2,
            seed=3,
        )
    )
    X = rng.normal(size=(400, 2)) + y[:, None]
    pictures = demo_pictures(X, y, scores, results, experiment, seed=3)
    assert list(pictures) == ["data", "sizes", "intervals"]
    assert pictures["data"].get_suptitle() == "10 ordered classes in the plane"
    sizes, intervals = pictures["sizes"], pictures["intervals"]
    for axes, scenario in zip(sizes.axes, experiment.scenarios, strict=True):
        for rule in GROWTHS:
            chosen = [r for r in results if (r.scenario, r.growth) == (scenario, rule)]
            marks = [r.alpha for r in chosen], [r.size for r in chosen]
            assert marks in [data_of(line) for line in axes.lines]
    titles = [axes.get_title() for axes in intervals.axes]
    assert titles[0].startswith("only ")
    assert [title for title in titles if title.endswith("a miss")] == titles[-1:]
    for axes in intervals.axes:
        [truth] = axes.lines
        assert truth.get_ydata()[0] < 1.12
