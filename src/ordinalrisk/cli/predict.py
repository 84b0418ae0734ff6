"""``ordinalrisk predict``: from a saved calibration and a file of scores to prediction sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from ordinalrisk.cli import options, row_files, terminal

if TYPE_CHECKING:
    from ordinalrisk.controller import RiskController
    from ordinalrisk.joint_controller import JointController


def predict(
    calibration: options.CalibrationFile,
    new: Annotated[
        list[str],
        typer.Argument(metavar="NEW...", help="Files with the scores of new rows, or -."),
    ],
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="FILE", help="The sets, or -; for several files, a folder."),
    ],
    scores: options.Scores = None,
    logits: options.Logits = None,
    rescale: options.Rescale = False,
    alpha: options.Alpha = None,
    actions: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Costs of actions, a row each, by label: add action and worst_case, the action with the "
            "least worst-case cost over each set.",
        ),
    ] = None,
    group: options.Group = None,
    weight_col: options.WeightColumn = None,
    unseen_groups: Annotated[
        options.UnseenGroups, typer.Option(help="What to do with groups without calibration rows.")
    ] = options.UnseenGroups.error,
    random_state: options.RandomState = None,
    keep: options.Keep = None,
    prefix: options.Prefix = "",
    input_format: options.InputFormat = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
    output_format: options.OutputFormat = None,
    safe_csv: options.SafeCsv = False,
    drift_note: Annotated[
        bool,
        typer.Option(
            "--drift-note/--no-drift-note",
            help="Add a note if the scores differ from those of the calibration rows.",
        ),
    ] = True,
    cluster: options.Cluster = None,
    verify: options.Verify = None,
) -> None:
    """Write the prediction set of each row of a file.

    The output has the kept columns, then lower and upper (labels) and size, and with --actions action and
    worst_case. Columns of scores, groups and weights are found by their names at calibration, in any order.
    Files of any size are streamed. With several files or a cluster, --out is a folder with one output per
    file, and _ordinalrisk.json, which lists them once all are written. A second run replaces them.

    \b
    Examples:
      ordinalrisk predict cal.json new.parquet -o sets.parquet
      ordinalrisk predict cal.json new.csv -o - --keep id | head
      ordinalrisk predict cal.json new.arrow -o sets.csv.gz --alpha 0.01
      ordinalrisk predict cal.json new.csv -o sets.csv --unseen-groups full
      ordinalrisk predict cal.json new.parquet -o sets.parquet --actions costs.csv
      ordinalrisk predict joint.json new.parquet -o sets.parquet
      ordinalrisk predict cal.json 'new/*.parquet' -o sets --cluster local:4
    """  # noqa: D301
    places = row_files.named(new, cluster)
    if actions is not None:
        options.require_input(options.place(actions))
    saved, written, piped = options.place(calibration), options.place(out), out == "-"
    to_folder = cluster is not None or len(places) > 1
    if to_folder and piped:
        terminal.fail("--out: with --cluster or several files it must be a folder, not a pipe.")
    if not to_folder and not piped:
        others = [places[0]] if actions is None else [places[0], actions]
        terminal.require_writable_file(written, "--out", saved, *map(options.place, others))
        options.require_format(written, output_format)

    from ordinalrisk import jobs
    from ordinalrisk.files.formats import format_by_name
    from ordinalrisk.jobs.score_files import parts_of

    if safe_csv and not to_folder and (output_format or format_by_name(out) or "csv") != "csv":
        terminal.fail("--safe-csv: the output is not CSV; leave it out.")

    controller = options.loaded_with_joint(saved, verify, random_state)
    strata = [part.calibration.strata for part in parts_of(controller)]
    if all(part.groups is None for part in strata) and unseen_groups != options.UnseenGroups.error:
        terminal.fail("--unseen-groups: the calibration was made without groups; leave it out.")
    console = terminal.printer(to_error=piped)
    risk = options.another_alpha(alpha, controller)
    if risk is None:
        for name, warning in _uncertified(controller):
            terminal.note(f"{name}: {warning}" if name else warning)
    with (
        terminal.noting_warnings(console),
        row_files.working_on(places, "Predicting", cluster) as progress,
        terminal.writing_to(written),
    ):
        predicted = jobs.predict(
            controller,
            places,
            out,
            alpha=risk,
            actions=actions,
            scores=scores,
            logits=logits,
            rescale=rescale,
            group=group,
            weight=weight_col,
            unseen_groups=unseen_groups,
            random_state=random_state,
            keep=keep,
            prefix=prefix,
            input_format=input_format,
            delimiter=options.delimiter_of(delimiter),
            decimal=decimal,
            sheet=sheet,
            output_format=output_format,
            safe_csv=safe_csv,
            drift_note=drift_note,
            dask=cluster,
            note=terminal.note,
            progress=progress,
        )
    n_rows = predicted.n_rows
    console.print(
        f"{n_rows:,} {'row' if n_rows == 1 else 'rows'}, "
        f"{predicted.n_labels / n_rows:.2f} labels in a set on average, "
        f"{predicted.n_single / n_rows:.1%} single labels."
    )
    if not piped:
        console.print(f"Wrote {written}")


def _uncertified(controller: RiskController | JointController) -> Iterator[tuple[str, str]]:
    """Yield the guarantees that have too few rows, with what to say about them."""
    from ordinalrisk.calibration.guarantees import guarantee_of
    from ordinalrisk.jobs.score_files import parts_of

    for part in parts_of(controller):
        if warning := guarantee_of(part.predictor.thresholds).warning:
            yield part.full_name, warning
