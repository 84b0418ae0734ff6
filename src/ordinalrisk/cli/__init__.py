"""The command line: parse, call the library, print.

What is heavy is imported by the command that needs it, so that ``--help`` and ``--version`` answer at once.
"""

from __future__ import annotations

import json
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ordinalrisk import __version__

if TYPE_CHECKING:
    from rich.progress import Progress

    from ordinalrisk.experiments.protocol import Summary

_WIDTH = 80
_LARGEST_SEED = 2**32 - 1
_INSTALL_PLOTS = 'pip install "ordinalrisk[plots]"'

app = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ordinalrisk {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Prediction intervals for ordinal classifiers whose expected loss is guaranteed.

    \b
    Examples:
      ordinalrisk demo                the paper's simulation, in half a minute
      ordinalrisk demo --trials 10    a quick look
      ordinalrisk demo --help         the options
    """  # noqa: D301 - a backspace keeps the lines of the paragraph apart


@app.command(short_help="Run the paper's simulation.")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for results.json and the pictures.")] = Path("demo"),
    trials: Annotated[int, typer.Option(help="Random halves to average over.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the data, the network and the halves.")] = 0,
    no_pictures: Annotated[bool, typer.Option("--no-pictures", help="Write results.json only.")] = False,
) -> None:
    """Run the paper's experiment on simulated data and compare three growth rules.

    Ten overlapping classes, a small network, four losses. Half of the rows calibrate and the other half
    tests, many times over. The first run also compiles, which takes a little longer.

    \b
    Examples:
      ordinalrisk demo
      ordinalrisk demo --trials 10 --out quick
      ordinalrisk demo --seed 1 --no-pictures
    """  # noqa: D301
    if trials < 1:
        _fail(f"--trials must be at least 1; got {trials}.", code=2)
    if not 0 <= seed <= _LARGEST_SEED:
        _fail(f"--seed must lie between 0 and {_LARGEST_SEED}; got {seed}.", code=2)
    with _writing_to(out):
        _require_writable(out)
    _demo(out, trials, seed, with_pictures=not no_pictures)


def _demo(out: Path, trials: int, seed: int, *, with_pictures: bool) -> None:
    from rich.console import Console

    from ordinalrisk.atomic import replacing
    from ordinalrisk.datasets import simulated_classes
    from ordinalrisk.experiments import figures, simulated
    from ordinalrisk.experiments.protocol import run_trials, summarise

    with _progress() as progress:
        progress.add_task("Training the network", total=None)
        X, y = simulated_classes(seed=seed)
        scores = simulated.network_scores(X, y, seed)
    outcomes = run_trials(
        *scores,
        simulated.SCENARIOS,
        growths=simulated.GROWTHS,
        alphas=simulated.ALPHAS,
        trials=trials,
        seed=seed,
    )
    with _progress() as progress:
        results = summarise(progress.track(outcomes, trials, description="Calibrating and testing"))

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    console.print(f"Means over random halves of {len(scores.y):,} simulated rows (trials: {trials})\n")
    for i, line in enumerate(_table(results, simulated.MEANING)):
        console.print(line, style="bold" if i < 2 else None)
    console.print()
    for sentence in _reading(results):
        console.print(textwrap.fill(sentence, min(console.width, _WIDTH)))

    document = {
        "experiment": "simulated",
        "package_version": __version__,
        "seed": seed,
        "trials": trials,
        "rows": len(scores.y),
        "scenarios": {name: loss.to_dict() for name, loss in simulated.SCENARIOS.items()},
        "results": [asdict(result) for result in results],
    }
    written = ["results.json"]
    with _writing_to(out), replacing(out / "results.json") as temporary:
        temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if with_pictures and find_spec("matplotlib") is None:
        console.print(f"\nNo pictures without matplotlib: {_INSTALL_PLOTS}")
    elif with_pictures:
        with _progress() as progress, _writing_to(out):
            progress.add_task("Drawing the pictures", total=None)
            for name, figure in simulated.pictures(X, y, scores, results, seed).items():
                figures.save(figure, out / f"{name}.png")
                written.append(f"{name}.png")
    console.print(f"\nWrote {', '.join(written)} to {out}")


def _table(results: Sequence[Summary], meaning: Mapping[str, str]) -> Iterator[str]:
    """The lines of the table: a header of two, then a block for each scenario."""
    rules = list(dict.fromkeys(result.growth for result in results))
    yield " " * 31 + "".join(f"{rule:>16}" for rule in rules)
    yield f"{'scenario':<24}  alpha" + "      risk  size" * len(rules)
    cell = {(result.scenario, result.alpha, result.growth): result for result in results}
    for scenario, alphas in _grouped((result.scenario, result.alpha) for result in results):
        yield ""
        for alpha in alphas:
            name = f"{scenario} {meaning[scenario]}" if alpha == alphas[0] else ""
            row = [cell[scenario, alpha, rule] for rule in rules]
            yield f"{name:<24}   {alpha:.2f}" + "".join(f"    {r.risk:.4f}  {r.size:4.2f}" for r in row)


def _reading(results: Sequence[Summary]) -> Iterator[str]:
    """What the table says, in sentences that follow from its numbers."""
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


def _progress() -> Progress:
    """A bar that goes away, on standard error so that the output can be piped; none without a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _require_writable(folder: Path) -> None:
    """Make the folder, and find out before the work rather than after it if nothing can be written there."""
    if folder.is_file():
        _fail(f"--out: {folder} is a file, not a folder.", code=2)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


@contextmanager
def _writing_to(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        _fail(f"--out: can't write to {folder} ({error.strerror or error}).", code=1)


def _fail(message: str, code: int) -> NoReturn:
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(code)
