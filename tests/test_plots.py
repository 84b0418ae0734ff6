"""The pictures for notebooks: every drawn artist is compared with the numbers it stands for."""

import math
import sys
import warnings
from itertools import combinations, cycle, pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from unchecked import UNCHECKED

pytest.importorskip("matplotlib")

import matplotlib.pyplot as plt
import torch
from devices import DEVICE
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from strategies import GROWTH_RULES, LOSSES, calibration_sets, shares

import ordinalrisk as orisk
from ordinalrisk import IntervalSet, RiskController, metrics, plots
from ordinalrisk.plots import (
    plot_centroids,
    plot_class_coverage,
    plot_intervals,
    plot_risk_curve,
    plot_set_sizes,
    plot_stratum_risks,
)

pytestmark = UNCHECKED
NAMES = ["none", "mild", "moderate", "severe", "proliferative"]
LOWER, UPPER = [0, 1, 0, 3, 2, 0], [0, 2, 4, 3, 4, 1]
TRUTH = [0, 3, 2, 3, 1, 1]


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture
def sets():
    return IntervalSet(LOWER, UPPER, classes=NAMES)


def named(positions):
    return [NAMES[k] for k in positions]


def many_sets(n, n_classes, seed=0, classes=None):
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, n_classes, (2, n)), axis=0)
    return IntervalSet(*ends, classes=range(n_classes) if classes is None else classes)


@st.composite
def interval_sets(draw):
    return many_sets(draw(st.integers(1, 40)), draw(st.integers(2, 30)), draw(st.integers(0, 99)))


