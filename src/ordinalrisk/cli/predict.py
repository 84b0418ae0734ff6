"""``ordinalrisk predict``: from a saved calibration and a file of scores to intervals."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ordinalrisk.cli import options, terminal

if TYPE_CHECKING:
    from ordinalrisk.engines.readers import Source


def predict(
    calibration: Annotated[Path, typer.Argument(metavar="CALIBRATION", help="What calibrate wrote.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="File with the scores of new rows, or -.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The intervals, or -.")],
    scores: options.Scores = None,
    logits: options.Logits = None,
    alpha: options.Alpha = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            help="Columns that pass through: id,x* or '*'; '' for none. [default: all but the scores]",
        ),
    ] = None,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="Before the names of the new columns.")] = "",
    input_format: options.InputFormat = None,
    output_format: options.OutputFormat = None,
) -> None:
    """Give each row of a file its interval of labels.

    The output has the columns that are kept and lower, upper (labels) and size. Score columns are found by
    the names that they had when calibrating, in whatever order they stand. Files of any size are streamed.

    \b
    Examples:
      ordinalrisk predict cal.json new.parquet -o sets.parquet
      ordinalrisk predict cal.json new.csv -o - --keep id | head
      ordinalrisk predict cal.json new.arrow -o sets.csv.gz --alpha 0.01
    """  # noqa: D301
    options.require_files()
    options.require_input(new)
    piped = str(out) == "-"
    if not piped:
        terminal.require_writable_file(out, "--out")

    from ordinalrisk.engines import columns, streaming
    from ordinalrisk.engines.readers import opened

    controller = options.loaded(calibration)
    console = terminal.printer(to_error=piped)
    asked = (scores, None, logits)
    with terminal.bad_data_is_one_line(), opened(new, input_format) as source:
        where = columns.found_again(
            source, controller.columns_, controller.classes_.tolist(), asked, terminal.note, with_label=False
        )
        kept = _kept(source, keep, where.scores)
        risk = None if alpha is None else options.number(alpha, "--alpha")
        with (
            terminal.writing_to(out),
            terminal.noting_warnings(console),
            terminal.row_progress(source, "Predicting") as progress,
        ):
            predicted = streaming.predict(
                controller,
                streaming.FileRows(source, where, keep=kept, progress=progress),
                out,
                alpha=risk,
                prefix=prefix,
                given_format=output_format,
            )
    n_rows = predicted.n_rows
    console.print(
        f"{n_rows:,} {'row' if n_rows == 1 else 'rows'}, "
        f"{predicted.n_labels / n_rows:.2f} labels in a set on average, "
        f"{predicted.n_single / n_rows:.1%} single labels."
    )
    if not piped:
        console.print(f"Wrote {out}")


def _kept(source: Source, asked: str | None, scores: tuple[str, ...]) -> list[str]:
    names: list[str] = source.schema.names
    if asked is None:
        return [name for name in names if name not in scores]
    kept: list[str] = []
    for part in filter(None, (part.strip() for part in asked.split(","))):
        found = [part] if part in names else [name for name in names if fnmatchcase(name, part)]
        if not found:
            terminal.fail(f"{source.name}: there is no column {part!r}; correct --keep.", code=1)
        kept += [name for name in found if name not in kept]
    return kept
