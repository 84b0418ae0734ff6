"""The options that commands on files share, and how to parse them."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from ordinalrisk.cli import terminal
from ordinalrisk.cli.option_names import in_options, with_options
from ordinalrisk.files.formats import FileError, format_to_write
from ordinalrisk.files.places import StoredFile, located

if TYPE_CHECKING:
    from ordinalrisk.controller import RiskController
    from ordinalrisk.inputs.numbers import Number
    from ordinalrisk.joint_controller import JointController
    from ordinalrisk.losses.kinds import CostTableLoss, IntervalLoss


class UnseenGroups(StrEnum):
    """What to predict for groups without calibration rows."""

    error = "error"
    full = "full"


class Unseen(StrEnum):
    """What to decide for groups without calibration rows."""

    error = "error"
    refer = "refer"


class Format(StrEnum):
    """The formats of files that are written."""

    csv = "csv"
    parquet = "parquet"
    arrow = "arrow"
    jsonl = "jsonl"


class ReadFormat(StrEnum):
    """The formats of files that are read."""

    csv = "csv"
    parquet = "parquet"
    arrow = "arrow"
    jsonl = "jsonl"
    excel = "excel"


CalibrationFile = Annotated[
    str, typer.Argument(metavar="CALIBRATION", help="The calibration, as written by calibrate.")
]
TestFiles = Annotated[
    list[str], typer.Argument(metavar="TEST...", help="Files with scores and known labels, or -.")
]
Scores = Annotated[
    str | None,
    typer.Option(metavar="COLUMNS", help="Columns of the scores, in label order: p0,p1,.. or 'p*'."),
]
Label = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of the true label.")]
Logits = Annotated[
    bool | None,
    typer.Option(
        "--logits/--probabilities",
        help="Kind of scores. [default: by their names, or as calibrated]",
        show_default=False,
    ),
]
Rescale = Annotated[
    bool, typer.Option("--rescale", help="Divide each row of scores by its sum (rounded scores, counts).")
]
ClassList = Annotated[
    str | None, typer.Option(metavar="NAMES", help="The labels in order: None,Mild,Severe.")
]
Alpha = Annotated[
    str | None, typer.Option(metavar="A", help="The risk, if it differs from the calibrated one.")
]
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
RandomState = Annotated[
    int | None, typer.Option(metavar="N", help="For a randomized calibration: seed of the random choices.")
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
    ReadFormat | None,
    typer.Option(help="Format of the input. [default: by its name, else by its first bytes]"),
]
Delimiter = Annotated[
    str | None,
    typer.Option(metavar="SIGN", help="Delimiter of CSV: ',', ';' or tab. [default: detected]"),
]
Decimal = Annotated[
    str | None, typer.Option(metavar="SIGN", help="The decimal sign: '.' or ','. [default: detected]")
]
Sheet = Annotated[
    str | None, typer.Option(metavar="NAME", help="The sheet of an Excel file. [default: the first]")
]
OutputFormat = Annotated[
    Format | None, typer.Option(help="Format of the output. [default: by its name, else csv]")
]

Keep = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        help="Columns to copy to the output: id,x* or '*'; '' for none. [default: all but the scores]",
    ),
]
Prefix = Annotated[str, typer.Option(metavar="TEXT", help="Prefix of the names of the new columns.")]
SafeCsv = Annotated[
    bool, typer.Option("--safe-csv", help="In CSV, put ' before text that spreadsheets run as a formula.")
]


class Command(TyperCommand):
    """A command whose help lists growth rules, losses and bounds, which are imported only for the help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse two columns of groups: the last one would win in silence."""
        if sum(word.partition("=")[0] == "--group" for word in args) > 1:
            terminal.fail("--group is given more than once; calibrate once for each column, then join.")
        return super().parse_args(ctx, args)

    def format_help(self, *arguments: Any) -> None:
        for parameter in self.params:
            parameter.help = with_names(parameter.help)  # type: ignore[attr-defined]
        super().format_help(*arguments)


def with_names(text: str) -> str:
    """Fill ``{growths}``, ``{losses}``, ``{bounds}`` and ``{maps}`` in a help text with the known names."""
    if "{" not in text:
        return text
    from ordinalrisk.calibration.confidence_bounds import BOUNDS
    from ordinalrisk.growth.rules import GROWTH_RULES
    from ordinalrisk.recalibration.choosing import METHODS

    lists = {"growths": GROWTH_RULES, "losses": _loss_names(), "bounds": BOUNDS, "maps": METHODS}
    return text.format_map({name: ", ".join(names) for name, names in lists.items()})


def _loss_names() -> list[str]:
    from ordinalrisk.losses.kinds import LOSSES

    return [*dict.fromkeys(n for loss in LOSSES.values() if loss.called for n in (loss.called, loss.kind))]


@contextmanager
def in_option_names() -> Iterator[None]:
    """Name options instead of parameters in errors about parameters."""
    try:
        yield
    except ValueError as error:
        if type(error) is not ValueError or "`" in str(error):  # files and clusters name options
            raise
        raise ValueError(in_options(error)) from None


def delimiter_of(text: str | None) -> str | None:
    """Return the sign of ``--delimiter``; a tab may be spelled out."""
    return "\t" if text in ("tab", r"\t") else text


def place(text: str) -> Path | StoredFile:
    with terminal.bad_data_is_one_line():
        return located(text)


def require_input(*paths: Path | StoredFile) -> None:
    for path in paths:
        with terminal.bad_data_is_one_line():
            is_there = str(path) == "-" or path.exists()
        if not is_there:
            terminal.fail(f"there is no file {path}.")


def require_format(out: Path | StoredFile, output_format: Format | None) -> None:
    try:
        format_to_write(out.name, output_format, out)
    except ValueError as error:
        terminal.fail(with_options(str(error)))


def loaded_with_joint(
    path: Path | StoredFile, key: Path | None, random_state: int | None
) -> RiskController | JointController:
    """Load a calibration or a joint calibration, as :func:`loaded` does."""
    from ordinalrisk.joint_controller import JointController

    if not _is_joint(path):
        return loaded(path, key, random_state)
    joint: JointController = _read(JointController, path, key)
    _require_seed(any(part.spec.randomize for part in joint.calibrated_parts), random_state, needs_seed=True)
    return joint


def loaded(
    path: Path | StoredFile, key: Path | None, random_state: int | None, *, needs_seed: bool = True
) -> RiskController:
    """Load a calibration; require a seed if it is randomized, and none otherwise."""
    from ordinalrisk.controller import RiskController

    if _is_joint(path):
        terminal.fail(
            f"{path} is a joint calibration, which only predict and evaluate take; name the calibration of "
            "one of its guarantees."
        )
    controller: RiskController = _read(RiskController, path, key)
    _require_seed(controller.randomize, random_state, needs_seed=needs_seed)
    return controller


def _is_joint(path: Path | StoredFile) -> bool:
    """Return whether a file is a joint calibration; what can't be read is refused when it is loaded."""
    from ordinalrisk.saving.joint_file import is_joint

    try:
        return str(path) != "-" and path.exists() and is_joint(path)
    except (OSError, ValueError):
        return False