def calibrated(draw, n_rows=200, alpha=0.1, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RiskController(alpha=alpha, **parameters).calibrate(*draw(n_rows))


def missed_at(levels, n_rows, alpha=0.1):
    """A controller that misses a row above each of these levels, which are below one half."""
    second = np.zeros(n_rows)
    second[: len(levels)] = levels
    missed = np.arange(n_rows) < len(levels)
    return RiskController(alpha=alpha).calibrate(np.column_stack([1 - second, second]), missed.astype(int))


def bars(ax):
    return [(bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in ax.patches]


def tick_texts(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def words(ax):
    return [text.get_text() for text in ax.texts]


def key_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def every_plot(sets, controller, y=None):
    """Each function, to be called with the axes."""
    y = [sets.classes[0]] * len(sets) if y is None else y
    return {
        "risk_curve": lambda ax=None: plot_risk_curve(controller, ax=ax),
        "set_sizes": lambda ax=None: plot_set_sizes(sets, ax=ax),
        "class_coverage": lambda ax=None: plot_class_coverage(y, sets, target=0.9, ax=ax),
        "intervals": lambda ax=None: plot_intervals(sets, y, ax=ax),
        "centroids": lambda ax=None: plot_centroids(sets, ax=ax),
    }


# where things are drawn


PLOTS = ["risk_curve", "set_sizes", "class_coverage", "intervals", "centroids"]


@pytest.mark.parametrize("name", PLOTS)
def test_without_axes_there_is_one_new_figure(name, sets, draw):
    ax = every_plot(sets, calibrated(draw))[name]()
    assert plt.get_fignums() == [ax.figure.number]
    assert ax.figure.axes == [ax]
    assert ax.has_data()
    ax.figure.canvas.draw()


@pytest.mark.parametrize(("name", "layout"), [*zip(PLOTS, cycle([None, "constrained"]))])
def test_given_axes_are_used_and_no_others(name, layout, sets, draw):
    figure, [left, right] = plt.subplots(1, 2, layout=layout)
    plt.sca(right)
    assert every_plot(sets, calibrated(draw))[name](left) is left
    assert left.has_data()
    assert not right.has_data()
    assert not [*right.texts, *right.lines, *right.patches]
    assert right.get_xlabel() == ""
    assert figure.axes == [left, right]
    assert plt.get_fignums() == [figure.number]
    assert plt.gca() is right
    assert left.spines["top"].get_visible()  # the look of axes that are given is their own
    figure.canvas.draw()


@pytest.mark.parametrize("name", PLOTS)
def test_axes_of_a_figure_within_a_figure_are_used(name, sets, draw):
    inner = plt.figure(layout="constrained").subfigures(1, 2)[1]
    ax = inner.subplots()
    assert every_plot(sets, calibrated(draw))[name](ax) is ax
    inner.figure.canvas.draw()


@pytest.mark.parametrize("name", PLOTS)
@pytest.mark.parametrize("ax", [1, "axes", np.array([None]), SimpleNamespace(plot=print)], ids=repr)
def test_what_is_no_axes_is_an_error_and_leaves_no_figure(name, ax, sets, draw):
    with pytest.raises(ValueError, match=r"ax must be one matplotlib Axes.*got a "):
        every_plot(sets, calibrated(draw))[name](ax)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("name", PLOTS)
def test_several_axes_are_an_error(name, sets, draw):
    _, pair = plt.subplots(1, 2)
    with pytest.raises(ValueError, match=r"one matplotlib Axes.*got a ndarray"):
        every_plot(sets, calibrated(draw))[name](pair)
    assert not any(ax.has_data() for ax in pair)


@pytest.mark.parametrize("name", PLOTS)
def test_without_matplotlib_the_error_says_what_to_install(name, sets, draw, monkeypatch):
    for module in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r'pip install "ordinalrisk\[plots\]"'):
        every_plot(sets, calibrated(draw))[name]()


def test_plots_are_public():
    assert orisk.plots is plots
    assert "plots" in dir(orisk)


# the risk curve


def curve_line(ax):
    [line] = [line for line in ax.lines if line.get_drawstyle() != "default"]
    assert line.get_drawstyle() == "steps-post"
    return line.get_data()


def drawn_risk(ax, threshold):
    """What the drawn steps show at a threshold; at a level itself, the end of the step on its left."""
    x, y = curve_line(ax)
    return y[max(0, np.searchsorted(x, threshold, side="left") - 1)]


@settings(max_examples=30)
@given(
    data=calibration_sets(max_rows=20),
    share=shares(),
    loss=st.sampled_from([*LOSSES]),
    growth=st.sampled_from(GROWTH_RULES),
)
def test_drawn_steps_are_the_curve_at_and_around_every_level(data, share, loss, growth):
    plt.close("all")  # of the example before
    loss = LOSSES[loss](data[0].shape[1])
    bound = loss.bound(data[0].shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        controller = RiskController(loss, share * bound, growth).calibrate(*data)
    curve = controller.risk_curve_
    ax = plot_risk_curve(controller)
    for level in curve.levels:
        for threshold in (np.nextafter(level, -np.inf), level, np.nextafter(level, np.inf)):
            assert drawn_risk(ax, threshold) == curve.risk(threshold)
    x, y = curve_line(ax)
    assert (y[0], y[-1]) == (0, curve.risk(np.inf))
    assert x[0] < x[-1]
    assert ((x[0] < curve.levels) & (curve.levels < x[-1])).all()


HUGE = RiskController(orisk.WeightedLoss([8e300, 8e300], normalize=False), alpha=8e299)
OF_LEVELS = {
    (5e-324,): lambda: missed_at([5e-324], 9),
    (0.0,): lambda: missed_at([0.0], 9),
    (5e-324, 1e-310): lambda: missed_at([5e-324, 1e-310], 9),
    (0.3, math.nextafter(0.3, 1)): lambda: missed_at([0.3, math.nextafter(0.3, 1)], 9),
    (1e300, 2e300): lambda: HUGE.calibrate([[7 / 8, 1 / 8], [3 / 4, 1 / 4], *[[1, 0]] * 7], [1, 1, *[0] * 7]),
    (-7.0,): lambda: RiskController(growth="rps").calibrate(np.eye(9)[[0] * 9], [7, *[0] * 8]),
}


@pytest.mark.parametrize("levels", OF_LEVELS, ids=repr)
def test_levels_of_any_size_are_within_the_picture(levels):
    controller = OF_LEVELS[levels]()
    assert controller.risk_curve_.levels.tolist() == [*levels]
    ax = plot_risk_curve(controller)
    x, _ = curve_line(ax)
    assert x[0] < min(levels)
    assert max(levels) < x[-1]
    assert marks_of(ax) == [(levels[0], 0, "o")]
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    assert low <= x[0] < x[-1] <= high


def marks_of(ax):
    """The dot or arrow of each alpha: its place and its shape."""
    return [
        (line.get_xdata()[0], line.get_ydata()[0], line.get_marker())
        for line in ax.lines
        if line.get_marker() not in ("", "None")
    ]


def level_lines(ax):
    """The levels of the lines that go all the way across, with their looks."""
    return {
        line.get_ydata()[0]: (line.get_color(), line.get_linestyle())
        for line in ax.lines
        if list(line.get_xdata()) == [0, 1] and line.get_transform() != ax.transData
        if line.get_marker() in ("", "None")
    }


def upright_lines(ax):
    return {
        line.get_xdata()[0]: (line.get_color(), line.get_linestyle())
        for line in ax.lines
        if len(x := line.get_xdata()) == 2 and x[0] == x[1]
    }


def test_alphas_and_thresholds_are_marked_on_the_curve(draw):
    controller = calibrated(draw)
    alphas = [0.1, 0.05, 0.2]
    ax = plot_risk_curve(controller, alphas=[0.05, 0.2])
    thresholds = [controller.threshold_at(alpha) for alpha in alphas]
    assert thresholds[0] == controller.threshold_
    assert list(level_lines(ax)) == alphas
    assert list(upright_lines(ax)) == thresholds
    assert list(level_lines(ax).values()) == list(upright_lines(ax).values())
    assert len(set(level_lines(ax).values())) == 3
    assert marks_of(ax) == [(t, controller.risk_curve_.risk(t), "o") for t in thresholds]
    assert all(y == drawn_risk(ax, x) <= alpha for (x, y, _), alpha in zip(marks_of(ax), alphas, strict=True))
    assert key_of(ax)[:3] == [
        f"alpha {a}: threshold {t:.4g}" for a, t in zip(alphas, thresholds, strict=True)
    ]


def test_an_alpha_is_marked_once(draw):
    ax = plot_risk_curve(calibrated(draw), alphas=[0.1, "0.1", "1/10", 0.2])
    assert list(level_lines(ax)) == [0.1, 0.2]
    assert len(marks_of(ax)) == 2


def test_the_band_is_what_is_kept_for_the_new_row(draw):
    controller = calibrated(draw, n_rows=20, alpha=0.3)
    ax = plot_risk_curve(controller)
    [band] = ax.patches
    bottom, top = band.get_y(), band.get_y() + band.get_height()
    assert top == pytest.approx(0.3)
    assert top - bottom == pytest.approx((1 - 0.3) / 20)
    curve, threshold = controller.risk_curve_, controller.threshold_
    assert curve.risk(threshold) <= bottom < curve.risk(np.nextafter(threshold, np.inf))
    assert key_of(ax)[-1] == "reserved for the new row"


def test_a_band_too_narrow_to_see_is_not_named(draw):
    assert key_of(plot_risk_curve(calibrated(draw, n_rows=20_000))) == [
        f"alpha 0.1: threshold {calibrated(draw, n_rows=20_000).threshold_:.4g}"
    ]


def test_too_few_rows_are_marked_at_the_left_edge(draw):
    ax = plot_risk_curve(calibrated(draw, n_rows=8))
    assert marks_of(ax) == [(0, 0, "<")]
    assert upright_lines(ax) == {}
    assert key_of(ax)[0] == "alpha 0.1: full sets; 9 rows are needed"
    [band] = ax.patches
    assert (band.get_y(), band.get_y() + band.get_height()) == (0, pytest.approx(0.1))
    ax.figure.canvas.draw()


def test_single_labels_are_marked_at_the_right_edge(draw):
    controller = calibrated(draw, alpha=0.99)
    ax = plot_risk_curve(controller)
    assert controller.threshold_ == math.inf
    assert marks_of(ax) == [(1, controller.risk_curve_.risk(math.inf), ">")]
    assert key_of(ax)[0] == "alpha 0.99: single labels suffice"
    [arrow] = [line for line in ax.lines if line.get_marker() == ">"]
    assert arrow.get_transform() == ax.get_yaxis_transform()
    ax.figure.canvas.draw()


def test_extra_alphas_may_have_infinite_thresholds_without_a_warning(draw):
    ax = plot_risk_curve(calibrated(draw), alphas=[0.001, 0.99])
    assert [shape for _, _, shape in marks_of(ax)] == ["o", "<", ">"]
    assert key_of(ax)[1] == "alpha 0.001: full sets; 999 rows are needed"


def test_a_curve_without_steps_is_level():
    controller = RiskController(alpha=0.5).calibrate([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    ax = plot_risk_curve(controller)
    assert set(curve_line(ax)[1]) == {0}
    assert marks_of(ax) == [(1, 0, ">")]
    ax.figure.canvas.draw()


@pytest.mark.parametrize("spread", ["even", "skewed", "clustered"])
def test_a_million_levels_are_thinned_within_what_can_be_seen(spread):
    rng = np.random.default_rng(0)
    draws = {
        "even": 0.49 * rng.random(10**6),
        "skewed": 0.49 * rng.random(10**6) ** 8,
        "clustered": np.append(rng.normal(0.2, 1e-9, 10**6), [0.01, 0.49]),
    }
    missed = np.repeat(draws[spread], rng.integers(1, 4, len(draws[spread])))
    controller = missed_at(missed, 3 * 10**6)
    curve = controller.risk_curve_
    levels = curve.levels
    assert len(levels) > 900_000
    ax = plot_risk_curve(controller, alphas=[0.2])
    x, y = curve_line(ax)
    assert len(x) < 25_000
    for point, risk in zip(x[1:-1][::50], y[1:-1][::50], strict=True):
        assert risk == curve.risk(np.nextafter(point, np.inf))
    narrow = (levels[-1] - levels[0]) / 5_000  # less than half a pixel
    for threshold in rng.choice(levels, 200):
        assert curve.risk(threshold - narrow) <= drawn_risk(ax, threshold) <= curve.risk(threshold + narrow)
    for threshold, risk, _ in marks_of(ax):
        assert drawn_risk(ax, threshold) == risk == curve.risk(threshold)
        just_above = np.nextafter(threshold, np.inf)
        assert drawn_risk(ax, just_above) == curve.risk(just_above)
    ax.figure.canvas.draw()


def test_few_levels_are_all_drawn(draw):
    controller = calibrated(draw, n_rows=5_000)
    x, _ = curve_line(plot_risk_curve(controller))
    assert x[1:-1].tolist() == controller.risk_curve_.levels.tolist()


def test_two_curves_share_axes(draw):
    small, large = calibrated(draw, alpha=0.05), calibrated(draw, alpha=0.3, loss="divergence")
    ax = plot_risk_curve(small)
    plot_risk_curve(large, ax=ax)
    ax.figure.canvas.draw()
    highest = max(c.risk_curve_.risk(math.inf) for c in (small, large))
    assert ax.get_ylim()[0] == 0
    assert ax.get_ylim()[1] > highest


def test_the_risk_axis_starts_at_zero_and_shows_alpha(draw):
    ax = plot_risk_curve(calibrated(draw, alpha=0.95))
    low, high = ax.get_ylim()
    assert low == 0
    assert high > 0.95
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("threshold", "mean loss of the calibration rows")


@pytest.mark.parametrize("power", [0.2, 1, 5], ids=["late", "even", "early"])
def test_the_key_is_not_on_the_curve(power):
    controller = missed_at(0.49 * np.linspace(0, 1, 500) ** power, 900)
    ax = plot_risk_curve(controller, alphas=[0.2])
    ax.figure.canvas.draw()
    box = ax.get_legend().get_window_extent()
    places = ax.transData.transform(np.column_stack(curve_line(ax)))
    assert not any(box.contains(*place) for place in places)


def test_a_controller_that_is_not_calibrated_is_the_usual_error():
    with pytest.raises(NotFittedError, match="not calibrated yet"):
        plot_risk_curve(RiskController())
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("alphas", "message"),
    [
        (0.1, r"sequence of numbers.*got 0\.1"),
        ("0.1", "sequence of numbers"),
        ([0.1, 2], "alpha must lie strictly between 0 and the largest loss, B=1; got 2"),
        ([0], "got 0"),
        (["a"], "alpha must be a finite number; got 'a'"),
        ([math.nan], "finite number"),
    ],
)
def test_alphas_that_are_none_are_an_error(alphas, message, draw):
    with pytest.raises(ValueError, match=message):
        plot_risk_curve(calibrated(draw), alphas=alphas)
    assert plt.get_fignums() == []


def test_what_is_no_controller_is_an_error(sets):
    with pytest.raises(ValueError, match=r"got a IntervalSet.*controller_"):
        plot_risk_curve(sets)


# sizes


@settings(max_examples=10)
@given(sets=interval_sets())
def test_size_bars_are_the_shares(sets):
    plt.close("all")  # of the example before
    ax = plot_set_sizes(sets)
    K = len(sets.classes)
    assert [x for x, _ in bars(ax)] == pytest.approx(np.arange(1, K + 1))
    assert [height for _, height in bars(ax)] == metrics.size_histogram(sets).tolist()
    [line] = ax.lines
    assert set(line.get_xdata()) == {metrics.mean_size(sets)}
    assert words(ax) == [f"mean {metrics.mean_size(sets):.4g} label{'s' * (metrics.mean_size(sets) != 1)}"]
    low, high = ax.get_xlim()
    assert low < 1 <= K < high


def test_the_mean_is_told_above_the_bars(sets):
    for shown in (sets, IntervalSet([0], [4], NAMES), IntervalSet([0], [0], NAMES), many_sets(50, 20)):
        ax = plot_set_sizes(shown)
        ax.figure.canvas.draw()
        [text] = ax.texts
        box = text.get_window_extent()
        assert ax.bbox.x0 < box.x0 < box.x1 < ax.bbox.x1
        assert not any(box.overlaps(bar.get_window_extent()) for bar in ax.patches)


def test_sizes_are_whole_numbers_and_shares_per_cent(sets):
    ax = plot_set_sizes(sets)
    ax.figure.canvas.draw()
    assert tick_texts(ax.xaxis) == ["1", "2", "3", "4", "5"]
    for value, text in zip(ax.get_yticks(), tick_texts(ax.yaxis), strict=True):
        assert text == f"{100 * value:.6g}%"


# coverage of classes


def error_bars(ax):
    [container] = ax.containers
    points, _, [segments] = container
    return points, [segment[:, 1].tolist() for segment in segments.get_segments()]


@settings(max_examples=10)
@given(sets=interval_sets(), seed=st.integers(0, 99), confidence=st.sampled_from([0.5, 0.95, 0.99]))
def test_coverage_and_its_intervals_are_the_metrics(sets, seed, confidence):
    plt.close("all")  # of the example before
    K = len(sets.classes)
    y = np.random.default_rng(seed).integers(0, K, len(sets))
    value, low, high = metrics.class_coverage(y, sets, confidence=confidence)
    ax = plot_class_coverage(y, sets, confidence=confidence)
    points, reaches = error_bars(ax)
    seen = np.unique(y)
    assert points.get_xdata().tolist() == seen.tolist()
    assert points.get_ydata().tolist() == value[seen].tolist()
    assert np.allclose(reaches, np.column_stack([low, high])[seen], atol=1e-12, rtol=0)
    absent = sorted(set(range(K)) - set(seen))
    assert [(text.get_position()[0], text.get_text()) for text in ax.texts] == [
        (k, "no rows") for k in absent
    ]
    assert ax.get_ylabel() == f"coverage\n(exact {100 * confidence:g} % intervals)"


def test_rows_of_each_class_are_in_its_tick(sets):
    ax = plot_class_coverage(named(TRUTH), sets)
    counts = np.bincount(TRUTH, minlength=5)
    assert tick_texts(ax.xaxis) == [f"{name}\nn = {n}" for name, n in zip(NAMES, counts, strict=True)]
    assert ax.get_xticks().tolist() == [0, 1, 2, 3, 4]
    assert len(ax.lines) == 1 + 2 * 1  # points and caps, no target


def test_many_rows_are_counted_with_commas():
    many = IntervalSet(np.zeros(12_345, int), np.ones(12_345, int), classes=["a", "b"])
    ax = plot_class_coverage(["a"] * 12_345, many)
    assert tick_texts(ax.xaxis) == ["a\nn = 12,345", "b\nn = 0"]


@pytest.mark.parametrize("target", [0.9, "0.9", 0, 1, np.float32(0.5)], ids=repr)
def test_the_target_is_a_level_line_with_its_number(target, sets):
    ax = plot_class_coverage(named(TRUTH), sets, target=target)
    assert list(level_lines(ax)) == [pytest.approx(float(target))]
    text = ax.texts[-1]
    assert text.get_text() == f"target {float(target):.4g}"
    assert text.xy == (1, pytest.approx(float(target)))


def test_coverage_without_intervals(sets):
    ax = plot_class_coverage(named(TRUTH), sets, confidence=None)
    points, reaches = error_bars(ax)
    assert points.get_ydata().tolist() == [v for v in metrics.class_coverage(named(TRUTH), sets) if v == v]
    assert all(low == high for low, high in reaches)
    assert ax.get_ylabel() == "coverage"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"target": 1.1}, r"target is a coverage.*between 0 and 1; got 1\.1"),
        ({"target": -0.1}, "between 0 and 1"),
        ({"target": math.nan}, "target must be a finite number"),
        ({"target": "high"}, "target must be a finite number"),
        ({"confidence": 95}, "confidence must lie strictly between 0 and 1; got 95"),
        ({"y": ["none"]}, r"6 rows.*got shape \(1,\)"),
        ({"y": ["fatal"] * 6}, "'fatal', which is not one of the classes"),
    ],
    ids=str,
)
def test_bad_input_of_coverage_is_an_error(parameters, message, sets):
    with pytest.raises(ValueError, match=message):
        plot_class_coverage(parameters.pop("y", named(TRUTH)), sets, **parameters)
    assert plt.get_fignums() == []


