"""``python -m reproduction``: the paper's experiments, compared with the published numbers."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ordinalrisk import __version__
from ordinalrisk.cli import terminal

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

    from reproduction.image_scores import SplitImages
    from reproduction.images import ImageData
    from reproduction.protocol import Experiment
    from reproduction.run import Reproduction
    from reproduction.scores import Scores

_OUT = Path("reproduced")
_WHERE = {
    "utkface": "docs/scores/utkface.csv.gz in the source repository has those of a model trained on it",
    "diabetic-retinopathy": "the authors' scores are in the repository that the paper names, "
    "github.com/yx8njit/ordinal-conformal-risk-control",
}


app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


class Which(StrEnum):
    """The experiments of the paper."""

    simulated = "simulated"
    utkface = "utkface"
    diabetic_retinopathy = "diabetic-retinopathy"
    all = "all"


class ScoredExperiment(NamedTuple):
    """An experiment on one model's scores, with what there is to show of its data."""

    experiment: Experiment
    scores: Scores
    images: ImageData | None = None
    points: tuple[Any, Any] | None = None
    file: Path | None = None


@app.command()
@terminal.stoppable
def reproduce(
    which: Annotated[Which, typer.Argument(help="Which experiment.")],
    scores: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="CSV of scores as released by the authors, or with the header name,label,logit_0,.. "
            "Repeat for more.",
        ),
    ] = None,
    images: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="UTKFace folder or zip, Kaggle retinopathy folder, or retinamnist.npz: a ResNet-34 is "
            "trained on some and scores the others. With their --scores, only to show examples.",
        ),
    ] = None,
    trials: Annotated[int, typer.Option(help="Random halves to average over.")] = 100,
    random_state: Annotated[int, typer.Option(help="Seed of data, training and halves.")] = 0,
    growth: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="Growth rule; repeat for more. The published numbers are compared with the first. "
            "[default: paper, adaptive, frontier]",
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes of the training over the images.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the page, the figures and the scores.")] = _OUT,
    json: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="All results as JSON. [default: reproduction.json in OUT]"),
    ] = None,
    no_pictures: Annotated[bool, typer.Option("--no-pictures", help="Draw no figures.")] = False,
) -> None:
    """Run the paper's experiments and compare the results with the published ones.

    The simulated experiment draws its data and trains its network here, and also runs on --scores if given.
    The other two need --scores or --images. Tables are printed; the page reproduction.md, figures as PNG and
    SVG and all results as JSON go to the folder OUT.

    \b
    Examples:
      python -m reproduction simulated
      python -m reproduction diabetic-retinopathy --scores grades.csv
      python -m reproduction utkface --images UTKFace.zip
      python -m reproduction all --scores a.csv --scores b.csv --trials 10
    """  # noqa: D301
    terminal.require_trials_and_seed(trials, random_state)
    _require_options(which, growth or [], images or [], epochs)
    results_file = json or out / "reproduction.json"
    terminal.require_writable(out)
    if json is not None:
        terminal.require_writable_file(json, "--json")

    from reproduction.page import page
    from reproduction.protocol import GROWTHS
    from reproduction.run import reproduce as run_experiment

    console = terminal.printer()
    try:
        runs = _runs(console, which, scores or [], images or [], epochs, random_state, out)
        results = []
        for run in runs:
            with terminal.noting_warnings(console):
                result = run_experiment(
                    run.experiment,
                    run.scores,
                    growths=growth or GROWTHS,
                    trials=trials,
                    seed=random_state,
                    track=terminal.track,
                )
            results.append(result)
            _print_result(console, result)
    except (ValueError, OSError, ImportError) as error:
        terminal.fail(str(error), code=2)

    command = _command(which, scores or [], images or [], growth or [], trials, random_state, epochs, out)
    document = {
        "package_version": __version__,
        "command": command,
        "reproductions": [result.to_dict() for result in results],
    }
    with terminal.writing_to(results_file, "--json" if json else "--out"):
        terminal.write_json(document, results_file)
    with terminal.writing_to(out):
        pictures = {} if no_pictures or not terminal.can_draw(console) else _draw(runs, results, out)
        slips = "design/paper-slips.md" if (out / "design" / "paper-slips.md").is_file() else None
        _write_page(page(results, pictures, command, _notes(runs, out), slips), out)
    console.print(f"Wrote reproduction.md and {sum(map(len, pictures.values()))} figures to {out}")
    console.print(f"Wrote all results to {results_file}")


