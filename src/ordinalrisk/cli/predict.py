"""``ordinalrisk predict``: from a saved calibration and a file of scores to intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ordinalrisk.cli import clusters, options, terminal

if TYPE_CHECKING:
    from ordinalrisk.files.readers import Source


def predict(
    calibration: Annotated[str, typer.Argument(metavar="CALIBRATION", help="What calibrate wrote.")],
    new: Annotated[
        list[str],
        typer.Argument(metavar="NEW...", help="File with the scores of new rows, or -; many with --cluster."),
    ],
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="FILE", help="The intervals, or -; with --cluster, a folder."),
    ],
    scores: options.Scores = None,
    logits: options.Logits = None,
    rescale: options.Rescale = False,
    alpha: options.Alpha = None,
    group: options.Group = None,
    weight_col: options.WeightColumn = None,
    unseen_groups: Annotated[
        options.UnseenGroups, typer.Option(help="What rows of a group without calibration rows get.")
    ] = options.UnseenGroups.error,
    seed: options.Seed = None,
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
    safe_csv: Annotated[
        bool, typer.Option("--safe-csv", help="In CSV, put ' before text that spreadsheets run as a formula.")
    ] = False,
    cluster: options.Cluster = None,
    verify: options.Verify = None,
) -> None:
    """Give each row of a file its interval of labels.

    The output has the columns that are kept and lower, upper (labels) and size. Score columns are found by
    the names that they had when calibrating, in whatever order they stand, and so are groups and weights.
    Files of any size are streamed. On a cluster each file has one of its own in the folder --out, and
    _ordinalrisk.json there lists them when all are written; to run it again replaces them.

    \b
    Examples:
      ordinalrisk predict cal.json new.parquet -o sets.parquet
      ordinalrisk predict cal.json new.csv -o - --keep id | head
      ordinalrisk predict cal.json new.arrow -o sets.csv.gz --alpha 0.01
      ordinalrisk predict cal.json new.csv -o sets.csv --unseen-groups full
      ordinalrisk predict cal.json 'new/*.parquet' -o sets --cluster local:4
    """  # noqa: D301
    options.require_files()
    places = clusters.inputs(new, cluster)
    saved, rows_in = options.place(calibration), options.place(places[0])
    written = options.place(out)
    options.require_input(rows_in)
    piped = out == "-"
    if cluster is not None and piped:
        terminal.fail("--out: with --cluster a folder is needed; - is none.", code=2)
    if cluster is None and not piped:
        terminal.require_writable_file(written, "--out", saved, rows_in)
        options.require_format(written, output_format)

    from ordinalrisk.files import find_columns
    from ordinalrisk.files.formats import format_by_name
    from ordinalrisk.files.readers import opened
    from ordinalrisk.jobs import one_file

    if safe_csv and cluster is None and (output_format or format_by_name(out) or "csv") != "csv":
        terminal.fail("--safe-csv: the output is not CSV; leave it out.", code=2)

    controller = options.loaded(saved, verify)
    options.require_seed(seed, controller)
    known = controller.calibration_.strata.groups
    if known is None and unseen_groups != options.UnseenGroups.error:
        terminal.fail("--unseen-groups: the calibration was made without groups; leave it out.", code=2)
    console = terminal.printer(to_error=piped)
    asked = find_columns.Asked(scores, None, logits, rescale, group, weight=weight_col)
    with terminal.bad_data_is_one_line(), opened(rows_in, input_format) as source:
        where = find_columns.found_again(
            source,
            controller.columns_,
            controller.classes_.tolist(),
            asked,
            terminal.note,
            with_label=False,
            needs=find_columns.needed(controller.calibration_, for_test=False),
        )
        kept = _kept(source, keep, where.scores)
        risk = options.another_alpha(alpha, controller)
        if risk is None and (warning := controller.guarantee().warning):  # else predictions warn of it
            terminal.note(warning)
        with terminal.writing_to(written), terminal.noting_warnings(console):
            if cluster is not None:
                from ordinalrisk.jobs import many_files

                with clusters.working_on(cluster, "Predicting", len(places)) as done:
                    predicted = many_files.predict(
                        controller,
                        many_files.Files(
                            places,
                            where,
                            source.schema,
                            keep=kept,
                            given_format=input_format,
                            groups=known,
                            unseen_groups=unseen_groups,
                        ),
                        out,
                        alpha=risk,
                        prefix=prefix,
                        target_format=output_format,
                        seed=seed,
                        safe_csv=safe_csv,
                        progress=done,
                    )
            else:
                with terminal.row_progress(source, "Predicting") as progress:
                    predicted = one_file.predict(
                        controller,
                        one_file.FileRows(
                            source,
                            where,
                            keep=kept,
                            progress=progress,
                            groups=known,
                            unseen_groups=unseen_groups,
                        ),
                        written,
                        alpha=risk,
                        prefix=prefix,
                        given_format=output_format,
                        unseen_groups=unseen_groups,
                        seed=seed,
                        safe_csv=safe_csv,
                    )
            one_file.warn_of_uncertified(predicted.n_uncertified, predicted.n_rows)
    n_rows = predicted.n_rows
    console.print(
        f"{n_rows:,} {'row' if n_rows == 1 else 'rows'}, "
        f"{predicted.n_labels / n_rows:.2f} labels in a set on average, "
        f"{predicted.n_single / n_rows:.1%} single labels."
    )
    if not piped:
        console.print(f"Wrote {written}")


def _kept(source: Source, asked: str | None, scores: tuple[str, ...]) -> list[str]:
    from ordinalrisk.files.find_columns import matching

    names: list[str] = source.schema.names
    if asked is None:
        others = set(scores)
        return [name for name in names if name not in others]
    kept: dict[str, None] = {}
    for part, found in matching(names, asked):
        if not found:
            terminal.fail(f"{source.name}: there is no column {part!r}; correct --keep.", code=1)
        kept |= dict.fromkeys(found)
    return list(kept)
