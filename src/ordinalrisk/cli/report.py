"""``ordinalrisk report``: one HTML page about a calibration, from rows with known labels."""

from __future__ import annotations

from typing import Annotated

import typer

from ordinalrisk.cli import options, row_files, terminal
from ordinalrisk.display.text_table import counted, listed


def report(
    calibration: options.CalibrationFile,
    test: options.TestFiles,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="The page; the numbers go next to it, as JSON.")
    ] = "report.html",
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title at the top of the page.")] = None,
    rows: Annotated[
        bool, typer.Option("--rows/--no-rows", help="Whether the page and the JSON contain single test rows.")
    ] = True,
    label: options.Label = None,
    scores: options.Scores = None,
    logits: options.Logits = None,
    rescale: options.Rescale = False,
    group: options.Group = None,
    cluster_col: options.ClusterColumn = None,
    weight_col: options.WeightColumn = None,
    random_state: options.RandomState = None,
    input_format: options.InputFormat = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
    cluster: options.Cluster = None,
    verify: options.Verify = None,
) -> None:
    """Write a report: the guarantee, whether the test rows agree, and what every alpha would cost.

    One HTML file that needs no network, and next to it the same numbers as JSON. Groups, clusters and weights
    are found by the names that their columns had when calibrating. With weights, the test rows must be drawn
    like the calibration rows, not from the new population: that would weight them twice.

    \b
    Examples:
      ordinalrisk report cal.json test.parquet -o report.html
      ordinalrisk report cal.json test.parquet --title "Retina, spring" --no-rows
      ordinalrisk report by_site.json test.csv --group clinic
      ordinalrisk report cal.json 'test/*.parquet' --cluster local:4
    """  # noqa: D301
    row_files.require_installed("a report needs", "plotly", "jinja2", extra="report")
    places = row_files.named(test, cluster)
    saved, page = options.place(calibration), options.place(out)
    read = (saved, *map(options.place, places))
    terminal.require_writable_file(page, "--out", *read)

    from ordinalrisk.files.find_columns import AskedColumns
    from ordinalrisk.jobs.report_job import report_summary
    from ordinalrisk.jobs.score_files import Reading
    from ordinalrisk.report import write_summary
    from ordinalrisk.report.writing import numbers_beside

    beside = page.with_suffix(".json")
    terminal.require_writable_file(beside, "--out writes the numbers next to the page", *read)
    with terminal.writing_to(page):
        try:
            numbers_beside(page)
        except ValueError as error:
            terminal.fail(f"--out: {error}")

    controller = options.loaded(saved, verify, random_state)
    console = terminal.printer()
    notes = terminal.printer(to_error=True)
    with terminal.noting_warnings(notes), row_files.working_on(places, "Reading", cluster) as progress:
        summary = report_summary(
            controller,
            places,
            AskedColumns(scores, label, logits, rescale, group, cluster_col, weight_col),
            Reading(
                input_format,
                cluster,
                terminal.note,
                progress,
                options.delimiter_of(delimiter),
                decimal,
                sheet,
            ),
            random_state=random_state,
            calibration_name=saved.name,
            title=title,
            rows=rows,
        )
    with terminal.writing_to(page):
        write_summary(summary, page)
    stop = summary["stops"][summary["start"]]
    terminal.print_sentences(console, [stop["guarantee"]])
    terminal.print_light(console, stop["colour"], stop["sentence"])
    terminal.print_sentences(console, [stop["verdict_text"]])
    console.print(f"Wrote {page} and {beside}")
    if held := summary["cases"]["lookup"]["rows"]:
        columns = summary["cases"]["columns"]
        beside_them = f" with the columns {listed(columns)}" if columns else ""
        what = f"Both contain {counted(held, 'test row')}{beside_them}. --no-rows leaves single rows out."
        terminal.print_sentences(console, [what])
