"""The options that commands on files share, and what their text means."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordinalrisk.cli import terminal

if TYPE_CHECKING:
    from ordinalrisk.controller import RiskController
    from ordinalrisk.exact import Number
    from ordinalrisk.losses import CostTableLoss, IntervalLoss

INSTALL_FILES = 'pip install "ordinalrisk[files]"'
INSTALL_REPORT = 'pip install "ordinalrisk[report]"'


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


def require_input(*paths: Path) -> None:
    """Find out at once if a file is not there."""
    for path in paths:
        if str(path) != "-" and not path.exists():
            terminal.fail(f"there is no file {path}.", code=2)


def require_format(out: Path, given: Format | None) -> None:
    """Find out before the work if a file's name does not tell its format."""
    from ordinalrisk.engines.formats import FORMATS, format_by_name

    if given is None and format_by_name(out) is None:
        known = ", ".join(FORMATS)
        terminal.fail(f"--out: {out} does not tell a format; end it in one of {known}.", code=2)


def loaded(path: Path) -> RiskController:
    """The saved calibration, or one line and exit code 1."""
    from ordinalrisk.controller import RiskController

    if not path.exists():
        terminal.fail(f"there is no file {path}.", code=2)
    try:
        return RiskController.load(path)
    except OSError as error:
        terminal.fail(f"{path}: can't be read ({error.strerror}).", code=1)
    except ValueError as error:
        hint = "" if path.suffix == ".json" else " The calibration comes first, then the scores."
        terminal.fail(" ".join(str(error).split()) + hint, code=1)


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
        return [int(part) for part in parts]
    return parts


def numbers(text: str | None, option: str) -> list[Any] | None:
    """Numbers separated by commas, meaning the decimals that are written."""
    return None if text is None else [number(part, option) for part in text.split(",")]


def number(text: str, option: str) -> Any:
    """A number, meaning the decimals that are written."""
    from ordinalrisk.exact import as_number

    try:
        return as_number(text.strip(), option)
    except ValueError as error:
        terminal.fail(str(error), code=2)


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
    from ordinalrisk.losses import DivergenceLoss, WeightedLoss

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
    from ordinalrisk.engines.formats import FileError
    from ordinalrisk.losses import CostTableLoss

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
    from ordinalrisk.engines.formats import FileError
    from ordinalrisk.exact import as_number

    with open(path, newline="", encoding="utf-8-sig") as file:
        cells = [[cell.strip() for cell in row] for row in csv.reader(file) if any(row)]
    if not cells:
        raise FileError(f"{path}: is empty; a row of costs for each class is needed.")
    labels = [str(label) for label in classes]
    if (cells and not _is_number(cells[0][-1])) or len(cells) == len(labels) + 1:
        header = cells.pop(0)[-len(labels) :]
        _require_labels(header, labels, f"{path}: the header")
    if cells and all(len(row) == len(labels) + 1 for row in cells):
        _require_labels([row.pop(0) for row in cells], labels, f"{path}: the first column")
    table = []
    for y, row in enumerate(cells):
        for k, cell in enumerate(row):
            if not _is_number(cell):
                raise FileError(f"{path}: row {y + 1}, column {k + 1}: {cell!r} is not a number; correct it.")
        table.append([as_number(cell) for cell in row])
    return table


def _require_labels(found: list[str], labels: list[str], where: str) -> None:
    from ordinalrisk.engines.formats import FileError

    if found != labels:
        raise FileError(
            f"{where} is {', '.join(found)}, the classes are {', '.join(labels)}; make them equal."
        )


def _is_number(text: str) -> bool:
    try:
        Fraction(text)
    except (ValueError, ZeroDivisionError):
        return False
    return True
