"""The options that commands on files share, and what their text means."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordinalrisk.cli import terminal

if TYPE_CHECKING:
    from ordinalrisk.controller import RiskController
    from ordinalrisk.files.places import StoredFile
    from ordinalrisk.inputs.numbers import Number
    from ordinalrisk.losses.kinds import CostTableLoss, IntervalLoss

INSTALL_FILES = 'pip install "ordinalrisk[files]"'
INSTALL_REPORT = 'pip install "ordinalrisk[report]"'


IN_OPTIONS = {
    "delta": "--delta",
    "bound": "--bound",
    "condition_on": "--per-class",
    "groups": "--group",
    "clusters": "--cluster-col",
    "sample_weight": "--weight-col",
    "class_weight": "--class-weights",
    "randomize": "--randomize",
    "more_alphas": "--more-alphas",
}
"""What the library calls an option, and what the command line does."""


class Bound(StrEnum):
    """The bounds behind a confidence."""

    auto = "auto"
    binomial = "binomial"
    hoeffding_bentkus = "hoeffding_bentkus"
    betting = "betting"
    dkw = "dkw"


class UnseenGroups(StrEnum):
    """What rows get whose group has no calibration rows."""

    error = "error"
    full = "full"


class Format(StrEnum):
    """The formats of files."""

    csv = "csv"
    parquet = "parquet"
    arrow = "arrow"
    jsonl = "jsonl"


Scores = Annotated[
    str | None,
    typer.Option(metavar="COLUMNS", help="Columns of the scores, in label order: p0,p1,.. or 'p*'."),
]
Label = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of the true label.")]
Logits = Annotated[
    bool | None,
    typer.Option(
        "--logits/--probabilities",
        help="What the scores are. [default: by their names, or as calibrated]",
        show_default=False,
    ),
]
Rescale = Annotated[
    bool, typer.Option("--rescale", help="Divide each row of scores by its sum: rounded ones, counts.")
]
Classes = Annotated[str | None, typer.Option(metavar="NAMES", help="The labels in order: None,Mild,Severe.")]
Alpha = Annotated[str | None, typer.Option(metavar="A", help="Another risk than the calibrated one.")]
Group = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of the groups. [default: as calibrated]")
]
ClusterColumn = Annotated[
    str | None,
    typer.Option("--cluster-col", metavar="COLUMN", help="Column of the clusters. [default: as calibrated]"),
]
WeightColumn = Annotated[
    str | None,
    typer.Option("--weight-col", metavar="COLUMN", help="Column of the weights. [default: as calibrated]"),
]
Seed = Annotated[
    int | None, typer.Option(metavar="N", help="For a randomized calibration: equal seeds, equal sets.")
]
Sign = Annotated[
    Path | None,
    typer.Option(metavar="KEYFILE", help="Sign the calibration with this private key, in FILE.sig."),
]
Verify = Annotated[
    Path | None,
    typer.Option(metavar="KEYFILE", help="Use the calibration only if this public key verifies it."),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="WHERE", help="Run on a Dask cluster: a scheduler's address, local, or local:WORKERS."
    ),
]
InputFormat = Annotated[
    Format | None, typer.Option(help="Format of the input. [default: by its name, else by its first bytes]")
]
OutputFormat = Annotated[
    Format | None, typer.Option(help="Format of the output. [default: by its name, else csv]")
]


def require_files() -> None:
    """Commands on files need pyarrow."""
    if find_spec("pyarrow") is None:
        terminal.fail(f"files are read with pyarrow, which is not installed: {INSTALL_FILES}", code=1)


def place(text: str) -> Path | StoredFile:
    """The file that an option or an argument names: on this machine, or by its URL."""
    from ordinalrisk.files.places import located

    with terminal.bad_data_is_one_line():
        return located(text)


def require_input(*paths: Path | StoredFile) -> None:
    """Find out at once if a file is not there."""
    for path in paths:
        with terminal.bad_data_is_one_line():
            is_there = str(path) == "-" or path.exists()
        if not is_there:
            terminal.fail(f"there is no file {path}.", code=2)


def require_format(out: Path | StoredFile, given: Format | None) -> None:
    """Find out before the work if a file's name does not tell its format."""
    from ordinalrisk.files.formats import FORMATS, format_by_name

    if given is None and format_by_name(out.name) is None:
        known = ", ".join(FORMATS)
        terminal.fail(f"--out: {out} does not tell a format; end it in one of {known}.", code=2)


