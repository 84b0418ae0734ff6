"""Sentences about a reproduction, with numbers that are computed from its results."""

from __future__ import annotations

from collections.abc import Iterator

from ordinalrisk.losses.kinds import WeightedLoss
from reproduction.run import RELEASED, TOLERANCE, Reproduction

_NOTICEABLE = 0.05  # labels


def agreement(reproduction: Reproduction) -> str:
    """How much of the published table is met."""
    cells = reproduction.comparisons
    worst = max(cells, key=lambda c: abs(c.difference))
    return (
        f"{sum(c.agrees for c in cells)} of {len(cells)} cells are within {TOLERANCE} of the published ones; "
        f"the largest difference is {worst.difference:+z.4f} ({worst.scenario} at alpha = {worst.alpha})."
    )


def differences(reproduction: Reproduction) -> Iterator[str]:
    """Results that do not agree with the paper, and the reasons."""
    causes = {
        "simulated": _simulated,
        "utkface": _utkface,
        "diabetic-retinopathy": _diabetic_retinopathy,
    }
    yield from causes[reproduction.experiment.name](reproduction)
    yield from _above_alpha(reproduction)


def findings(reproduction: Reproduction) -> Iterator[str]:
    """Results beyond the published table."""
    yield from _sizes_of_rules(reproduction)
    yield from _centroids(reproduction)


def class_spread(reproduction: Reproduction) -> str:
    """How far the coverage of single classes spreads around the guarantee."""
    experiment, growth = reproduction.experiment, reproduction.growths[-1]
    ranges = []
    for r in reproduction.class_results("softmax", growth):
        known = [(share, k) for k, share in enumerate(r.class_coverage) if share is not None]
        (low, least), (high, most) = min(known), max(known)
        classes = experiment.classes
        ranges.append(f"{r.scenario} from {low:.2f} ({classes[least]}) to {high:.2f} ({classes[most]})")
    ignored = [
        name
        for name, loss in experiment.scenarios.items()
        if isinstance(loss, WeightedLoss) and 0 in (loss.weights or ())
    ]
    return (
        "The guarantee is for the average over cases. Coverage of single classes at "
        f"alpha = {experiment.class_alpha} ({growth} rule, softmax scores): {'; '.join(ranges)}."
        + (f" In {' and '.join(ignored)} a class has weight 0: missing it costs nothing." if ignored else "")
    )


def _simulated(reproduction: Reproduction) -> Iterator[str]:
    published = reproduction.experiment.published[reproduction.experiment.divergence][1]
    limit = _saturation(reproduction)
    if limit is None:
        return
    if reproduction.on_released_scores:
        yield (
            f"Divergence saturates at {limit:.4f} here and at {published} in the paper. There every set is a "
            "single label, and its risk is the mean distance of label and truth as a share of the scale: a "
            "fact of the scores. The paper scores 14,000 rows and the released file has "
            f"{len(reproduction.scores.y):,}, so it is not the run behind the table."
        )
    elif reproduction.scores.trained_here:
        yield (
            'The paper draws each class with "a randomly generated covariance matrix". Its released code '
            "passes a matrix of uniform numbers, which is no covariance matrix; here each is A A' with A "
            "standard normal. So the data differ, and with them the risk at which divergence saturates: "
            f"{limit:.4f} here, {published} in the paper. Other seeds draw other matrices and other limits."
        )


def _utkface(reproduction: Reproduction) -> Iterator[str]:
    scores, experiment = reproduction.scores, reproduction.experiment
    yield (
        f"The authors' scores are not to be had; these are {reproduction.source}, with accuracy "
        f"{scores.accuracy:.3f} and a mean absolute error of {scores.mean_absolute_error:.2f} groups of five "
        "years."
    )
    published, limit = experiment.published[experiment.divergence][-1], _saturation(reproduction)
    groups = len(experiment.classes) - 1
    if limit is not None and limit > 2 * published:
        ends = [c for c in reproduction.comparisons if c.scenario == "S3"][-1]
        yield (
            f"The published divergence risk saturates at {published}: single labels that are off by "
            f"{published * groups:.2f} groups, {published * groups * 5:.1f} years, on average. Here it "
            f"saturates at {limit:.4f}, {limit * groups:.2f} groups. We know of no model that comes near the "
            "former on faces it has not seen, so the paper's scores are hardly of held-out faces only. For "
            f"the same reason S3 ends at {ends.published} there and at {ends.risk:.4f} here."
        )
    yield (
        "Copies are one way for images to leak: UTKFace has hundreds of photographs more than once, many "
        "under different ages. With --images all copies are kept on one side of the split."
    )


