"""The fields of a saved calibration."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, to_builtins
from msgspec.structs import replace

from ordinalrisk.calibration.confidence_bounds import BOUNDS
from ordinalrisk.inputs.numbers import as_fraction
from ordinalrisk.recalibration.recalibration import Recalibration
from ordinalrisk.saving import shared_fields as shared
from ordinalrisk.saving.document_with_digests import JsonObject
from ordinalrisk.saving.older_calibrations import units_in_betting_order, warn_of_other_ties
from ordinalrisk.saving.shared_fields import (
    POSITIVE,
    UNIQUE,
    Count,
    PositiveNumber,
    Ratio,
    Whole,
    about,
    one_of,
)

# msgspec 0.22 corrupts memory where a union has a list and text with a pattern, so only the schema has it.
_Text = Annotated[str, Meta(extra_json_schema={"pattern": POSITIVE})]
_AlphaValue = Annotated[int, Meta(gt=0)] | Annotated[float, Meta(gt=0)] | _Text
_PositiveRatio = Annotated[str, Meta(pattern="^[1-9][0-9]*(/[1-9][0-9]*)?$")]
_Hexadecimal = Annotated[str, Meta(pattern=r"^-?(inf|0x[01]\.[0-9a-f]+p[+-][0-9]+)$")]
_DecimalText = Annotated[str, Meta(pattern=r"^-?(inf|[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?)$")]
_StepTotals = list[Annotated[int, Meta(ge=1)]]
_Groups = Annotated[list[shared.Name], Meta(min_length=1, extra_json_schema=UNIQUE)]


class Options(JsonObject):
    """The options of the guarantee."""

    delta: Annotated[shared.Probability | None, about("alpha is kept with probability 1 - delta.")]
    bound: Annotated[str, one_of(("auto", *BOUNDS), "The confidence bound behind delta.")]
    condition_on: Annotated[Literal["label"] | None, about("Whether alpha is kept for each true class.")]
    randomize: Annotated[bool, about("Whether labels at the threshold are included at random.")]
    relative: Annotated[bool, about("Whether alpha is a share of what could be lost.")] = False


class Threshold(JsonObject):
    """A label belongs to a set if its level is at least this."""

    hex: Annotated[_Hexadecimal, about("The threshold, exactly: 0x1.8p-1 is 0.75.")]
    decimal: Annotated[_DecimalText, about("The same number in the fewest decimals.")]


class SavedWindow(JsonObject):
    """Consecutive levels of a curve: all levels between them are known."""

    below: Annotated[Whole, about("The total of all steps below the window, in units.")]
    levels: Annotated[list[float], about("Levels at which the total steps up, increasing.", min_length=1)]
    totals: Annotated[
        _StepTotals, about("The total just above each level, in units, increasing.", min_length=1)
    ]


class SavedCurve(JsonObject):
    """The total loss of the rows at every threshold."""

    unit: Annotated[_PositiveRatio, about("What totals count: every loss is a whole number of units.")]
    bound: Annotated[Ratio, about("B, the largest loss of a row.")]
    n_rows: Annotated[Count, about("The number of rows, or of clusters where clusters are exchangeable.")]
    weight: Annotated[Ratio, about("The total weight of the rows: their number unless they are weighted.")]
    most_tied: Annotated[Whole, about("The most rows with a step at the same level: M of Theorem 4.")]
    total: Annotated[Whole, about("The sum of all steps, in units.")]
    windows: Annotated[list[SavedWindow] | None, about("The known parts; null if steps are saved.")]
    stake: Annotated[Ratio | None, about("The most that all rows can lose, if alpha is a share of it.")] = (
        None
    )


class SavedSteps(JsonObject):
    """The steps of each row's loss, for the betting bound: three lists of one length, and the stakes."""

    at: Annotated[list[float], about("The level of each step.")]
    unit: Annotated[list[Count], about("The row, or cluster, that has this step.")]
    by: Annotated[_StepTotals, about("The height of the step, in units.")]
    stakes: Annotated[
        list[Whole] | None, about("The most that each row can lose, in units, if alpha is a share of it.")
    ] = None


class SavedStratum(JsonObject):
    """Rows with a threshold of their own: those of a group, of a true class, of both, or all."""

    group: Annotated[Count | None, about("The position of the group in groups, or null.")]
    label: Annotated[Count | None, about("The position of the true class in classes, or null.")]
    n_rows: Annotated[Count, about("The number of calibration rows.")]
    threshold: Annotated[Threshold, about("A label belongs to a set if its level is at least this.")]
    curve: Annotated[SavedCurve, about("The evidence: the total loss of the rows at every threshold.")]
    steps: Annotated[SavedSteps | None, about("The steps of each row's loss, if the bound needs them.")]