# intervals


def interval_bars(ax):
    """First label, last label and row of each bar."""
    return [
        (
            bar.get_x() + 0.45,
            bar.get_x() + bar.get_width() - 0.45,
            bar.get_y() + bar.get_height() / 2,
        )
        for bar in ax.patches
    ]


@settings(max_examples=10)
@given(sets=interval_sets(), data=st.data())
def test_bars_span_the_labels_of_their_rows(sets, data):
    plt.close("all")  # of the example before
    rows = data.draw(st.none() | st.lists(st.integers(0, len(sets) - 1), min_size=1, max_size=20))
    ax = plot_intervals(sets, rows=rows)
    chosen = list(range(min(12, len(sets)))) if rows is None else rows
    expected = [(sets.lower_index[row], sets.upper_index[row], i) for i, row in enumerate(chosen)]
    assert np.allclose(interval_bars(ax), expected)
    bottom, top = ax.get_ylim()
    assert bottom > top  # the first row is on top
    low, high = ax.get_xlim()
    assert low <= -0.5
    assert len(sets.classes) - 0.5 <= high
    ticks = dict(zip(ax.get_yticks(), tick_texts(ax.yaxis), strict=True))
    assert all(text == str(chosen[int(i)]) for i, text in ticks.items())
    assert 0 in ticks


