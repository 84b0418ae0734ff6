"""``ordinalrisk report``: one page that people look at, from a calibration and rows with known labels."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordinalrisk.cli import clusters, options, terminal

if TYPE_CHECKING:
    from ordinalrisk.files.places import StoredFile


def report(
    calibration: Annotated[str, typer.Argument(metavar="CALIBRATION", help="What calibrate wrote.")],
    test: Annotated[
        list[str],
        typer.Argument(
            metavar="TEST...", help="File with scores and known labels, or -; many with --cluster."
        ),
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="The page; beside it the same as JSON.")
    ] = "report.html",
    label: options.Label = None,
    scores: options.Scores = None,
    logits: options.Logits = None,
    rescale: options.Rescale = False,
    group: options.Group = None,
    cluster_col: options.ClusterColumn = None,
    weight_col: options.WeightColumn = None,
    seed: options.Seed = None,
    input_format: options.InputFormat = None,
    cluster: options.Cluster = None,
    verify: options.Verify = None,
) -> None:
    """Write a report: the guarantee, whether the test rows agree, and what every alpha would cost.

    One HTML file that needs no network, and beside it the same numbers as JSON. Groups, clusters and weights
    are found by the names that their columns had when calibrating. With weights, the test rows must be drawn
    like the calibration rows, not from the new population: that would weight them twice.

    \b
    Examples:
      ordinalrisk report cal.json test.parquet -o report.html
      ordinalrisk report by_site.json test.csv --group clinic
      ordinalrisk report cal.json 'test/*.parquet' --cluster local:4
    """  # noqa: D301
    options.require_files()
    for package in ("plotly", "jinja2"):
        if find_spec(package) is None:
            terminal.fail(
                f"a report needs {package}, which is not installed: {options.INSTALL_REPORT}", code=1
            )
    places = clusters.inputs(test, cluster)
    saved, rows_in, page = options.place(calibration), options.place(places[0]), options.place(out)
    options.require_input(rows_in)
    beside = page.with_suffix(".json")
    if beside == page:
        terminal.fail(f"--out: {page} is the page; its numbers go to the same name with .json.", code=2)
    inputs = (saved, *map(options.place, places))
    terminal.require_writable_file(page, "--out", *inputs)
    terminal.require_writable_file(beside, "--out writes the numbers beside the page", *inputs)

    from ordinalrisk.files import find_columns
    from ordinalrisk.files.readers import opened
    from ordinalrisk.jobs import one_file
    from ordinalrisk.report import ReportSummary

    controller = options.loaded(saved, verify)
    options.require_seed(seed, controller)
    classes = controller.classes_
    console = terminal.printer()
    with terminal.bad_data_is_one_line(), opened(rows_in, input_format) as source:
        asked = find_columns.Asked(scores, label, logits, rescale, group, cluster_col, weight_col)
        where = find_columns.found_again(
            source,
            controller.columns_,
            classes.tolist(),
            asked,
            terminal.note,
            with_label=True,
            needs=find_columns.needed(controller.calibration_, for_test=True),
        )
        shown = [name for name in source.schema.names if name not in (*where.scores, where.label)]
        known = controller.calibration_.strata.groups
        if cluster is None:
            summary = ReportSummary(controller, seed=seed)
            with terminal.row_progress(source, "Reading test rows") as progress:
                rows = one_file.FileRows(
                    source, where, classes.tolist(), keep=shown[:6], progress=progress, groups=known
                )
                one_file.summarise(summary, rows, classes)
        else:
            from ordinalrisk.jobs import many_files

            with clusters.working_on(cluster, "Reading", len(places)) as done:
                many = many_files.Files(
                    places, where, source.schema, classes.tolist(), shown[:6], input_format, known
                )
                summary = many_files.summary_of(controller, many, seed=seed, progress=done)
        with terminal.progress() as bar:
            bar.add_task("Summarising", total=None)
            found = summary.finish(saved.name, _named(places), where.to_dict())
    with terminal.writing_to(page):
        _write(found, page, beside)
    stop = found["stops"][found["start"]]
    terminal.print_sentences(console, [stop["guarantee"], stop["verdict_text"]])
    console.print(f"Wrote {page} and {beside}")


def _named(places: list[str]) -> str:
    from ordinalrisk.files.places import name_of

    more = f" and {len(places) - 1:,} more" if len(places) > 1 else ""
    return name_of(places[0]) + more


def _write(summary: dict[str, Any], page: Path | StoredFile, beside: Path | StoredFile) -> None:
    """Both files, or none; what is stored elsewhere is sent when both are written."""
    from ordinalrisk.files.atomic import replacing
    from ordinalrisk.files.interrupting import temporary_folder
    from ordinalrisk.report import write_summary

    if isinstance(page, Path):
        write_summary(summary, page)
        return
    with temporary_folder() as folder:
        here = Path(folder) / "report.html"
        write_summary(summary, here)
        with replacing(page) as html, replacing(beside) as numbers:
            html.write_bytes(here.read_bytes())
            numbers.write_bytes(here.with_suffix(".json").read_bytes())