def _read(kind: Any, path: Path | StoredFile, key: Path | None) -> Any:
    from ordinalrisk.saving.signing import public_key

    if str(path) == "-":
        terminal.fail(f"there is no file {path}.")
    require_input(path)
    if key is not None:
        _require_key("--verify", public_key, key)
    try:
        return kind.load(path, key=key)
    except OSError as error:
        terminal.fail(f"{path}: can't be read ({error.strerror}).", code=1)
    except ValueError as error:
        hint = "" if path.suffix == ".json" else " The calibration comes first, then the scores."
        terminal.fail(" ".join(str(error).split()) + hint, code=1)


def _require_seed(randomize: bool, random_state: int | None, *, needs_seed: bool) -> None:
    if needs_seed and randomize and random_state is None:
        terminal.fail("the calibration is randomized; give a --random-state: equal ones give equal sets.")
    if random_state is not None and not randomize:
        terminal.fail("--random-state is for calibrations with --randomize; leave it out.")
    if random_state is not None and random_state < 0:
        terminal.fail(f"--random-state must be 0 or larger; got {random_state}.")


def require_private_key(key: Path, out: Path | StoredFile) -> None:
    from ordinalrisk.saving.signing import private_key, signature_place

    if str(out) == "-":
        terminal.fail("--sign writes the signature next to the output file; name a file with --out.")
    _require_key("--sign", private_key, key)
    terminal.require_writable_file(signature_place(out), "--sign", key)


def _require_key(option: str, read: Callable[[Path], Any], key: Path) -> None:
    try:
        read(key)
    except (ImportError, ValueError) as error:
        terminal.fail(f"{option}: {error}", code=1 if isinstance(error, ImportError) else 2)


def names(text: str | None) -> list[Any] | None:
    """Read labels separated by commas; as whole numbers if all are."""
    if text is None:
        return None
    parts = _split(text, "--classes", "None,Mild,Severe")
    if not any(parts):
        terminal.fail("--classes names no label; write all labels in order: None,Mild,Severe.")
    if all(re.fullmatch("-?(0|[1-9][0-9]*)", part) for part in parts):
        return [int(number(part, "--classes")) for part in parts]
    return parts


def _split(text: str, option: str, example: str) -> list[str]:
    try:
        return [part.strip() for part in next(csv.reader([text]))]
    except csv.Error as error:
        terminal.fail(f"{option} can't be read ({error}); write {example}.")


def numbers(text: str | None, option: str) -> list[Any] | None:
    return None if text is None else [number(part, option) for part in text.split(",")]


def number(text: str, option: str) -> Any:
    """Read a number exactly as it is written, in decimals."""
    from ordinalrisk.inputs.numbers import as_number

    try:
        return as_number(text.strip(), option)
    except ValueError as error:
        terminal.fail(str(error))


