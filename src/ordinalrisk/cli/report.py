"""``ordinalrisk report``: one page that people look at, from a calibration and rows with known labels."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from ordinalrisk.cli import options, terminal


def report(
    calibration: Annotated[Path, typer.Argument(metavar="CALIBRATION", help="What calibrate wrote.")],
    test: Annotated[Path, typer.Argument(metavar="TEST", help="File with scores and known labels, or -.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The page; beside it the same as JSON.")
    ] = Path("report.html"),
    label: options.Label = None,
    scores: options.Scores = None,
    logits: options.Logits = None,
    rescale: options.Rescale = False,
    group: options.Group = None,
    cluster_col: options.ClusterColumn = None,
    weight_col: options.WeightColumn = None,
    seed: options.Seed = None,
    input_format: options.InputFormat = None,
) -> None:
    """Write a report: the guarantee, whether the test rows agree, and what every alpha would cost.

    One HTML file that needs no network, and beside it the same numbers as JSON. Groups, clusters and weights
    are found by the names that their columns had when calibrating.

    \b
    Examples:
      ordinalrisk report cal.json test.parquet -o report.html
      ordinalrisk report by_site.json test.csv --group clinic
    """  # noqa: D301
    options.require_files()
    for package in ("plotly", "jinja2"):
        if find_spec(package) is None:
            terminal.fail(
                f"a report needs {package}, which is not installed: {options.INSTALL_REPORT}", code=1
            )
    options.require_input(test)
    beside = out.with_suffix(".json")
    if beside == out:
        terminal.fail(f"--out: {out} is the page; its numbers go to the same name with .json.", code=2)
    for written in (out, beside):
        terminal.require_writable_file(written, "--out", calibration, test)

    from ordinalrisk.engines import columns, streaming
    from ordinalrisk.engines.readers import opened
    from ordinalrisk.report import ReportSummary, write_summary

    controller = options.loaded(calibration)
    options.require_seed(seed, controller)
    classes = controller.classes_
    console = terminal.printer()
    with terminal.bad_data_is_one_line(), opened(test, input_format) as source:
        asked = columns.Asked(scores, label, logits, rescale, group, cluster_col, weight_col)
        where = columns.found_again(
            source,
            controller.columns_,
            classes.tolist(),
            asked,
            terminal.note,
            with_label=True,
            needs=columns.needed(controller.calibration_, for_test=True),
        )
        shown = [name for name in source.schema.names if name not in (*where.scores, where.label)]
        summary = ReportSummary(controller, seed=seed)
        with terminal.row_progress(source, "Reading test rows") as progress:
            rows = streaming.FileRows(
                source,
                where,
                classes.tolist(),
                keep=shown[:6],
                progress=progress,
                groups=controller.calibration_.strata.groups,
            )
            with rows.batches() as batches:
                for batch in batches:
                    cases = dict(zip(batch.kept.schema.names, batch.kept.columns, strict=True))
                    extras = batch.extras
                    summary.add(
                        batch.proba,
                        classes[batch.labels],
                        cases,
                        extras.groups,
                        extras.clusters,
                        extras.sample_weight,
                    )
        with terminal.progress() as bar:
            bar.add_task("Summarising", total=None)
            found = summary.finish(calibration.name, Path(source.name).name, where.to_dict())
    with terminal.writing_to(out):
        write_summary(found, out)
    stop = found["stops"][found["start"]]
    terminal.print_sentences(console, [stop["guarantee"], stop["verdict_text"]])
    console.print(f"Wrote {out} and {beside}")