class Columns(JsonObject):
    """The columns of the file that was calibrated with; later files are read by the same names."""

    scores: Annotated[list[str], about("The column of each class.", min_length=2, extra_json_schema=UNIQUE)]
    label: Annotated[str, about("The column of the true label.")]
    logits: Annotated[bool, about("Whether scores are logits, which a softmax turns into probabilities.")]
    rescale: Annotated[bool, about("Whether each row of scores is divided by its sum. Not with logits.")]
    group: Annotated[str | None, about("The column of groups.")]
    cluster: Annotated[str | None, about("The column of clusters.")]
    weight: Annotated[str | None, about("The column of weights.")]


_NEW_IN_8: dict[str, Any] = {"side": None, "growth_loss": None}
_NEW_IN_7: dict[str, Any] = {"recalibration": None, **_NEW_IN_8}
_NEW_IN_6 = {"score_counts": None, "pool_classes": None, "exempt_classes": [], **_NEW_IN_7}


def _from_schema_4(saved: CalibrationDocument) -> CalibrationDocument:
    warn_of_other_ties(saved.growth.name, to_builtins(saved.loss), len(saved.classes))
    return replace(saved, strata=[_in_betting_order(stratum) for stratum in saved.strata])


def _in_betting_order(stratum: SavedStratum) -> SavedStratum:
    steps, curve = stratum.steps, stratum.curve
    if steps is None:
        return stratum
    scale = as_fraction(curve.unit) / as_fraction(curve.bound)
    losses = [float(by * scale) for by in steps.by]
    units = units_in_betting_order(steps.at, steps.unit, losses, curve.n_rows)
    return replace(stratum, steps=replace(steps, unit=units))


class CalibrationDocument(shared.DocumentOfLoss):
    """A saved calibration, as RiskController.save and ordinalrisk calibrate write it."""

    name: ClassVar = "ordinalrisk calibration"
    version: ClassVar = 8
    older: ClassVar = {
        4: ({"shuffle_seed": None, **_NEW_IN_6}, _from_schema_4),
        5: (_NEW_IN_6, lambda saved: saved),
        6: (_NEW_IN_7, lambda saved: saved),
        7: (_NEW_IN_8, lambda saved: saved),
    }

    growth: Annotated[shared.Growth, about("The growth rule of sets.")]
    alpha: Annotated[
        _AlphaValue | Annotated[list[PositiveNumber], Meta(min_length=2)],
        about("The largest expected loss; one for each class, in label order, where each has its own."),
    ]
    options: Annotated[Options, about("The options of the guarantee.")]
    pool_classes: Annotated[
        Literal[True]
        | list[Annotated[list[shared.Name], Meta(min_length=2, extra_json_schema=UNIQUE)]]
        | None,
        about("Classes that share a threshold; true if they follow from the numbers of rows."),
    ]
    exempt_classes: Annotated[
        list[shared.Name], about("Classes without a guarantee.", extra_json_schema=UNIQUE)
    ]
    unit: Annotated[Literal["row", "cluster"], about("What is exchangeable.")]
    shift: Annotated[
        Literal["covariates"] | Annotated[list[Ratio], Meta(min_length=2)] | None,
        about("The ratio of each class, in label order, or covariates if each row has its own weight."),
    ]
    groups: Annotated[_Groups | None, about("The groups that have thresholds of their own.")]
    strata: Annotated[list[SavedStratum], about("A threshold for each group and true class.", min_length=1)]
    data_blake3: Annotated[shared.Digest, about("A BLAKE3 fingerprint of the calibration data.")]
    columns: Annotated[Columns | None, about("The columns of the calibration file; null for arrays.")]
    more_alphas: Annotated[list[PositiveNumber], about("Other risks that a curve in windows can answer.")]
    shuffle_seed: Annotated[
        Whole | None,
        about("The seed of the order in which units bet; null if no order is needed or known."),
    ]
    score_counts: Annotated[
        shared.SavedCounts | None,
        about("How certain the model was; null if unknown, and for clusters and weighted rows."),
    ]
    recalibration: Annotated[
        Recalibration | None, about("The map from scores to probabilities; null if scores are probabilities.")
    ]
    side: Annotated[
        Literal["upper", "lower"] | None, about("The only end of sets that is controlled; null for both.")
    ]
    growth_loss: Annotated[shared.Loss | None, about("The loss that sets grow by; null if it is the loss.")]
