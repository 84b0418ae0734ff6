"""``ordinalrisk demo``: calibrate a model, predict sets, and see what the growth rule decides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ordinalrisk import __version__
from ordinalrisk.cli import terminal
from ordinalrisk.display.text_table import TextTable

_ALPHAS = (0.02, 0.08)
_PICTURED = 0.08
_GROWTHS = ("paper", "adaptive", "frontier")


def demo(
    out: Annotated[Path, typer.Option(help="Folder for results.json and the pictures.")] = Path("demo"),
    trials: Annotated[int, typer.Option(help="Random halves to average over.")] = 20,
    random_state: Annotated[int, typer.Option(help="Seed of the data, the model and the halves.")] = 0,
    no_pictures: Annotated[bool, typer.Option("--no-pictures", help="Write results.json only.")] = False,
) -> None:
    """Try the library on simulated data and compare three growth rules.

    Ten overlapping classes, a model of their distributions, four losses. Half of the rows calibrate and the
    other half tests, many times over.

    \b
    Examples:
      ordinalrisk demo
      ordinalrisk demo --trials 5 --out quick
      ordinalrisk demo --random-state 1 --no-pictures
    """  # noqa: D301
    terminal.require_trials_and_seed(trials, random_state)
    terminal.require_writable(out)

    console = terminal.printer()
    with terminal.progress() as progress:
        progress.add_task("Training the model", total=None)
        proba, y = _scores(random_state)
    outcomes: dict[tuple[str, float, str], list[tuple[float, float]]] = {}
    for trial in terminal.track(range(trials), trials, "Calibrating and testing"):
        for case, risk_and_size in _tested(proba, y, (random_state, trial)):
            outcomes.setdefault(case, []).append(risk_and_size)
    results = [
        {"loss": loss, "alpha": alpha, "growth": growth, "risk": risk, "size": size}
        for (loss, alpha, growth), each in outcomes.items()
        for risk, size in [[sum(column) / trials for column in zip(*each, strict=True)]]
    ]
    header = ("loss", "alpha", *(text for rule in _GROWTHS for text in (f"{rule} risk", "size")))
    cells: dict[tuple[str, str], list[str]] = {}
    for result in results:
        line = cells.setdefault((result["loss"], f"{result['alpha']:.2f}"), [])
        line += [f"{result['risk']:.4f}", f"{result['size']:.2f}"]
    terminal.print_table(
        console,
        TextTable("", header, [(*case, *numbers) for case, numbers in cells.items()]),
        f"Mean loss (risk) and mean number of labels in a set (size) on {len(y) // 2:,} test rows for three "
        f"growth rules (random halves: {trials})",
    )
    terminal.print_sentences(
        console,
        [
            "The risk is at most alpha in expectation for every rule, and varies around that from half to "
            "half. The size is what the guarantee costs: the frontier rule needs the fewest labels where the "
            "probabilities are right."
        ],
    )
    document = {
        "package_version": __version__,
        "random_state": random_state,
        "trials": trials,
        "results": results,
    }
    with terminal.writing_to(out):
        terminal.write_json(document, out / "results.json")
    written = ["results.json"]
    console.print()
    if not no_pictures and terminal.can_draw(console):
        with terminal.progress() as progress, terminal.writing_to(out):
            progress.add_task("Drawing the pictures", total=None)
            written += _draw(proba, y, random_state, out)
    console.print(f"Wrote {', '.join(written)} to {out}")


def _losses() -> dict[str, Any]:
    from ordinalrisk.losses.kinds import DivergenceLoss, WeightedLoss

    return {
        "coverage": WeightedLoss(),
        "weight i on i": WeightedLoss(range(10)),
        "double from 5": WeightedLoss([1] * 5 + [2] * 5),
        "divergence": DivergenceLoss(),
    }


def _scores(random_state: int) -> tuple[Any, Any]:
    """Return probabilities of a model that was trained on other rows, and the true labels."""
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
    from sklearn.model_selection import train_test_split

    from ordinalrisk.datasets import simulated_classes

    X, y = simulated_classes(random_state=random_state)
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=0.2, random_state=random_state)
    return QuadraticDiscriminantAnalysis().fit(X_train, y_train).predict_proba(X_rest), y_rest


def _halves(n_rows: int, random_state: Any) -> tuple[Any, Any]:
    import numpy as np

    order = np.random.default_rng(random_state).permutation(n_rows)
    return order[: n_rows // 2], order[n_rows // 2 :]


def _tested(
    proba: Any, y: Any, random_state: tuple[int, int]
) -> Iterator[tuple[tuple[str, float, str], tuple[float, float]]]:
    """Calibrate on one half; yield the risk and the mean size on the other for each loss, alpha and rule."""
    from ordinalrisk import metrics
    from ordinalrisk.controller import RiskController

    calibration, test = _halves(len(y), random_state)
    for name, loss in _losses().items():
        for growth in _GROWTHS:
            controller = RiskController(loss, growth=growth, check=False)  # the weights are the paper's
            controller.calibrate(proba[calibration], y[calibration])
            for alpha in _ALPHAS:
                sets = controller.predict_set(proba[test], alpha=alpha)
                yield (name, alpha, growth), (metrics.risk(y[test], sets, loss), metrics.mean_size(sets))


def _draw(proba: Any, y: Any, random_state: int, out: Path) -> list[str]:
    from ordinalrisk import plots
    from ordinalrisk.controller import RiskController
    from ordinalrisk.files.atomic import replacing

    calibration, test = _halves(len(y), (random_state, 0))
    controller = RiskController(alpha=_PICTURED).calibrate(proba[calibration], y[calibration])
    sets = controller.predict_set(proba[test])
    pictures: dict[str, Any] = {
        "intervals.png": plots.plot_intervals(sets, y[test], proba[test]),
        "sizes.png": plots.plot_set_sizes(sets),
        "risk_curve.png": plots.plot_risk_curve(controller),
    }
    for name, axes in pictures.items():
        with replacing(out / name) as temporary:
            axes.figure.savefig(temporary, dpi=120, format="png")
    return [*pictures]