def test_rows_are_the_first_twelve_unless_chosen():
    many = many_sets(40, 5)
    assert tick_texts(plot_intervals(many).yaxis) == [str(i) for i in range(12)]
    assert tick_texts(plot_intervals(many, rows=[30, 2, 30]).yaxis) == ["30", "2", "30"]
    assert tick_texts(plot_intervals(many, rows=np.arange(40) % 10 == 3).yaxis) == ["3", "13", "23", "33"]
    assert tick_texts(plot_intervals(many, rows=torch.tensor([5])).yaxis) == ["5"]
    assert tick_texts(plot_intervals(many, rows=range(3, 5)).yaxis) == ["3", "4"]


def test_truths_are_marked_by_shape_and_colour(sets):
    ax = plot_intervals(sets, named(TRUTH))
    hits, misses = ax.lines
    inside = sets.contains(named(TRUTH))
    for line, here in ((hits, inside), (misses, ~inside)):
        assert line.get_xdata().tolist() == np.array(TRUTH)[here].tolist()
        assert line.get_ydata().tolist() == np.flatnonzero(here).tolist()
        assert line.get_linestyle() == "None"
    assert hits.get_marker() != misses.get_marker()
    assert hits.get_color() != misses.get_color()
    assert key_of(ax) == ["set", "true label", "missed label"]