def loaded(path: Path | StoredFile, key: Path | None = None) -> RiskController:
    """The saved calibration, or one line and exit code 1."""
    from ordinalrisk.controller import RiskController
    from ordinalrisk.saving.signing import public_key

    if str(path) == "-":
        terminal.fail(f"there is no file {path}.", code=2)
    require_input(path)
    if key is not None:
        _require_key("--verify", public_key, key)
    try:
        return RiskController.load(path, key=key)
    except OSError as error:
        terminal.fail(f"{path}: can't be read ({error.strerror}).", code=1)
    except ValueError as error:
        hint = "" if path.suffix == ".json" else " The calibration comes first, then the scores."
        terminal.fail(" ".join(str(error).split()) + hint, code=1)


def require_private_key(key: Path, out: Path | StoredFile) -> None:
    """Find out before the work if nothing can be signed."""
    from ordinalrisk.saving.signing import private_key, signature_place

    if str(out) == "-":
        terminal.fail("--sign: the signature goes beside a file; name one with --out.", code=2)
    _require_key("--sign", private_key, key)
    terminal.require_writable_file(signature_place(out), "--sign", key)


def _require_key(option: str, read: Callable[[Path], Any], key: Path) -> None:
    try:
        read(key)
    except (ImportError, ValueError) as error:
        terminal.fail(f"{option}: {error}", code=1 if isinstance(error, ImportError) else 2)


def names(text: str | None) -> list[Any] | None:
    """Labels separated by commas: whole numbers if all are.

    Examples
    --------
    >>> names("1,2,3"), names("None, Mild, Severe")
    ([1, 2, 3], ['None', 'Mild', 'Severe'])
    """
    if text is None:
        return None
    try:
        parts = [part.strip() for part in next(csv.reader([text]))]
    except csv.Error as error:
        terminal.fail(f"--classes can't be read ({error}); write None,Mild,Severe.", code=2)
    if not any(parts):
        terminal.fail("--classes names no label; write all labels in order: None,Mild,Severe.", code=2)
    if all(re.fullmatch("-?(0|[1-9][0-9]*)", part) for part in parts):
        return [int(number(part, "--classes")) for part in parts]
    return parts


def numbers(text: str | None, option: str) -> list[Any] | None:
    """Numbers separated by commas, meaning the decimals that are written."""
    return None if text is None else [number(part, option) for part in text.split(",")]


def number(text: str, option: str) -> Any:
    """A number, meaning the decimals that are written."""
    from ordinalrisk.inputs.numbers import as_number

    try:
        return as_number(text.strip(), option)
    except ValueError as error:
        terminal.fail(str(error), code=2)


def alpha_of(text: str, classes: Sequence[Any]) -> Any:
    """The risk, or that of each class: ``0.1`` or ``None=0.1,Mild=0.1,Severe=0.01``."""
    from ordinalrisk.files.find_columns import listing, position_of_label

    if not is_by_class(text):
        return number(text, "--alpha")
    position, risks = position_of_label(classes), dict[Any, Any]()
    try:
        parts = next(csv.reader([text]))
    except csv.Error as error:
        terminal.fail(f"--alpha can't be read ({error}); write None=0.1,Mild=0.1,Severe=0.01.", code=2)
    for part in parts:
        name, equals, risk = (piece.strip() for piece in part.rpartition("="))
        at = position(name) if equals else None
        if at is None:
            wrong = f"{name!r} is none of the classes" if equals else f"{part.strip()!r} names no class"
            terminal.fail(f"--alpha: {wrong} {listing(classes)}; write CLASS=RISK for each.", code=2)
        if classes[at] in risks:
            terminal.fail(f"--alpha has class {name!r} more than once; give each class one risk.", code=2)
        risks[classes[at]] = number(risk, f"--alpha of {name}")
    for label in classes:
        if label not in risks:
            terminal.fail(
                f"--alpha has no risk for class {label!r}; give each of {listing(classes)} one.", code=2
            )
    return risks


def is_by_class(alpha: str) -> bool:
    """Whether a risk is given for each class."""
    return "=" in alpha


def another_alpha(text: str | None, controller: RiskController) -> Any:
    """Another risk than the calibrated one, if there is."""
    from ordinalrisk.curves.windows import NotKnownError

    if text is None:
        return None
    if is_by_class(text) and controller.condition_on is None:
        terminal.fail("--alpha by class needs a calibration with --per-class.", code=2)
    alpha = alpha_of(text, controller.classes_.tolist())
    try:
        controller.threshold_at(alpha)
    except NotKnownError as error:
        terminal.fail(in_options(error), code=2)
    except ValueError:
        pass  # to be said where it is used
    return alpha


def require_combination(used: dict[str, bool]) -> None:
    """Refuse options that can't be used together."""
    from ordinalrisk.calibration.combinations import require_theorem

    try:
        require_theorem(name for name, is_used in used.items() if is_used)
    except ValueError as error:
        terminal.fail(in_options(error), code=2)