def _require_options(
    which: Which, growths: Sequence[str], images: Sequence[Path], epochs: int | None
) -> None:
    from ordinalrisk.growth.rules import GROWTH_RULES

    for rule in growths:
        if rule not in GROWTH_RULES:
            terminal.fail(
                f"--growth: {rule!r} is not known; the rules are {', '.join(GROWTH_RULES)}.", code=2
            )
    if len(set(growths)) < len(growths):
        terminal.fail("--growth: each rule at most once.", code=2)
    if images and which is Which.simulated:
        terminal.fail("--images: the simulated experiment has no images.", code=2)
    if epochs is not None and not images:
        terminal.fail("--epochs: there is nothing to train on without --images.", code=2)
    if epochs is not None and epochs < 1:
        terminal.fail(f"--epochs must be at least 1; got {epochs}.", code=2)


def _runs(
    console: Console,
    which: Which,
    score_files: Sequence[Path],
    image_paths: Sequence[Path],
    epochs: int | None,
    random_state: int,
    out: Path,
) -> list[ScoredExperiment]:
    """What to run, in the order of the paper's tables; files are read before anything is trained."""
    from reproduction.scores import read_scores

    modules = _modules()
    wanted = list(modules) if which is Which.all else [which.value]
    runs = []
    for file in score_files:
        scores = read_scores(file)
        experiment = _experiment_of(scores, [modules[name].EXPERIMENT for name in wanted])
        runs.append(ScoredExperiment(experiment, scores, file=file))
    for key in {run.scores.key for run in runs}:
        if key.endswith("-trained"):
            raise ValueError(f"--scores: rename {key}; figures of models trained here are called so.")
        if sum(run.scores.key == key for run in runs) > 1:
            raise ValueError(f"--scores: more than one file is called {key}; rename one.")
    named = {run.experiment.name for run in runs} | {_experiment_at(path, which) for path in image_paths}
    if missing := [name for name in wanted if name not in named | {"simulated"}]:
        where = "; ".join(_WHERE[name] for name in missing)
        need = "needs" if len(missing) == 1 else "need"
        raise ValueError(f"{' and '.join(missing)} {need} --scores FILE or --images PATH: {where}.")
    loaded = [
        (
            modules[_experiment_at(path, which)],
            _split_images(console, modules[_experiment_at(path, which)], path, random_state),
        )
        for path in image_paths
    ]
    for module, split in loaded:
        runs = _with_images(console, runs, module.EXPERIMENT, split, epochs, random_state, out)
    if "simulated" in wanted:
        runs.append(_simulated_here(random_state))
    return sorted(runs, key=lambda run: wanted.index(run.experiment.name))


def _split_images(console: Console, module: ModuleType, path: Path, random_state: int) -> SplitImages:
    split: SplitImages = module.split_images(
        path, random_state, lambda names: terminal.track(names, len(names), f"Reading {path.name}")
    )
    terminal.print_sentences(console, [f"{path.name}: {split.data.summary}."])
    console.print()
    return split


def _with_images(
    console: Console,
    runs: list[ScoredExperiment],
    experiment: Experiment,
    split: SplitImages,
    epochs: int | None,
    random_state: int,
    out: Path,
) -> list[ScoredExperiment]:
    """The runs, those with scores of these images with the images to show; a new one if none has."""
    from reproduction.held_out import write_split
    from reproduction.image_scores import train_and_score
    from reproduction.scores import write_scores

    known = set(split.data.names)
    shown = [
        run._replace(images=split.data)
        if run.experiment.name == experiment.name and known.issuperset(run.scores.names)
        else run
        for run in runs
    ]
    if shown != runs:
        return shown
    console.print(f"Training a ResNet-34 on {len(split.train):,} of them, epochs: {epochs or split.epochs}\n")
    scores = train_and_score(
        split, len(experiment.classes), epochs=epochs, seed=random_state, track=terminal.track
    )
    with terminal.writing_to(out):
        (out / "scores").mkdir(exist_ok=True)
        write_scores(scores, out / "scores" / f"{split.task}.csv.gz")
        write_split(
            out / "scores" / f"{split.task}-split.json",
            split.data.names,
            split.train,
            split.held,
            random_state,
        )
    console.print(f"Wrote scores/{split.task}.csv.gz and scores/{split.task}-split.json to {out}\n")
    return [*runs, ScoredExperiment(experiment, scores, split.data)]


def _simulated_here(random_state: int) -> ScoredExperiment:
    from ordinalrisk.datasets import simulated_classes
    from reproduction import simulated

    with terminal.progress() as progress:
        progress.add_task("Training the network", total=None)
        X, y = simulated_classes(random_state=random_state)
        return ScoredExperiment(
            simulated.EXPERIMENT, simulated.network_scores(X, y, random_state), points=(X, y)
        )