def test_truths_are_those_of_the_chosen_rows(sets):
    ax = plot_intervals(sets, named(TRUTH), rows=[5, 4])
    hits, misses = ax.lines
    assert (hits.get_xdata().tolist(), hits.get_ydata().tolist()) == ([1], [0])
    assert (misses.get_xdata().tolist(), misses.get_ydata().tolist()) == ([1], [1])


def test_what_is_not_there_is_not_in_the_key(sets):
    assert key_of(plot_intervals(sets)) == ["set"]
    assert key_of(plot_intervals(sets, named(TRUTH), rows=[0])) == ["set", "true label"]
    assert key_of(plot_intervals(sets, named(TRUTH), rows=[1])) == ["set", "missed label"]


def test_probabilities_are_the_cells(sets, draw):
    proba, _ = draw(6)
    rows = [4, 0]
    ax = plot_intervals(sets, proba=proba, rows=rows)
    [mesh] = ax.collections
    assert mesh.get_array().reshape(2, 5).tolist() == proba[rows].tolist()
    assert mesh.get_clim() == (0, 1)
    edges = mesh.get_coordinates()
    assert edges[0, :, 0].tolist() == [-0.5, 0.5, 1.5, 2.5, 3.5, 4.5]
    assert edges[:, 0, 1].tolist() == [-0.5, 0.5, 1.5]
    opacity = mesh.cmap(np.linspace(0, 1, 5))[:, 3]
    assert opacity[0] == 0
    assert (np.diff(opacity) > 0).all()
    assert key_of(ax) == ["set", "probability"]
    assert {bar.get_facecolor()[3] for bar in ax.patches} == {0}  # outlines, so that cells are seen
    assert {bar.get_edgecolor()[3] for bar in ax.patches} == {1}