def require_seed(seed: int | None, controller: RiskController) -> None:
    """Sets that a coin decides about need its seed, others none."""
    if controller.randomize and seed is None:
        terminal.fail("the calibration is randomized; give a --seed: equal seeds give equal sets.", code=2)
    if seed is not None and not controller.randomize:
        terminal.fail("--seed is for calibrations with --randomize; leave it out.", code=2)
    if seed is not None and seed < 0:
        terminal.fail(f"--seed must be 0 or larger; got {seed}.", code=2)


def in_options(error: ValueError) -> str:
    """What the library says, in the words of the command line.

    Examples
    --------
    >>> in_options(ValueError("delta and sample_weight can't be used together."))
    "--delta and --weight-col can't be used together."
    """
    text = " ".join(str(error).split())
    text = re.sub("bound=[\"']([a-z_]+)[\"']", r"bound \1", text)
    return re.sub(rf"\b({'|'.join(IN_OPTIONS)})\b", lambda found: IN_OPTIONS[found[1]], text)


def loss_of(
    loss: str,
    weights: str | None,
    positions: str | None,
    power: str | None,
    under: str | None,
    over: str | None,
    natural_units: bool,
    classes: Sequence[Any],
) -> IntervalLoss:
    """The loss that the options describe."""
    from ordinalrisk.losses.kinds import DivergenceLoss, WeightedLoss

    distance = {"positions": positions, "power": power, "under": under, "over": over}
    kind = "weighted" if loss == "coverage" and weights is not None else loss
    given = {"weights": weights, **distance}
    allowed = {"weighted": {"weights"}, "divergence": set(distance)}.get(kind, set())
    for name, text in given.items():
        if text is not None and name not in allowed:
            terminal.fail(f"--{name} has no meaning for --loss {loss}.", code=2)
    normalize = not natural_units
    if kind == "coverage":
        return WeightedLoss(normalize=normalize)
    if kind == "weighted":
        if weights is None:
            terminal.fail("--loss weighted needs --weights, one for each class: --weights 1,1,2.", code=2)
        return WeightedLoss(numbers(weights, "--weights"), normalize)
    if kind == "divergence":
        parameters = {
            name: numbers(text, f"--{name}") if name == "positions" else number(text, f"--{name}")
            for name, text in distance.items()
            if text is not None
        }
        return DivergenceLoss(**parameters, normalize=normalize)
    if not Path(loss).is_file():
        terminal.fail(
            f"--loss {loss} is neither coverage, weighted nor divergence, nor a file of costs that is there.",
            code=2,
        )
    return table_loss(Path(loss), classes, normalize)


def table_loss(path: Path, classes: Sequence[Any], normalize: bool = True) -> CostTableLoss:
    """The loss whose cost table is in a CSV file."""
    from ordinalrisk.files.formats import FileError
    from ordinalrisk.losses.kinds import CostTableLoss

    try:
        loss = CostTableLoss(_costs_in(path, classes), normalize)
        loss.bound(len(classes))
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{path}: can't be read ({error.strerror}).") from None
    except (ValueError, csv.Error) as error:
        raise FileError(f"{path}: {error}") from None
    return loss


def _costs_in(path: Path, classes: Sequence[Any]) -> list[list[Number]]:
    """A cost table in a CSV file: numbers alone, or with the classes as its first row, column or both."""
    from ordinalrisk.files.formats import FileError
    from ordinalrisk.inputs.numbers import as_number, is_written_as_number, require_classes

    require_classes(len(classes))
    with open(path, newline="", encoding="utf-8-sig") as file:
        cells = [[cell.strip() for cell in row] for row in csv.reader(file) if any(row)]
    if not cells:
        raise FileError(f"{path}: is empty; a row of costs for each class is needed.")
    labels = [str(label) for label in classes]
    if (cells and not is_written_as_number(cells[0][-1])) or len(cells) == len(labels) + 1:
        header = cells.pop(0)[-len(labels) :]
        _require_labels(header, labels, f"{path}: the header")
    if cells and all(len(row) == len(labels) + 1 for row in cells):
        _require_labels([row.pop(0) for row in cells], labels, f"{path}: the first column")
    table = []
    for y, row in enumerate(cells):
        for k, cell in enumerate(row):
            if not is_written_as_number(cell):
                raise FileError(f"{path}: row {y + 1}, column {k + 1}: {cell!r} is not a number; correct it.")
        table.append([as_number(cell, f"row {y + 1}, column {k + 1}") for k, cell in enumerate(row)])
    return table


def _require_labels(found: list[str], labels: list[str], where: str) -> None:
    from ordinalrisk.files.formats import FileError

    if found != labels:
        raise FileError(
            f"{where} is {', '.join(found)}, the classes are {', '.join(labels)}; make them equal."
        )