def _diabetic_retinopathy(reproduction: Reproduction) -> Iterator[str]:
    scores = reproduction.scores
    if not reproduction.on_released_scores:
        yield (
            f"These are not the paper's scores: {len(scores.y):,} rows, accuracy {scores.accuracy:.3f}, mean "
            f"absolute error {scores.mean_absolute_error:.2f} grades. They show the method, not the table: "
            "risk follows alpha until single labels keep within it, which depends on the model's errors."
        )
        return
    worst = {
        name: max(abs(c.difference) for c in reproduction.compared(name)) for name in reproduction.results
    }
    patients = {name.rsplit("_", 1)[0] for name in scores.names}
    if reproduction.growths[0] == "paper":
        yield (
            "The paper says softmax; its released code divides the logits, less their smallest, by their sum "
            f"({RELEASED}). With that every cell is within {worst[RELEASED]:.4f} of the published one; with "
            f"a softmax the largest difference is {worst['softmax']:.4f}."
        )
    yield (
        f"The paper scores 19,000 images; the released file has {len(scores.y):,}, of {len(patients):,} "
        "patients. Random halves of these rows are exchangeable, whatever they are; a new patient's two eyes "
        "are not two independent rows."
    )


def _above_alpha(reproduction: Reproduction) -> Iterator[str]:
    cells = [r for results in reproduction.results.values() for r in results]
    above = [r for r in cells if r.risk > r.alpha]
    errors = [(r.risk - r.alpha) / r.risk_se for r in above if r.risk_se]
    if above:
        most = f", by at most {max(errors):.1f} standard errors" if errors else ""
        yield (
            f"Of {len(cells)} mean risks {len(above)} {'lie' if len(above) > 1 else 'lies'} above alpha"
            f"{most}: the guarantee is for the expectation, and a mean over random halves scatters around it."
        )


def _saturation(reproduction: Reproduction) -> float | None:
    """The divergence risk of single labels by the first rule; None if the largest alpha has larger sets."""
    *_, last = (
        r
        for r in reproduction.results[RELEASED]
        if (r.scenario, r.growth) == (reproduction.experiment.divergence, reproduction.growths[0])
    )
    return last.risk if last.size == 1 else None


def _sizes_of_rules(reproduction: Reproduction) -> Iterator[str]:
    if not {"paper", "frontier"} <= set(reproduction.growths):
        return
    for name, results in reproduction.results.items():
        size = {(r.scenario, r.alpha, r.growth): r.size for r in results}
        cases = [(r.scenario, r.alpha) for r in results if r.growth == "paper"]
        gain = {case: size[*case, "paper"] - size[*case, "frontier"] for case in cases}
        best, worst = max(cases, key=gain.__getitem__), min(cases, key=gain.__getitem__)
        text = (
            f"With {name} scores, frontier needs {size[*best, 'frontier']:.2f} labels where the paper's rule "
            f"needs {size[*best, 'paper']:.2f} ({best[0]} at alpha = {best[1]})"
        )
        if gain[worst] >= -_NOTICEABLE:
            yield f"{text}, and nowhere more than {_NOTICEABLE} labels above it."
        else:
            yield (
                f"{text}, but {size[*worst, 'frontier']:.2f} where that needs {size[*worst, 'paper']:.2f} "
                f"({worst[0]} at alpha = {worst[1]}); it is proved smallest for accurate probabilities only."
            )


def _centroids(reproduction: Reproduction) -> Iterator[str]:
    experiment = reproduction.experiment
    weighted = [name for name in experiment.scenarios if name not in ("S1", experiment.divergence)]
    for name in reproduction.results:
        at = reproduction.centroids_by(name, reproduction.growths[0])
        moved = " and ".join(f"{at[s].mean:.2f} ({s}, {experiment.meaning[s]})" for s in weighted)
        yield (
            f"At mean size {experiment.centroid_size} or below with {name} scores, sets are centred "
            f"{at['S1'].from_middle:.2f} labels from the middle of the scale on average under equal weights "
            f"and {at[experiment.divergence].from_middle:.2f} under divergence; weights move the mean "
            f"centroid from {at['S1'].mean:.2f} to {moved}."
        )