@pytest.mark.parametrize("kind", ["float16", "float32", "bfloat16", "list", "pandas"])
def test_probabilities_of_many_kinds(kind, sets):
    import pandas as pd

    exact = np.tile([0.5, 0.25, 0.125, 0.0625, 0.0625], (6, 1))
    given = {
        "float16": exact.astype(np.float16),
        "float32": exact.astype(np.float32),
        "bfloat16": torch.tensor(exact, dtype=torch.bfloat16),
        "list": exact.tolist(),
        "pandas": pd.DataFrame(exact, columns=NAMES),
    }[kind]
    [mesh] = plot_intervals(sets, proba=given).collections
    assert mesh.get_array().reshape(6, 5).tolist() == exact.tolist()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rows": [6]}, r"rows must lie in 0 \.\. 5; got 6"),
        ({"rows": [0, -1]}, "got -1"),
        ({"rows": []}, "rows must be 1 to 200 positions.*got 0"),
        ({"rows": [0] * 201}, "got 201"),
        ({"rows": 3}, "rows must be positions.*got 3"),
        ({"rows": [[0]]}, "rows must be positions"),
        ({"rows": [0.5]}, "whole numbers"),
        ({"rows": ["0"]}, "whole numbers"),
        ({"rows": [True, False]}, "mask of all 6 rows"),
        ({"rows": np.zeros(6, bool)}, "got 0"),
        ({"proba": np.full((6, 4), 0.25)}, r"shape \(6, 5\); got \(6, 4\)"),
        ({"proba": np.full((5, 5), 0.2)}, r"shape \(6, 5\); got \(5, 5\)"),
        ({"proba": np.full(5, 0.2)}, "proba must have shape"),
        ({"proba": np.full((6, 5), 0.3)}, r"Row 0 of proba sums to 1\.5"),
        ({"proba": np.full((6, 5), math.nan), "rows": [3]}, "a NaN value at row 3, column 0"),
        ({"proba": [[1.2, -0.2, 0, 0, 0]] * 6}, "a negative value at row 0, column 1"),
        ({"y": named(TRUTH)[:5]}, "6 rows"),
        ({"y": ["fatal"] * 6}, "'fatal', which is not one of the classes"),
    ],
    ids=lambda value: value if isinstance(value, str) else [*value][-1],
)
def test_bad_input_of_intervals_is_an_error(parameters, message, sets):
    with pytest.raises(ValueError, match=message):
        plot_intervals(sets, **parameters)
    assert plt.get_fignums() == []


def test_columns_in_another_order_are_an_error(sets):
    import pandas as pd

    with pytest.raises(ValueError, match="columns of proba are in the order"):
        plot_intervals(sets, proba=pd.DataFrame(np.full((6, 5), 0.2), columns=NAMES[::-1]))


# centroids


@settings(max_examples=10)
@given(sets=interval_sets())
def test_centroid_bars_are_the_shares(sets):
    plt.close("all")  # of the example before
    ax = plot_centroids(sets)
    K = len(sets.classes)
    assert [x for x, _ in bars(ax)] == pytest.approx(np.arange(2 * K - 1) / 2)
    assert [height for _, height in bars(ax)] == metrics.centroid_histogram(sets).tolist()
    assert all(bar.get_width() < 0.5 for bar in ax.patches)


def test_centroids_have_class_names_as_ticks(sets):
    ax = plot_centroids(sets)
    assert tick_texts(ax.xaxis) == NAMES
    assert ax.get_xticks().tolist() == [0, 1, 2, 3, 4]


# what all of sets share


OF_SETS = [plot_set_sizes, plot_intervals, plot_centroids]


@pytest.mark.parametrize("plot", [*OF_SETS, lambda sets: plot_class_coverage([], sets)])
def test_no_rows_are_an_error(plot):
    with pytest.raises(ValueError, match="no rows, so there is nothing to draw"):
        plot(IntervalSet([], [], classes=NAMES))
    assert plt.get_fignums() == []


@pytest.mark.parametrize("plot", [*OF_SETS, lambda sets: plot_class_coverage([0], sets)])
def test_what_is_no_interval_set_is_an_error(plot):
    with pytest.raises(ValueError, match="sets must be an IntervalSet; got a list"):
        plot([(0, 1)])


def test_tensors_on_a_device_are_drawn_too(on_a_device, draw):
    proba, y = draw(6)

    def there(values, dtype=None):
        return torch.as_tensor(values, dtype=dtype, device=DEVICE)

    on_device = IntervalSet.of(there(LOWER, torch.int32), there(UPPER, torch.int32), np.arange(5))
    host = IntervalSet(LOWER, UPPER, classes=range(5))
    for plot in (plot_set_sizes, plot_centroids):
        assert bars(plot(on_device)) == bars(plot(host))
    shown, expected = plot_class_coverage(there(y), on_device), plot_class_coverage(y, host)
    assert error_bars(shown)[1] == error_bars(expected)[1]
    for dtype in (torch.float64, torch.bfloat16):
        ax = plot_intervals(on_device, there(y), there(proba, dtype), rows=there([2, 1]))
        assert np.allclose(ax.collections[0].get_array().reshape(2, 5), proba[[2, 1]], rtol=0.01)
        assert interval_bars(ax) == interval_bars(plot_intervals(host, rows=[2, 1]))


# names are data


NAMED_PLOTS = {
    "intervals": plot_intervals,
    "centroids": plot_centroids,
    "coverage": lambda sets: plot_class_coverage([sets.classes[0]] * len(sets), sets),
}


@pytest.mark.no_cover  # what takes long is matplotlib's
@pytest.mark.parametrize(
    ("name", "n_classes", "length"),
    [
        *[("intervals", 2, 80), ("intervals", 5, 12), ("intervals", 20, 1)],
        *[("centroids", 9, 12), ("centroids", 20, 80), ("centroids", 70, 1)],
        *[("coverage", 5, 12), ("coverage", 20, 1), ("coverage", 20, 80)],
    ],
)
def test_names_do_not_overlap(name, n_classes, length):
    names = [f"{k:W>{length}}" if length > 3 else str(k) for k in range(n_classes)]
    ax = NAMED_PLOTS[name](many_sets(30, n_classes, classes=names))
    ax.figure.canvas.draw()
    labels = ax.get_xticklabels()
    [turned] = {label.get_rotation() for label in labels}
    boxes = [label.get_window_extent() for label in labels]
    if turned == 35:  # boxes of slanted text overlap though the text does not
        dots = np.diff([ax.transData.transform((x, 0))[0] for x in ax.get_xticks()])
        height = labels[0].get_fontsize() * ax.figure.dpi / 72
        assert (dots * math.sin(math.radians(35)) > height).all()
    else:
        assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    inside = ax.figure.bbox
    assert all(inside.x0 <= box.x0 and box.y0 >= inside.y0 for box in boxes)
    assert ax.get_window_extent().height > 0.3 * inside.height


