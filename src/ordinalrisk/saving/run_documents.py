"""The fields of a saved monitor and of a saved online run, and what the two have in common."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from ordinalrisk.calibration.promises import checked_alpha, checked_share
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.numbers import Number, as_fraction, from_json
from ordinalrisk.losses.kinds import IntervalLoss
from ordinalrisk.recalibration.recalibration import Recalibration
from ordinalrisk.saving import shared_fields as shared
from ordinalrisk.saving.document_with_digests import Document, FilePath, JsonObject, naming
from ordinalrisk.saving.shared_fields import UNIQUE, Count, PositiveNumber, Ratio, Whole, about

_Hexadecimal = Annotated[str, Meta(pattern=r"^-?0x[01]\.[0-9a-f]+p[+-][0-9]+$")]
_Wealth = Annotated[str, Meta(pattern=r"^0x[01]\.[0-9a-f]+p[+-][0-9]+$")]
_RowNumber = Annotated[int, Meta(ge=1)]


class WatchedFile(JsonObject):
    """A file that was watched."""

    n_rows: Annotated[_RowNumber, about("The number of its rows.")]
    blake3: Annotated[shared.Digest, about("A BLAKE3 fingerprint of its scores and labels.")]
    in_any_order: Annotated[
        shared.Digest | None,
        about("A fingerprint of the same rows in any order; null if unknown or if few rows differ."),
    ] = None
    starts: Annotated[
        tuple[shared.Digest, ...],
        about("Fingerprints of its first 20, 40, 80, ... rows, as long as there are so many."),
    ] = ()


class Lowest(JsonObject):
    """Where the total loss minus alpha times the number of rows was lowest."""

    n_rows: Annotated[Count, about("The number of rows up to there.")]
    total_loss: Annotated[Ratio, about("The sum of their losses, exactly.")]


class Stakes(JsonObject):
    """What rows could have lost at most, for a guarantee that is a share of it."""

    total: Annotated[Ratio, about("The sum over all rows, exactly; with clusters, of their means.")]
    lowest: Annotated[Ratio, about("The sum over the rows up to the lowest loss, exactly.")]
    recent: Annotated[list[Ratio], about("That of each of the last rows, exactly.", max_length=500)]


_NEW_IN_3: dict[str, Any] = {"relative": False, "exempt_classes": [], "n_exempt": 0, "stakes": None}


class MonitorDocument(shared.DocumentOfLoss):
    """A saved monitor, as RiskMonitor.save and ordinalrisk monitor write it."""

    name: ClassVar = "ordinalrisk monitor"
    version: ClassVar = 3  # to be raised if the bets change
    older: ClassVar = {
        1: (  # without files, clusters and the start of a rise
            {
                "lowest": {"n_rows": 0, "total_loss": "0"},
                "recent": [],
                "rise_row": None,
                "clusters": None,
                "files": [],
                **_NEW_IN_3,
            },
            lambda saved: _risen_since_now(saved),
        ),
        2: (_NEW_IN_3, lambda saved: saved),
    }

    alpha: Annotated[PositiveNumber, about("The risk that is watched.")]
    relative: Annotated[bool, about("Whether alpha is a share of what could be lost.")]
    exempt_classes: Annotated[
        list[shared.Name], about("Classes whose rows are left out.", extra_json_schema=UNIQUE)
    ]
    n_exempt: Annotated[Count, about("The number of rows that were left out.")]
    delta: Annotated[shared.Probability, about("The probability of a false alarm.")]
    n_rows: Annotated[Count, about("The number of rows so far; with clusters, of clusters.")]
    total_loss: Annotated[
        Ratio, about("The sum of their losses, exactly; with clusters, of their mean losses.")
    ]
    lowest: Annotated[Lowest, about("Where the total loss minus alpha times the rows was lowest.")]
    recent: Annotated[list[Ratio], about("The last losses, exactly; at most 500.", max_length=500)]
    stakes: Annotated[Stakes | None, about("What rows could have lost; null unless alpha is a share of it.")]
    wealth: Annotated[list[_Wealth], about("The wealth of each bet, as hexadecimal numbers.", min_length=1)]
    peak: Annotated[_Wealth, about("The largest evidence so far; one over it is the p-value.")]
    alarm_row: Annotated[_RowNumber | None, about("The row that raised the alarm, counted from 1.")]
    rise_row: Annotated[
        _RowNumber | None, about("The row from which the loss was above alpha on average, up to the alarm.")
    ]
    clusters: Annotated[
        list[Annotated[str, Meta(pattern="^[0-9a-f]{16}$", max_length=16)]] | None,
        about("A digest of the name of each cluster, in order; null if there are none."),
    ]
    files: Annotated[list[WatchedFile], about("The files that were watched.")]


def _risen_since_now(saved: MonitorDocument) -> MonitorDocument:
    """Start to look for a rise of the loss after the rows of an older monitor, unless it is above alpha."""
    if as_fraction(saved.total_loss) > saved.n_rows * as_fraction(from_json(saved.alpha)):
        return saved
    return replace(saved, lowest=Lowest(saved.n_rows, saved.total_loss))


class LowestEvidence(JsonObject):
    """Where the evidence was lowest, up to the alarm."""

    n_rows: Annotated[Count, about("The number of rows up to there.")]
    evidence: Annotated[_Wealth, about("The evidence after them.")]


class DriftDocument(Document):
    """A saved test for drift, as ScoreDrift.save and ordinalrisk drift write it."""

    name: ClassVar = "ordinalrisk drift"
    version: ClassVar = 3  # to be raised if the bets or the bins change
    older: ClassVar = {  # they took probabilities, mapped by the caller; files of 1 have fewer fingerprints
        version: ({"recalibration": None}, lambda saved: saved) for version in (1, 2)
    }

    classes: shared.ClassNames
    delta: Annotated[shared.Probability, about("The probability of a false alarm.")]
    data_blake3: Annotated[shared.Digest, about("The fingerprint of the calibration data.")]
    seed: Annotated[Whole, about("The seed of the random numbers that break ties.")]
    n_rows: Annotated[Count, about("The number of new rows so far.")]
    calibrated: Annotated[shared.SavedCounts, about("The uncertainty of the calibration rows.")]
    seen: Annotated[shared.SavedCounts, about("The uncertainty of the new rows.")]
    wealth: Annotated[list[_Wealth], about("The wealth of each bet, as hexadecimal numbers.", min_length=1)]
    peak: Annotated[_Wealth, about("The largest evidence so far; one over it is the p-value.")]
    lowest: Annotated[LowestEvidence, about("Where the evidence was lowest, up to the alarm.")]
    alarm_row: Annotated[_RowNumber | None, about("The row that raised the alarm, counted from 1.")]
    rise_row: Annotated[_RowNumber | None, about("The row after the lowest evidence, if there is an alarm.")]
    files: Annotated[list[WatchedFile], about("The files that were compared.")]
    recalibration: Annotated[
        Recalibration | None, about("The map from scores to probabilities; null if scores are probabilities.")
    ]


class Pending(JsonObject):
    """The rows handed out that have no label yet, in order."""

    rows: Annotated[list[Count], about("Their numbers, from 0 on.", extra_json_schema=UNIQUE)]
    lower: Annotated[list[Count], about("The position of the first label of each set.")]
    upper: Annotated[list[Count], about("The position of the last label of each set.")]


class OnlineDocument(shared.DocumentOfLoss):
    """A saved run of an online controller, as OnlineRiskController.save writes it."""

    name: ClassVar = "ordinalrisk online controller"
    version: ClassVar = 2
    older: ClassVar = {  # each row was settled before the next one was handed out
        1: (
            {"pending": {"rows": [], "lower": [], "upper": []}, "most_pending": 0},
            lambda saved: replace(saved, most_pending=min(1, saved.n_rows)),
        )
    }

    growth: Annotated[shared.Growth, about("The growth rule of sets.")]
    alpha: Annotated[PositiveNumber, about("The level that bounds the mean loss over time.")]
    rate: Annotated[shared.Share, about("How far a row moves the threshold.")]
    n_rows: Annotated[Count, about("The rows handed out so far, pending rows included.")]
    total_loss: Annotated[Ratio, about("The sum of the losses of the settled rows, exactly.")]
    start: Annotated[Whole, about("The starting position, in whole parts of the scale.")]
    place: Annotated[int, about("The current position. Below 0, sets are full.")]
    theta: Annotated[_Hexadecimal, about("The current position, from 0 (full sets) to 1 (single labels).")]
    pending: Annotated[Pending, about("The rows handed out that have no label yet, in order.")]
    most_pending: Annotated[Count, about("The largest number of rows that were pending at once so far.")]


def run_settings(
    path: FilePath, saved: MonitorDocument | OnlineDocument
) -> tuple[IntervalLoss, Classes, Number]:
    """Read the loss, the labels and ``alpha``."""
    loss, classes, costs = saved.loss_on_classes(path)
    with naming(path, "alpha"):
        alpha = from_json(saved.alpha)
        if getattr(saved, "relative", False):
            checked_share(as_fraction(alpha))
        else:
            checked_alpha(as_fraction(alpha), costs.bound)
    return loss, classes, alpha