def _print_result(console: Console, result: Reproduction) -> None:
    from reproduction import remarks, tables

    scores = result.scores
    console.print(f"{result.experiment.title}: {result.source}", style="bold")
    console.print(
        f"{len(scores.y):,} rows, accuracy {scores.accuracy:.3f}, mean absolute error "
        f"{scores.mean_absolute_error:.3f} labels; trials: {result.trials}\n"
    )
    published = tables.published_table(result)
    terminal.print_table(console, published, published.caption)
    _print_points(console, [remarks.agreement(result), *remarks.differences(result)])
    console.print()
    for table in tables.rules_tables(result):
        terminal.print_table(console, table, table.caption)
    _print_points(console, [*remarks.findings(result), remarks.class_spread(result)])
    console.print()
    for table in (tables.centroid_table(result), tables.weight_table(result), *tables.class_tables(result)):
        terminal.print_table(console, table, table.caption)


def _print_points(console: Console, sentences: Sequence[str]) -> None:
    width = min(console.width, terminal.WIDTH)
    for sentence in sentences:
        console.print(textwrap.fill(sentence, width, initial_indent="- ", subsequent_indent="  "))


def _draw(
    runs: Sequence[ScoredExperiment], results: Sequence[Reproduction], out: Path
) -> dict[str, list[tuple[str, str]]]:
    """Draw and write every figure; names and paths relative to ``out``, by the key of the scores."""
    from reproduction.figures import save

    (out / "figures").mkdir(exist_ok=True)
    pictures: dict[str, list[tuple[str, str]]] = {}
    total = sum(4 + (run.images is not None) + (run.points is not None) for run in runs)
    for key, name, figure in terminal.track(_figures(runs, results), total, "Drawing"):
        path = f"figures/{key}-{name}"
        save(figure, out / f"{path}.png")
        save(figure, out / f"{path}.svg")
        pictures.setdefault(key, []).append((name, f"{path}.png"))
    return pictures


def _figures(
    runs: Sequence[ScoredExperiment], results: Sequence[Reproduction]
) -> Iterator[tuple[str, str, Figure]]:
    from reproduction.examples import held_out_examples
    from reproduction.experiment_figures import pictures
    from reproduction.figures import data_figure

    for run, result in zip(runs, results, strict=True):
        if run.points is not None:
            yield run.scores.key, "data", data_figure(*run.points)
        examples = None if run.images is None else held_out_examples(result, run.images)
        for name, figure in pictures(result, examples):
            yield run.scores.key, name, figure


def _write_page(text: str, out: Path) -> None:
    from ordinalrisk.files.atomic import replacing

    with replacing(out / "reproduction.md") as temporary:
        temporary.write_text(text, encoding="utf-8")


def _notes(runs: Sequence[ScoredExperiment], out: Path) -> dict[str, str]:
    """The README for each file of scores in a folder below ``out``, by the key of the scores."""
    beside = {run.scores.key: run.file.parent / "README.md" for run in runs if run.file is not None}
    return {
        key: readme.resolve().relative_to(out.resolve()).as_posix()
        for key, readme in beside.items()
        if readme.is_file() and readme.resolve().is_relative_to(out.resolve())
    }


def _modules() -> dict[str, ModuleType]:
    from reproduction import diabetic_retinopathy, simulated, utkface

    return {module.EXPERIMENT.name: module for module in (simulated, utkface, diabetic_retinopathy)}


def _experiment_of(scores: Scores, experiments: Sequence[Experiment]) -> Experiment:
    """The experiment with as many classes as the scores have."""
    n_classes = scores.logits.shape[1]
    for experiment in experiments:
        if len(experiment.classes) == n_classes:
            return experiment
    expected = ", ".join(
        f"{experiment.name} has {len(experiment.classes)} classes" for experiment in experiments
    )
    raise ValueError(f"--scores: {expected}; got {scores.source} with {n_classes} classes.")


def _experiment_at(path: Path, which: Which) -> str:
    """The experiment that images belong to: the one asked for, or by what is at the path."""
    if which is not Which.all:
        return which.value
    is_retina = path.suffix == ".npz" or (path / "trainLabels.csv").is_file()
    return "diabetic-retinopathy" if is_retina else "utkface"


def _command(
    which: Which,
    scores: Sequence[Path],
    images: Sequence[Path],
    growths: Sequence[str],
    trials: int,
    random_state: int,
    epochs: int | None,
    out: Path,
) -> str:
    """The command as others can type it, without the folders of this machine."""
    parts = [f"python -m reproduction {which.value}"]
    parts += [f"--scores {_portable(path)}" for path in scores]
    parts += [f"--images {_portable(path)}" for path in images]
    parts += [f"--growth {rule}" for rule in growths]
    parts += [f"--trials {trials}"] if trials != 100 else []
    parts += [f"--random-state {random_state}"] if random_state != 0 else []
    parts += [f"--epochs {epochs}"] if epochs else []
    parts += [f"--out {_portable(out)}"] if out != _OUT else []
    return " ".join(parts)


def _portable(path: Path) -> str:
    return shlex.quote(path.name if path.is_absolute() or ".." in path.parts else path.as_posix())
