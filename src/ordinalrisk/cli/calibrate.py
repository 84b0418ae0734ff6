"""``ordinalrisk calibrate``: from a file of scores with known outcomes to a saved calibration."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordinalrisk.calibration.combinations import require_theorem
from ordinalrisk.cli import options, row_files, terminal
from ordinalrisk.display.text_table import TextTable
from ordinalrisk.files.places import StoredFile

if TYPE_CHECKING:
    from rich.console import Console

    from ordinalrisk.controller import RiskController

_MOST_THRESHOLDS = 40


def calibrate(
    scores_files: Annotated[
        list[str],
        typer.Argument(metavar="SCORES...", help="Files with scores and labels, or -."),
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The calibration, as JSON, or -.")],
    alpha: Annotated[
        str, typer.Option(metavar="A", help="The largest expected loss; by class: None=0.1,Severe=0.01.")
    ],
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
        str | None, typer.Option(metavar="C", help="Factor for sets below the truth. With divergence.")
    ] = None,
    over: Annotated[
        str | None, typer.Option(metavar="C", help="Factor for sets above the truth. With divergence.")
    ] = None,
    natural_units: Annotated[
        bool, typer.Option("--natural-units", help="Do not divide the loss by its largest value.")
    ] = False,
    side: Annotated[
        str | None,
        typer.Option(metavar="END", help="Control only this end of the sets: upper or lower."),
    ] = None,
    growth_loss: Annotated[
        str | None,
        typer.Option(metavar="LOSS", help="Loss that sets grow by: {losses}, or a CSV file of costs."),
    ] = None,
    growth: Annotated[str, typer.Option(metavar="RULE", help="{growths}, or auto.")] = "frontier",
    point: Annotated[
        str | None, typer.Option(metavar="RULE", help="Label that sets grow from: mode, bayes or median.")
    ] = None,
    delta: Annotated[
        str | None, typer.Option(metavar="D", help="Keep alpha with probability 1 - D, not only on average.")
    ] = None,
    confidence_bound: Annotated[
        str, typer.Option(metavar="BOUND", help="With --delta: auto, {bounds}.")
    ] = "auto",
    group: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of groups; alpha then holds for each group."),
    ] = None,
    cluster_col: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column that identifies the patient (or other unit) of each row."
        ),
    ] = None,
    per_class: Annotated[
        bool, typer.Option("--per-class", help="Keep alpha for each true class, not only on average.")
    ] = False,
    pool_classes: Annotated[
        bool,
        typer.Option("--pool-classes", help="With --per-class: classes with too few rows join a neighbour."),
    ] = False,
    pool: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="With --per-class: classes that share a threshold: poor,fair."),
    ] = None,
    exempt_class: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="With --per-class: a class without a guarantee."),
    ] = None,
    weight_col: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of likelihood ratios of a new population to this one."),
    ] = None,
    class_ratios: Annotated[
        str | None,
        typer.Option(metavar="W", help="Ratio of new to present share of each class: 1,2,0.5."),
    ] = None,
    randomize: Annotated[
        bool, typer.Option("--randomize", help="Include labels at the threshold at random.")
    ] = False,
    relative: Annotated[
        bool,
        typer.Option("--relative", help="Make alpha a share of the largest possible loss."),
    ] = False,
    recalibrate: Annotated[
        str | None,
        typer.Option(
            metavar="METHOD", help="Fit a map to better probabilities on rows set apart: auto, {maps}."
        ),
    ] = None,
    recalibration_rows: Annotated[
        str | None,
        typer.Option(metavar="N", help="With --recalibrate or --growth auto: number or share of these rows."),
    ] = None,
    random_state: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Seed of the rows set apart, and of the betting bound's shuffle, for rows in random order.",
        ),
    ] = None,
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Skip the checks of scores, labels and sets.")
    ] = False,
    input_format: options.InputFormat = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
    cluster: options.Cluster = None,
    more_alphas: Annotated[
        str | None,
        typer.Option(metavar="A", help="With --cluster: other alphas to use later: 0.01,0.1."),
    ] = None,
    sign: options.Sign = None,
) -> None:
    """Find the exact threshold on rows with known labels, and save it.

    Use rows that the model was not trained on. Columns that you do not name are inferred if they are obvious,
    and a note says so.

    \b
    Examples:
      ordinalrisk calibrate scores.parquet --alpha 0.05 -o cal.json
      ordinalrisk calibrate scores.csv --label grade --scores 'p_*' \\
          --classes None,Mild,Severe --weights 1,1,5 --relative --alpha 0.1 \\
          -o cal.json
      ordinalrisk calibrate ages.jsonl --loss divergence --positions 18,30,65 \\
          --natural-units --alpha 2 -o cal.json
      ordinalrisk calibrate scores.arrow --loss costs.csv --alpha 0.1 -o cal.json
      ordinalrisk calibrate scores.parquet --side upper --alpha 0.01 -o worse.json
      ordinalrisk calibrate scores.parquet --alpha 0.1 --delta 0.1 \\
          --group hospital --cluster-col patient -o cal.json
      ordinalrisk calibrate judge.csv --scores p1,p2,p3,p4,p5 \\
          --classes 0,1,2,3,4,5,6 --recalibrate auto --alpha 0.1 -o cal.json
      ordinalrisk calibrate 's3://bucket/scores/*.parquet' --alpha 0.05 \\
          --cluster tcp://10.0.0.1:8786 --more-alphas 0.01,0.1 -o cal.json
    """  # noqa: D301
    places, written = row_files.named(scores_files, cluster), options.place(out)
    if out != "-":
        terminal.require_writable_file(written, "--out", *map(options.place, places))
    if more_alphas is not None and cluster is None:
        terminal.fail("--more-alphas is only for --cluster; otherwise every alpha is available anyway.")
    if sign is not None:
        options.require_private_key(sign, written)
    from ordinalrisk.calibration.spec import AUTO

    per_class = per_class or options.is_by_class(alpha)
    used = {
        "delta": delta is not None,
        "condition_on": per_class,
        "groups": group is not None,
        "clusters": cluster_col is not None,
        "sample_weight": weight_col is not None,
        "class_ratios": class_ratios is not None,
        "randomize": randomize,
        "relative": relative,
        "pool_classes": pool_classes or bool(pool),
        "exempt_classes": bool(exempt_class),
    }
    if pool_classes and pool:
        terminal.fail("--pool-classes chooses the pools by the numbers of rows; leave it out, or --pool.")
    with terminal.bad_data_is_one_line(), options.in_option_names():
        require_theorem(name for name, is_used in used.items() if is_used)
        learns = recalibrate is not None or growth == AUTO
        confidence = _confidence(delta, confidence_bound, random_state, learns)

    from ordinalrisk import jobs
    from ordinalrisk.controller import RiskController
    from ordinalrisk.growth.rules import GROWTH_RULES, as_growth
    from ordinalrisk.losses.kinds import loss_in_words

    def controller_for(labels: list[Any]) -> RiskController:
        controller = RiskController(
            options.loss_of(loss, weights, positions, power, under, over, natural_units, labels),
            options.alpha_of(alpha, labels),
            rule,
            labels,
            condition_on="label" if per_class else None,
            randomize=randomize,
            relative=relative,
            check=not no_check,
            pool_classes=pool_classes or [options.labels_of(names, "--pool", labels) for names in pool or []],
            exempt_classes=[options.label_of(name, "--exempt-class", labels) for name in exempt_class or []],
            side=side,
            growth_loss=None if growth_loss is None else options.plain_loss(growth_loss, labels),
            **confidence,
        )
        _require_alpha(controller, len(labels))
        return controller

    console = terminal.printer(to_error=out == "-")
    with terminal.noting_warnings(console), row_files.working_on(places, "Calibrating", cluster) as progress:
        if growth == AUTO and point is not None:
            terminal.fail("--growth auto chooses the point label too; leave --point out.")
        rule: Any = growth if growth == AUTO else as_growth(growth)
        if point is not None:
            rule = GROWTH_RULES[rule.name](point)
        if growth != AUTO and rule.point == "given":
            terminal.fail("--point given: point labels can't be given in a file.")
        with options.in_option_names():
            calibrated = jobs.calibrate(
                controller_for,
                places,
                label=label,
                scores=scores,
                classes=options.names(classes),
                logits=logits,
                rescale=rescale,
                group=group,
                cluster=cluster_col,
                weight=weight_col,
                class_ratios=options.numbers(class_ratios, "--class-ratios"),
                more_alphas=options.numbers(more_alphas, "--more-alphas") or [],
                recalibrate=recalibrate,
                recalibration_rows=_rows_apart(recalibration_rows),
                input_format=input_format,
                delimiter=options.delimiter_of(delimiter),
                decimal=decimal,
                sheet=sheet,
                dask=cluster,
                note=terminal.note,
                progress=progress,
            )
    _write(calibrated, written, sign)
    names = [str(name) for name in calibrated.classes_.tolist()]
    terminal.print_sentences(console, [loss_in_words(calibrated.loss, names, calibrated.side)])
    console.print(str(calibrated.guarantee()))
    _print_thresholds(console, calibrated)
    if learns:
        terminal.print_sentences(console, _learned(calibrated))
    if (seed := calibrated.shuffle_seed_) is not None:
        terminal.print_sentences(
            console,
            [f"The rows were shuffled with seed {seed}: --random-state {seed} gives these thresholds again."],
        )
    signature = "" if sign is None else f" and its signature {written}.sig"
    console.print(f"Wrote {'standard output' if out == '-' else written}{signature}")


def _rows_apart(text: str | None) -> Any:
    """Return a number of rows, or a share."""
    if text is None:
        return None
    return options.number(text, "--recalibration-rows")


def _learned(calibrated: RiskController) -> list[str]:
    """Say what was learned on the rows that were set apart."""
    if calibrated.rows_apart_ is None or not len(calibrated.rows_apart_):
        return []
    found = [f"{len(calibrated.rows_apart_):,} rows were set apart; they calibrate nothing."]
    if (fitted := calibrated.recalibrator_) is not None:
        found.append(f"The map of the scores is {fitted.method_!r}.")
        if fitted.gain_ > 0:
            found.append(f"It improves the mean log score of a row by {fitted.gain_:.3g}.")
    if calibrated.growth_sizes_ is not None:
        sizes = ", ".join(f"{name} {size:.3f}" for name, size in calibrated.growth_sizes_.items())
        rule = calibrated.growth
        found.append(f"The growth rule is {rule.name} (point {rule.point}); mean size of the sets: {sizes}.")
    return found


def _confidence(delta: str | None, bound: str, random_state: int | None, learns: bool) -> dict[str, Any]:
    """Check the parameters of a guarantee with probability 1 - delta; return none without delta."""
    from ordinalrisk.calibration.confidence_bounds import checked_bound, checked_delta

    if random_state is not None and random_state < 0:
        terminal.fail(f"--random-state must be 0 or larger; got {random_state}.")
    if delta is None:
        if bound != "auto":
            terminal.fail(f"--confidence-bound {bound} is for --delta; give a --delta too.")
        if random_state is not None and not learns:
            terminal.fail("--random-state is for --delta, --recalibrate and --growth auto; give one of them.")
        return {"random_state": random_state}
    risk = options.number(delta, "--delta")
    checked_delta(risk)
    if bound != "auto":
        checked_bound(bound)
    return {"delta": risk, "confidence_bound": bound, "random_state": random_state}


def _print_thresholds(console: Console, calibrated: RiskController) -> None:
    data = f"data {calibrated.data_blake3_[:16]}."
    strata = calibrated.calibration_.strata
    if strata.is_one:
        mean = " for a row of mean weight" if calibrated.calibration_.shift is not None else ""
        console.print(f"Threshold {calibrated.threshold_!r}{mean}; {data}")
        return
    from ordinalrisk.inputs.numbers import decimal_text

    promised = calibrated.guarantee().parts
    header = (*terminal.stratum_header(promised[0]), f"{promised[0].unit}s", "alpha", "threshold")
    rows = [
        (*terminal.stratum_name(part), f"{part.n_rows:,}", decimal_text(part.alpha), f"{threshold!r}")
        for part, threshold in zip(promised, calibrated.thresholds_, strict=True)
    ]
    shown = rows[:_MOST_THRESHOLDS]
    console.print()
    terminal.print_table(console, TextTable("", header, shown))
    more = "" if len(shown) == len(rows) else f"The first {len(shown)} of "
    console.print(f"{more}{len(rows)} thresholds; {data}")


def _require_alpha(controller: Any, n_classes: int) -> None:
    """Refuse an alpha before the rows are read."""
    from ordinalrisk.inputs.numbers import as_fraction, decimal_text
    from ordinalrisk.losses.kinds import of_side

    alpha = controller.alpha
    own = of_side(controller.loss, controller.side, n_classes)
    bound = Fraction(1) if controller.relative else own.bound(n_classes)
    for risk in alpha.values() if isinstance(alpha, dict) else [alpha]:
        if not 0 < (exact := as_fraction(risk)) < bound:
            if controller.relative:
                terminal.fail(
                    f"--alpha must lie strictly between 0 and 1 with --relative; got {decimal_text(exact)}. "
                    "It is a share of what could be lost: for 5 % write 0.05."
                )
            options.refuse_alpha(exact, bound)


def _write(calibrated: Any, out: Path | StoredFile, key: Path | None) -> None:
    from ordinalrisk.saving import calibration_file

    if str(out) == "-":
        typer.echo(calibration_file.text_of(calibrated.spec, calibrated.calibration_), nl=False)
        return
    with terminal.writing_to(out):
        calibrated.save(out, key=key)