@pytest.mark.parametrize("plot", NAMED_PLOTS.values(), ids=NAMED_PLOTS)
class TestNames:
    def test_are_text_and_never_mathematics(self, plot):
        names = ["$x^2$", "a_b", r"\$", "$", r"$\frac{$"]
        ax = plot(IntervalSet(LOWER, UPPER, classes=names))
        ax.figure.canvas.draw()
        assert [text.split("\n")[0] for text in tick_texts(ax.xaxis)] == names
        for label in ax.get_xticklabels():
            shown, parsed = label._preprocess_math(label.get_text())
            assert shown == label.get_text()
            assert parsed is False

    def test_that_are_long_are_shortened_and_still_told_apart(self, plot):
        names = [f"{k} a rather long name of a class" for k in range(4)]
        names += [f"a rather long name of a class {k}" for k in range(4)]
        ax = plot(many_sets(30, 8, classes=names))
        shown = [text.split(" (n")[0] for text in tick_texts(ax.xaxis)]
        assert len(set(shown)) == 8
        for name, text in zip(names, shown, strict=True):
            start, end = text.split("…")
            assert name.startswith(start)
            assert name.endswith(end)
            assert 10 < len(text) < 20

    def test_are_on_one_line(self, plot):
        ax = plot(IntervalSet([0], [1], classes=["a\nb", ""]))
        assert [text.split("\n")[0] for text in tick_texts(ax.xaxis)] == ["a b", "''"]

    def test_are_those_of_every_class_where_there_is_room(self, plot):
        ax = plot(many_sets(30, 20))
        assert ax.get_xticks().tolist() == list(range(20))

    def test_are_where_their_label_is_when_some_are_left_out(self, plot):
        ax = plot(many_sets(30, 200))
        assert 10 < len(ax.get_xticks()) < 200
        for x, text in zip(ax.get_xticks(), tick_texts(ax.xaxis), strict=True):
            assert text.split(" ")[0].split("\n")[0] == str(x)


def out_of_view(axis):
    low, high = sorted(axis.get_view_interval())
    ticks = zip(axis.get_ticklabels(), axis.get_ticklocs(), strict=True)
    return [label for label, value in ticks if not low <= value <= high]


def test_no_text_overlaps_another_or_leaves_the_picture(sets, draw):
    for name, plot in every_plot(sets, calibrated(draw), named(TRUTH)).items():
        ax = plot()
        ax.figure.canvas.draw()
        texts = [*ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label]
        if ax.get_legend() is not None:
            texts += ax.get_legend().get_texts()
        boxes = {text: text.get_window_extent() for text in texts if text.get_text()}
        hidden = {label for axis in (ax.xaxis, ax.yaxis) for label in out_of_view(axis)}
        shown = {text: box for text, box in boxes.items() if text not in hidden}
        for (a, box_a), (b, box_b) in combinations(shown.items(), 2):
            assert not box_a.overlaps(box_b), (name, a.get_text(), b.get_text())
        for text, box in shown.items():
            whole = ax.figure.bbox.padded(1)
            assert whole.x0 <= box.x0, (name, text.get_text())
            assert box.x1 <= whole.x1, (name, text.get_text())
            assert whole.y0 <= box.y0, (name, text.get_text())
            assert box.y1 <= whole.y1, (name, text.get_text())


# guarantees past one risk for all rows


def calibrated_apart(draw, n_rows=400, parameters=None, **extras):
    proba, y = draw(n_rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RiskController(**{"alpha": 0.1} | (parameters or {})).calibrate(proba, y, **extras)


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_each_group_has_its_curve_and_its_threshold(draw):
    groups = ["north", "$x$"] * 190 + ["few"] * 20
    controller = calibrated_apart(draw, groups=groups, parameters={"alpha": 0.06})
    ax = plot_risk_curve(controller, alphas=[0.2])
    curves = [line for line in ax.lines if line.get_drawstyle() == "steps-post"]
    assert len({line.get_color() for line in curves}) == 3
    for line, curve in zip(curves, controller.risk_curve_.values(), strict=True):
        x, y = line.get_data()
        assert x[1:-1].tolist() == curve.levels.tolist()
        assert y[-1] == curve.risk(math.inf)
    other = controller.threshold_at("0.2")
    found = controller.threshold_
    assert math.isfinite(found["few"])
    expected = [
        (t, controller.risk_curve_[name].risk(t)) for name in found for t in (found[name], other[name])
    ]
    drawn = [
        tuple(line.get_xydata()[0]) for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata())
    ]
    assert drawn == expected
    shown = {"north": "north", "$x$": r"\$x\$", "few": "few"}
    assert legend_texts(ax) == [f"{shown[name]}: threshold {found[name]:.4g}" for name in shown]
    levels = {line.get_ydata()[0] for line in ax.lines if list(line.get_xdata()) == [0, 1]}
    assert levels >= {0.06, 0.2}