def alpha_of(text: str, classes: Sequence[Any]) -> Any:
    """Read one risk for all classes, or one for each: ``0.1`` or ``None=0.1,Mild=0.1,Severe=0.01``."""
    from ordinalrisk.files.label_names import listing, position_of_label

    if not is_by_class(text):
        return number(text, "--alpha")
    position, risks = position_of_label(classes), dict[Any, Any]()
    for part in _split(text, "--alpha", "None=0.1,Mild=0.1,Severe=0.01"):
        name, equals, risk = (piece.strip() for piece in part.rpartition("="))
        at = position(name) if equals else None
        if at is None:
            wrong = f"{name!r} is not one of the classes" if equals else f"{part!r} names no class"
            terminal.fail(f"--alpha: {wrong} {listing(classes)}; write CLASS=RISK for each.")
        if classes[at] in risks:
            terminal.fail(f"--alpha has class {name!r} more than once; give each class one risk.")
        risks[classes[at]] = number(risk, f"--alpha of {name}")
    for label in classes:
        if label not in risks:
            terminal.fail(f"--alpha has no risk for class {label!r}; give each of {listing(classes)} one.")
    return risks


def label_of(name: str, option: str, classes: Sequence[Any]) -> Any:
    """Return the class that a name spells."""
    from ordinalrisk.files.label_names import listing, position_of_label

    at = position_of_label(classes)(name.strip())
    if at is None:
        terminal.fail(f"{option}: {name.strip()!r} is not one of the classes {listing(classes)}.")
    return classes[at]


def labels_of(names: str, option: str, classes: Sequence[Any]) -> list[Any]:
    return [label_of(name, option, classes) for name in _split(names, option, "Mild,Severe")]


def is_by_class(alpha: str) -> bool:
    return "=" in alpha


def refuse_alpha(alpha: Fraction, bound: Fraction) -> NoReturn:
    from ordinalrisk.inputs.numbers import decimal_text

    terminal.fail(
        f"--alpha must lie strictly between 0 and the largest loss, {decimal_text(bound)}; got "
        f"{decimal_text(alpha)}. It has the units of the loss; --natural-units keeps those of the costs."
    )


def another_alpha(text: str | None, controller: RiskController | JointController) -> Any:
    from ordinalrisk.controller import RiskController
    from ordinalrisk.curves.windows import NotKnownError

    if text is None:
        return None
    if not isinstance(controller, RiskController):
        terminal.fail("--alpha: each guarantee of a joint calibration has its own; leave it out.")
    if is_by_class(text) and controller.condition_on is None:
        terminal.fail("--alpha by class needs a calibration with --per-class.")
    alpha = alpha_of(text, controller.classes_.tolist())
    try:
        controller.threshold_at(alpha)
    except NotKnownError as error:
        terminal.fail(in_options(error))
    except ValueError:
        pass  # to be said where it is used
    return alpha


def plain_loss(loss: str, classes: Sequence[Any]) -> Any:
    """Return a loss by its name, or from a CSV file of costs."""
    return loss_of(loss, None, None, None, None, None, False, classes)


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
    from ordinalrisk.losses.kinds import NAMED_LOSSES, DivergenceLoss, WeightedLoss

    distance = {"positions": positions, "power": power, "under": under, "over": over}
    kind = "weighted" if loss == "coverage" and weights is not None else loss
    allowed = {"weighted": {"weights"}, "divergence": set(distance)}.get(kind, set())
    for name, text in {"weights": weights, **distance}.items():
        if text is not None and name not in allowed:
            terminal.fail(f"--{name} has no meaning for --loss {loss}.")
    normalize = not natural_units
    if kind == "weighted":
        if weights is None:
            terminal.fail("--loss weighted needs --weights, one for each class: --weights 1,1,2.")
        return WeightedLoss(numbers(weights, "--weights"), normalize)
    if kind == "divergence":
        parameters = {
            name: numbers(text, f"--{name}") if name == "positions" else number(text, f"--{name}")
            for name, text in distance.items()
            if text is not None
        }
        return DivergenceLoss(**parameters, normalize=normalize)
    if kind in NAMED_LOSSES:
        return NAMED_LOSSES[kind](normalize=normalize)  # type: ignore[call-arg]
    if not Path(loss).is_file():
        *some, last = _loss_names()
        terminal.fail(
            f"--loss {loss} is neither {', '.join(some)} nor {last}, nor an existing file of costs."
        )
    return table_loss(Path(loss), classes, normalize)


def table_loss(path: Path, classes: Sequence[Any], normalize: bool = True) -> CostTableLoss:
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
    """Read a cost table, with or without the classes as its first row or column."""
    from ordinalrisk.inputs.numbers import as_number, is_written_as_number, require_class_count

    require_class_count(len(classes))
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


def _require_labels(written: list[str], labels: list[str], where: str) -> None:
    if written != labels:
        raise FileError(
            f"{where} is {', '.join(written)}, the classes are {', '.join(labels)}; make them equal."
        )
