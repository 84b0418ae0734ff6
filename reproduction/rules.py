"""``python -m reproduction.rules``: compare three growth rules on the paper's simulated data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ordinalrisk import __version__
from ordinalrisk.cli import terminal

if TYPE_CHECKING:
    from reproduction.protocol import TrialMeans


app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@terminal.stoppable
def rules(
    out: Annotated[Path, typer.Option(help="Folder for results.json and the pictures.")] = Path("reproduced"),
    trials: Annotated[int, typer.Option(help="Random halves to average over.")] = 100,
    random_state: Annotated[int, typer.Option(help="Seed of the data, the network and the halves.")] = 0,
    no_pictures: Annotated[bool, typer.Option("--no-pictures", help="Write results.json only.")] = False,
) -> None:
    """Run the paper's experiment on simulated data and compare three growth rules.

    Ten overlapping classes, a small network, four losses. Half of the rows calibrate and the other half
    tests, many times over.

    \b
    Examples:
      python -m reproduction.rules
      python -m reproduction.rules --trials 10 --out quick
      python -m reproduction.rules --random-state 1 --no-pictures
    """  # noqa: D301
    terminal.require_trials_and_seed(trials, random_state)
    terminal.require_writable(out)

    from ordinalrisk.datasets import simulated_classes
    from reproduction import simulated
    from reproduction.protocol import GROWTHS, means_over_trials, run_trials
    from reproduction.tables import rules_table

    experiment = simulated.EXPERIMENT
    with terminal.progress() as progress:
        progress.add_task("Training the network", total=None)
        X, y = simulated_classes(random_state=random_state)
        scores = simulated.network_scores(X, y, random_state)
    outcomes = run_trials(
        scores.proba(),
        scores.y,
        experiment.scenarios,
        growths=GROWTHS,
        alphas=experiment.alphas,
        trials=trials,
        seed=random_state,
    )
    results = means_over_trials(terminal.track(outcomes, trials, "Calibrating and testing"))

    console = terminal.printer()
    terminal.print_table(
        console,
        rules_table(results, experiment, ""),
        f"Risk of each growth rule and mean size of its sets, averaged over random halves of "
        f"{len(scores.y):,} simulated rows (trials: {trials})",
    )
    terminal.print_sentences(console, _reading(results))

    document = {
        "experiment": experiment.name,
        "package_version": __version__,
        "seed": random_state,
        "trials": trials,
        "rows": len(scores.y),
        "scenarios": {name: loss.to_dict() for name, loss in experiment.scenarios.items()},
        "results": [asdict(result) for result in results],
    }
    written = ["results.json"]
    with terminal.writing_to(out):
        terminal.write_json(document, out / "results.json")
    console.print()
    if not no_pictures and terminal.can_draw(console):
        from reproduction import figures, rule_figures

        with terminal.progress() as progress, terminal.writing_to(out):
            progress.add_task("Drawing the pictures", total=None)
            pictures = rule_figures.demo_pictures(X, y, scores, results, experiment, random_state)
            for name, figure in pictures.items():
                figures.save(figure, out / f"{name}.png")
                written.append(f"{name}.png")
    console.print(f"Wrote {', '.join(written)} to {out}")


def _reading(results: Sequence[TrialMeans]) -> Iterator[str]:
    """Sentences about the table, computed from its numbers."""
    highest = max(results, key=lambda result: result.risk - result.alpha)
    error = "" if highest.risk_se is None else f" (standard error {highest.risk_se:.4f})"
    yield (
        "Risk, the mean loss on the test halves, is at most alpha in expectation, and varies around that "
        f"from half to half. Of the {len(results)} means here, the one furthest above its alpha exceeds it "
        f"by {max(highest.risk - highest.alpha, 0):.4f}{error}."
    )
    size = {(result.scenario, result.alpha, result.growth): result.size for result in results}
    case = max(
        ((r.scenario, r.alpha) for r in results), key=lambda c: size[*c, "paper"] - size[*c, "frontier"]
    )
    yield (
        "Size, the mean number of labels in a set, is what that costs. The frontier rule needs "
        f"{size[*case, 'frontier']:.2f} labels where the paper's needs {size[*case, 'paper']:.2f} "
        f"({case[0]} at alpha = {case[1]:.2f})."
    )
    largest: dict[tuple[str, float], float] = {}
    for r in results:
        largest[r.scenario, r.alpha] = max(r.size, largest.get((r.scenario, r.alpha), 1))
    for scenario, alphas in _grouped(case for case, labels in largest.items() if labels == 1):
        risk = next(r.risk for r in results if (r.scenario, r.alpha) == (scenario, alphas[-1]))
        yield (
            f"{scenario} saturates at {risk:.4f} from alpha = {alphas[0]:.2f} on: "
            "every set is a single label."
        )


def _grouped(pairs: Iterable[tuple[str, float]]) -> list[tuple[str, list[float]]]:
    """The distinct second items of each first item, in order of appearance."""
    groups: dict[str, dict[float, None]] = {}
    for name, value in pairs:
        groups.setdefault(name, {})[value] = None
    return [(name, list(values)) for name, values in groups.items()]


if __name__ == "__main__":
    terminal.run(app, "python -m reproduction.rules")
