"""On the paper authors' own model scores: their Table 3, and the set sizes of each growth rule."""

import os
from pathlib import Path

import numpy as np
import pytest

import ordinalrisk as orisk
from ordinalrisk.probabilities import min_shift

DATA = Path(os.environ.get("ORDINALRISK_DATA", Path(__file__).parents[2] / "shared" / "data"))
SCORES = DATA / "paper_scores"
pytestmark = pytest.mark.skipif(
    not SCORES.is_dir(), reason="the paper's scores are absent; name their folder in ORDINALRISK_DATA"
)

ALPHAS = (0.02, 0.08, 0.14, 0.20)


def labels_and_logits(name, n_classes):
    columns = (2, *range(4, 4 + n_classes))  # an index, a name, the label, the predicted label, the logits
    table = np.genfromtxt(SCORES / name, delimiter=",", skip_header=1, usecols=columns)
    return table[:, 0].astype(int), table[:, 1:]


def mean_over_random_halves(proba, y, loss, growth, alphas, trials, seed=0):
    """Realised risk and set size at each alpha, averaged over random halves."""
    rng = np.random.default_rng(seed)
    found = np.zeros((2, len(alphas)))
    for _ in range(trials):
        order = rng.permutation(len(y))
        calibration, test = order[: len(y) // 2], order[len(y) // 2 :]
        controller = orisk.RiskController(loss=loss, growth=growth, alpha=alphas[0])
        controller.calibrate(proba[calibration], y[calibration])
        for k, alpha in enumerate(alphas):
            sets = controller.predict_set(proba[test], alpha=alpha)
            found[:, k] += orisk.metrics.risk(y[test], sets, loss), sets.size.mean()
    return found / trials


@pytest.mark.parametrize(
    ("loss", "published"),
    [
        (orisk.WeightedLoss(), [0.0198, 0.0794, 0.1402, 0.1499]),
        (orisk.WeightedLoss([1, 1, 1, 2, 2]), [0.0199, 0.0801, 0.1401, 0.1485]),
        (orisk.DivergenceLoss(), [0.0200, 0.0430, 0.0428, 0.0428]),
    ],
    ids=["S1", "S2", "S3"],
)
def test_table_3_of_the_paper(loss, published):
    y, logits = labels_and_logits("diabetic_retinopathy.csv", 5)
    risk, _ = mean_over_random_halves(min_shift(logits), y, loss, "paper", ALPHAS, trials=100)
    assert risk == pytest.approx(published, abs=0.002)


SIZES = {
    "simulated S1": (orisk.WeightedLoss(), 0.02, (2.99, 2.99, 2.97)),
    "simulated S2": (orisk.WeightedLoss(range(10)), 0.02, (7.72, 2.45, 2.42)),
    "simulated S3": (orisk.WeightedLoss([1] * 5 + [2] * 5), 0.02, (6.64, 2.81, 2.80)),
    "simulated S4": (orisk.DivergenceLoss(), 0.02, (1.79, 1.79, 1.77)),
    "diabetic_retinopathy S2": (orisk.WeightedLoss([1, 1, 1, 2, 2]), 0.005, (4.47, 1.85, 1.84)),
}


@pytest.mark.parametrize("scenario", SIZES)
def test_set_sizes_of_the_growth_rules(scenario):
    loss, alpha, sizes = SIZES[scenario]
    name = scenario.split()[0]
    y, logits = labels_and_logits(f"{name}.csv", 10 if name == "simulated" else 5)
    proba = orisk.softmax(logits)
    for growth, size in zip(("paper", "adaptive", "frontier"), sizes, strict=True):
        risk, mean_size = mean_over_random_halves(proba, y, loss, growth, [alpha], trials=50)
        assert risk[0] == pytest.approx(alpha, rel=0.03)
        assert mean_size[0] == pytest.approx(size, abs=0.05)
