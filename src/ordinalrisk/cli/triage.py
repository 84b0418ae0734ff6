"""``ordinalrisk triage`` and ``ordinalrisk decide``: accept rows whose label is safe, refer the others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordinalrisk import __version__
from ordinalrisk.cli import options, row_files, terminal
from ordinalrisk.files.places import StoredFile

if TYPE_CHECKING:
    from ordinalrisk.triage.controller import TriageController


def triage(
    scores_files: Annotated[
        list[str], typer.Argument(metavar="SCORES...", help="Files with scores and labels, or -.")
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The triage, as JSON.")],
    alpha: Annotated[str, typer.Option(metavar="A", help="The largest expected loss of an accepted row.")],
    delta: Annotated[
        str, typer.Option(metavar="D", help="Keep alpha with probability 1 - D over the calibration rows.")
    ] = "0.05",
    label: options.Label = None,
    scores: options.Scores = None,
    logits: options.Logits = None,
    rescale: options.Rescale = False,
    classes: options.ClassList = None,
    loss: Annotated[str, typer.Option(metavar="LOSS", help="{losses}, or a CSV file of costs.")] = "coverage",
    weights: Annotated[str | None, typer.Option(metavar="H", help="A weight for each class: 1,1,2.")] = None,
    positions: Annotated[
        str | None, typer.Option(metavar="V", help="Positions of the labels: 18,30,65. With divergence.")
    ] = None,
    power: Annotated[
        str | None, typer.Option(metavar="P", help="Power of the distance. With divergence.")
    ] = None,
    under: Annotated[
        str | None, typer.Option(metavar="C", help="Factor for labels below the truth. With divergence.")
    ] = None,
    over: Annotated[
        str | None, typer.Option(metavar="C", help="Factor for labels above the truth. With divergence.")
    ] = None,
    natural_units: Annotated[
        bool, typer.Option("--natural-units", help="Do not divide the loss by its largest value.")
    ] = False,
    point: Annotated[
        str, typer.Option(metavar="RULE", help="The label of a row: bayes, mode or median.")
    ] = "bayes",
    group: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of groups; each gets a threshold and the guarantee."),
    ] = None,
    random_state: Annotated[
        int | None,
        typer.Option(metavar="N", help="Seed of the order of equal scores, for rows in random order."),
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="FILE", help="What is accepted at several alphas, as JSON.")
    ] = None,
    input_format: options.InputFormat = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
) -> None:
    """Find which rows can keep the label of the model, and save how to recognise them.

    A row is accepted if the model's own risk of its label is below a threshold. With probability 1 - D over
    the calibration rows, the expected loss of an accepted row is at most A. Use rows that the model was not
    trained on; if a patient has several rows, keep one at random. decide applies the threshold to new rows.

    \b
    Examples:
      ordinalrisk triage scores.parquet --alpha 0.05 -o triage.json
      ordinalrisk triage scores.csv --alpha 0.02 --delta 0.1 \\
          --loss divergence --group hospital -o triage.json
    """  # noqa: D301
    places, written = row_files.named(scores_files), options.place(out)
    read = [*map(options.place, places)]
    terminal.require_writable_file(written, "--out", *read)
    curve = None if json is None else options.place(json)
    if curve is not None:
        terminal.require_writable_file(curve, "--json", *read)
        terminal.require_other_file(curve, "--json", written, "--out")
    if options.is_by_class(alpha):
        terminal.fail("--alpha must be one number; the true label of an accepted row is not known.")
    if random_state is not None and random_state < 0:
        terminal.fail(f"--random-state must be 0 or larger; got {random_state}.")
    risk, failing = options.number(alpha, "--alpha"), options.number(delta, "--delta")

    from ordinalrisk import jobs
    from ordinalrisk.inputs.numbers import as_fraction
    from ordinalrisk.triage.controller import TriageController

    def controller_for(labels: list[Any]) -> TriageController:
        cost = options.loss_of(loss, weights, positions, power, under, over, natural_units, labels)
        made = TriageController(cost, risk, failing, labels, point=point, random_state=random_state)
        if not 0 < (exact := as_fraction(risk)) < (bound := made.loss.bound(len(labels))):
            options.refuse_alpha(exact, bound)
        return made

    console = terminal.printer()
    with (
        terminal.noting_warnings(console),
        row_files.working_on(places, "Calibrating") as progress,
        options.in_option_names(),
    ):
        if point == "given":
            terminal.fail("--point given: point labels can't be given in a file.")
        calibrated = jobs.triage(
            controller_for,
            places,
            label=label,
            scores=scores,
            classes=options.names(classes),
            logits=logits,
            rescale=rescale,
            group=group,
            input_format=input_format,
            delimiter=options.delimiter_of(delimiter),
            decimal=decimal,
            sheet=sheet,
            note=terminal.note,
            progress=progress,
        )
    with terminal.writing_to(written):
        calibrated.save(written)
    console.print(str(calibrated.guarantee()))
    if (seed := calibrated.shuffle_seed_) is not None:
        terminal.print_sentences(
            console,
            [f"Rows with equal scores were ordered with seed {seed}: --random-state {seed} does so again."],
        )
    if curve is not None:
        with terminal.writing_to(curve, "--json"):
            terminal.write_json(_curve(calibrated), curve)
        console.print(f"Wrote {curve}")
    console.print(f"Wrote {written}")


def decide(
    triage: Annotated[str, typer.Argument(metavar="TRIAGE", help="The triage, as written by triage.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="File with the scores of new rows, or -.")],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The decisions, or -.")],
    scores: options.Scores = None,
    logits: options.Logits = None,
    rescale: options.Rescale = False,
    group: options.Group = None,
    unseen_groups: Annotated[
        options.Unseen, typer.Option(help="What to do with groups without calibration rows.")
    ] = options.Unseen.error,
    keep: options.Keep = None,
    prefix: options.Prefix = "",
    input_format: options.InputFormat = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
    output_format: options.OutputFormat = None,
    safe_csv: options.SafeCsv = False,
) -> None:
    """Accept or refer each row of a file.

    The output has the kept columns, then accepted, label (missing if the row is referred) and model_risk, the
    model's own risk of the label. Columns are found by their names at calibration, in any order. Files of any
    size are streamed.

    \b
    Examples:
      ordinalrisk decide triage.json new.parquet -o decided.parquet
      ordinalrisk decide triage.json new.csv -o - --keep id | head
    """  # noqa: D301
    places, piped = row_files.named([new]), out == "-"
    saved, written = options.place(triage), options.place(out)
    if len(places) > 1:
        terminal.fail(f"decide reads one file at a time; {new} names {len(places):,}.")
    if not piped:
        terminal.require_writable_file(written, "--out", saved, options.place(places[0]))
        options.require_format(written, output_format)

    from ordinalrisk import jobs
    from ordinalrisk.files.formats import format_by_name

    if safe_csv and (output_format or format_by_name(out) or "csv") != "csv":
        terminal.fail("--safe-csv: the output is not CSV; leave it out.")
    controller = _loaded(saved)
    if controller.groups_ is None and unseen_groups != options.Unseen.error:
        terminal.fail("--unseen-groups: the triage was made without groups; leave it out.")
    console = terminal.printer(to_error=piped)
    if (warning := controller.guarantee().warning) is not None:
        terminal.note(warning)
    with (
        terminal.noting_warnings(console),
        row_files.working_on(places, "Deciding") as progress,
        terminal.writing_to(written),
    ):
        decided = jobs.decide(
            controller,
            places,
            out,
            scores=scores,
            logits=logits,
            rescale=rescale,
            group=group,
            unseen_groups=unseen_groups,
            keep=keep,
            prefix=prefix,
            input_format=input_format,
            delimiter=options.delimiter_of(delimiter),
            decimal=decimal,
            sheet=sheet,
            output_format=output_format,
            safe_csv=safe_csv,
            note=terminal.note,
            progress=progress,
        )
    n_rows, n_accepted = decided
    console.print(
        f"{n_rows:,} {'row' if n_rows == 1 else 'rows'}, {n_accepted:,} accepted "
        f"({n_accepted / n_rows:.1%}), {n_rows - n_accepted:,} referred."
    )
    if not piped:
        console.print(f"Wrote {written}")


def _loaded(path: Path | StoredFile) -> TriageController:
    from ordinalrisk.triage.controller import TriageController

    if str(path) == "-":
        terminal.fail(f"there is no file {path}.")
    options.require_input(path)
    try:
        return TriageController.load(path)
    except OSError as error:
        terminal.fail(f"{path}: can't be read ({error.strerror}).", code=1)
    except ValueError as error:
        hint = "" if path.suffix == ".json" else " The triage comes first, then the scores."
        terminal.fail(" ".join(str(error).split()) + hint, code=1)


def _curve(calibrated: TriageController) -> dict[str, Any]:
    """Return the share that is accepted at each alpha; a threshold is null if all rows are, or none."""
    from ordinalrisk.inputs.numbers import decimal_text

    def point(guarantee: Any, part: Any) -> dict[str, Any]:
        finite = abs(part.threshold) != float("inf")
        return {
            "alpha": decimal_text(guarantee.alpha),
            "group": part.group,
            "rows": part.n_rows,
            "accepted_rows": part.n_accepted,
            "accepted": list(part.share),
            "threshold": part.threshold if finite else None,
            "mean_loss": part.mean_loss,
        }

    own, curve = calibrated.guarantee(), calibrated.share_curve()
    return {
        "format": "ordinalrisk triage result",
        "package_version": __version__,
        "delta": decimal_text(own.delta),
        "calibrated": [point(own, part) for part in own.parts],
        "curve": [point(each, part) for each in curve.guarantees for part in each.parts],
    }