def test_true_classes_are_chosen_by_name_and_no_more_than_eight(draw):
    groups = np.arange(400) % 2
    controller = calibrated_apart(draw, groups=groups, parameters={"condition_on": "label"})
    with pytest.raises(
        ValueError, match=r"At most 8 curves fit in one picture; got 10. Choose some with groups= or"
    ):
        plot_risk_curve(controller)
    ax = plot_risk_curve(controller, groups=[1], labels=[0, 4])
    assert [text.split(":")[0] for text in legend_texts(ax)] == ["1 / 0", "1 / 4"]
    assert len(plt.get_fignums()) == 1
    for wrong, message in [
        ({"groups": [7]}, "groups has 7, which is not one of"),
        ({"labels": []}, "labels is empty"),
    ]:
        with pytest.raises(ValueError, match=message):
            plot_risk_curve(controller, **wrong)
    with pytest.raises(ValueError, match="The calibration has one curve for all groups"):
        plot_risk_curve(calibrated(draw), groups=["a"])


def test_classes_without_a_guarantee_say_so(draw):
    proba, y = draw(200)
    keep = y > 0
    with pytest.warns(UserWarning, match="too few"):
        controller = RiskController(alpha={k: 0.1 * (k + 1) for k in range(5)}).calibrate(
            proba[keep], y[keep]
        )
    ax = plot_risk_curve(controller)
    assert legend_texts(ax)[0] == "0: always in the set; 9 rows are needed"
    assert len([line for line in ax.lines if line.get_drawstyle() == "steps-post"]) == 4
    assert list(level_lines(ax)) == [controller.alpha[k] for k in range(5)]


@pytest.mark.parametrize("loss", ["coverage", "divergence"])
def test_the_band_of_delta_is_what_the_bound_keeps_back(loss, draw):
    controller = calibrated_apart(draw, parameters={"loss": loss, "delta": 0.05})
    ax = plot_risk_curve(controller)
    threshold, curve = controller.threshold_, controller.risk_curve_
    assert marks_of(ax) == [(threshold, curve.risk(threshold), "o")]
    [band] = ax.patches
    assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx((curve.risk(threshold), 0.1))
    assert legend_texts(ax)[-1] == "margin of the bound"
    few = plot_risk_curve(calibrated_apart(draw, n_rows=12, parameters={"delta": 0.05}))
    assert legend_texts(few)[0] == "alpha 0.1: full sets; 29 rows are needed"


def test_weighted_and_clustered_curves_are_means_of_what_counts(draw):
    weights = np.random.default_rng(0).gamma(2, 1, 400)
    weighted = calibrated_apart(draw, sample_weight=weights)
    ax = plot_risk_curve(weighted)
    curve = weighted.risk_curve_
    assert curve_line(ax)[1][-1] == pytest.approx(curve.risk(math.inf))
    assert ax.get_ylabel() == "weighted mean loss of the calibration rows"
    [band] = ax.patches
    own = float(curve.weight) / 400
    assert band.get_y() == pytest.approx((0.1 * (float(curve.weight) + own) - own) / float(curve.weight))
    clustered = plot_risk_curve(calibrated_apart(draw, clusters=np.arange(400) // 4))
    assert clustered.get_ylabel() == "mean loss of the calibration clusters"


# risks by group or class


@pytest.mark.parametrize("loss", ["coverage", "divergence"])
def test_stratum_risks_are_those_of_metrics(loss, sets):
    y = named(TRUTH)
    groups = ["b", "b", "a", "a", "b", "a"]
    ax = plot_stratum_risks(y, sets, loss, groups, alpha={"a": 0.1, "b": 0.3})
    points, _, [bars] = ax.containers[0]
    for k, name in enumerate(["b", "a"]):
        mine = [i for i, group in enumerate(groups) if group == name]
        value, low, high = metrics.risk([y[i] for i in mine], sets[mine], loss, confidence=0.95)
        assert points.get_xydata()[k] == pytest.approx((k, value))
        assert bars.get_segments()[k] == pytest.approx(np.array([[k, low], [k, high]]))
    assert tick_texts(ax.xaxis) == ["b\nn = 3", "a\nn = 3"]
    lines = ax.collections[-1].get_segments()
    assert [line[0, 1] for line in lines] == [0.3, 0.1]


def test_stratum_risks_of_true_classes_are_in_their_order(sets):
    y = named(TRUTH)
    ax = plot_stratum_risks(y, sets, "coverage", y, alpha="0.25", confidence=None)
    assert [text.split("\n")[0] for text in tick_texts(ax.xaxis)] == NAMES[:4]
    expected = metrics.class_risk(y, sets)[:4]
    assert ax.containers[0].lines[0].get_ydata().tolist() == expected.tolist()
    assert ax.texts[0].get_text() == "alpha 0.25"
    assert ax.get_ylabel() == "mean loss"


def test_stratum_risks_refuse_what_does_not_fit(sets):
    y = named(TRUTH)
    for change, message in [
        ({"by": ["a"]}, "by must have one value for each of the 6 rows"),
        ({"by": [None] * 6}, r"by\[0\] is missing"),
        ({"alpha": {"none": 0.1}}, "alpha has no value for 'mild'"),
        ({"alpha": "x"}, "alpha must be a finite number"),
        ({"y": y[1:]}, "one label for each of the 6 rows"),
        ({"ax": 1}, "ax must be one matplotlib Axes"),
    ]:
        given = {"y": y, "sets": sets, "loss": "coverage", "by": y} | change
        with pytest.raises(ValueError, match=message):
            plot_stratum_risks(**given)
    assert plt.get_fignums() == []
    _, ax = plt.subplots()
    assert plot_stratum_risks(y, sets, "coverage", y, ax=ax) is ax
