"""The guarantee of ``OrdinalRiskClassifier.fit`` over many fresh data sets, for a model that follows luck.

The model predicts the class shares of its training rows. If the calibration rows share the luck of the
training rows and new rows do not, for example because the hold-out balances the classes, then the calibration
measures a risk that is too small. Labels do not depend on features, so the risk of a fitted model is computed
from the class shares; only features are drawn. Means are taken without control variates: these assume
calibration rows that are drawn like new rows, which is what is tested here.

Every file is sorted by label. A mean over the draws may exceed alpha by 3 standard errors, which is little
enough to see a risk that is larger by a tenth.
"""

from dataclasses import dataclass, field, replace
from inspect import signature

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from ordinalrisk import DivergenceLoss, OrdinalRiskClassifier, WeightedLoss

DRAWS = 300
NEW_ROWS = 100

pytestmark = [
    pytest.mark.no_cover,
    pytest.mark.filterwarnings("ignore:No .* row has the labels"),
    pytest.mark.filterwarnings("ignore:.*calibration"),
]


class SharesClassifier(ClassifierMixin, BaseEstimator):
    """Predicts the class shares of its training rows, times ``exp`` of the features: one for each class."""

    def fit(self, X, y):
        self.classes_, self.counts_ = np.unique(y, return_counts=True)
        return self

    def predict_proba(self, X):
        weights = self.counts_ * np.exp(X[:, self.classes_])
        return weights / weights.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Design:
    """How many rows of which classes there are, and how a model is made of them."""

    shares: np.ndarray
    n_rows: int
    n_held_out: int
    alpha: float
    loss: object = WeightedLoss()
    noise: float = 0.02  # of the features: enough to break ties
    recalibrate: str | None = None  # the scores as they are, which takes a tenth of the time
    options: dict = field(default_factory=dict)

    def model(self, seed):
        return OrdinalRiskClassifier(
            SharesClassifier(),
            loss=self.loss,
            alpha=self.alpha,
            classes=range(len(self.shares)),
            calibration_size=self.n_held_out,
            random_state=seed,
            recalibrate=self.recalibrate,
            **self.options,
        )

    def features(self, rng, n_rows):
        return rng.normal(0, self.noise, (n_rows, len(self.shares)))

    def fitted(self, rng, seed):
        y = np.sort(rng.choice(len(self.shares), self.n_rows, p=self.shares))
        return self.model(seed).fit(self.features(rng, self.n_rows), y)

    def losses(self, sets):
        """What a new row of each class loses, on average over the sets."""
        labels = np.arange(len(self.shares))
        ends = np.clip(labels, sets.lower_index[:, None], sets.upper_index[:, None])
        return self.loss.cost_table(len(labels))[labels, ends].mean(axis=0)


def assert_kept(risks, alpha):
    """The mean risk is at most alpha, and would be seen to exceed it if it were larger by a tenth."""
    mean, error = np.mean(risks, axis=0), np.std(risks, axis=0) / np.sqrt(len(risks))
    assert np.all(mean <= alpha + 3 * error), (mean, error)
    assert np.all(1.1 * mean > alpha + 3 * error), (mean, error)


def equal(n_classes):
    return np.full(n_classes, 1 / n_classes)


def rare(n_classes):
    """The k-th class has a share in proportion to 1 / k."""
    share = 1 / np.arange(1, n_classes + 1)
    return share / share.sum()


# Where alpha times one more than the held-out rows is whole, the risk is alpha itself, and any excess shows.
DESIGNS = {
    "two classes": Design(equal(2), 98, 49, 0.4),
    "five classes": Design(equal(5), 118, 59, 0.3),
    "ten classes": Design(equal(10), 238, 119, 0.3),
    "ten classes, small alpha": Design(equal(10), 238, 119, 0.1),
    "few training rows": Design(equal(5), 80, 59, 0.3),
    "few held-out rows": Design(equal(3), 160, 39, 0.3),
    "nine held-out rows": Design(equal(10), 49, 9, 0.5),
    "rare classes": Design(rare(20), 198, 99, 0.1),
    "more classes than rows": Design(equal(60), 58, 29, 0.3),
    "divergence": Design(equal(5), 398, 199, 0.1, DivergenceLoss()),
    "unequal weights": Design(equal(4), 398, 199, 0.2, WeightedLoss([1, 2, 2, 4])),
    "paper": Design(equal(5), 118, 59, 0.3, options={"growth": "paper"}),
    "adaptive": Design(equal(5), 118, 59, 0.3, options={"growth": "adaptive"}),
    "ties": Design(equal(5), 118, 59, 0.3, noise=0.0, options={"randomize": True}),
    "ties of two": Design(equal(2), 98, 49, 0.4, noise=0.0, options={"randomize": True}),
}


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_expected_loss_is_at_most_alpha(design):
    rng = np.random.default_rng(0)
    risks = []
    for seed in range(DRAWS):
        sets = design.fitted(rng, seed).predict_set(
            design.features(rng, NEW_ROWS),
            **({"random_state": seed} if "randomize" in design.options else {}),
        )
        risks.append(design.losses(sets) @ design.shares)
    assert_kept(risks, design.alpha)


DEFAULT = signature(OrdinalRiskClassifier).parameters["recalibrate"].default
RECALIBRATED = ("five classes", "nine held-out rows", "ties of two")


@pytest.mark.parametrize("name", RECALIBRATED)
def test_expected_loss_is_at_most_alpha_by_default(name):
    """The map is fitted on the training rows, whose luck it follows as the model does."""
    assert DEFAULT == "auto"
    test_expected_loss_is_at_most_alpha(replace(DESIGNS[name], recalibrate=DEFAULT))


def test_expected_loss_of_each_group_is_at_most_alpha():
    """A third of the rows belong to a group that has other class shares."""
    design = Design(equal(5), 478, 239, 0.3)
    shares = np.array([equal(5), [0.4, 0.3, 0.15, 0.1, 0.05]])
    rng = np.random.default_rng(0)
    risks = []
    for seed in range(DRAWS):
        group = (rng.random(design.n_rows) < 1 / 3).astype(int)
        y = (shares.cumsum(axis=1)[group, :-1] < rng.random((design.n_rows, 1))).sum(axis=1)
        model = design.model(seed).fit(design.features(rng, design.n_rows), y, groups=group)
        new = design.features(rng, NEW_ROWS)
        sets = [model.predict_set(new, groups=np.full(NEW_ROWS, which)) for which in (0, 1)]
        risks.append([design.losses(each) @ share for each, share in zip(sets, shares, strict=True)])
    assert_kept(risks, design.alpha)


def test_expected_loss_of_each_class_is_at_most_alpha():
    """With two classes no label lies between others, so no set holds more labels than it must."""
    design = Design(np.array([0.4, 0.6]), 238, 119, 0.3, noise=1.0, options={"condition_on": "label"})
    rng = np.random.default_rng(0)
    risks = []
    for seed in range(DRAWS):
        model = design.fitted(rng, seed)
        risks.append(design.losses(model.predict_set(design.features(rng, NEW_ROWS))))
    assert_kept(risks, design.alpha)


def test_expected_loss_of_a_cluster_is_at_most_alpha():
    """Half of the clusters have one row, the others seven rows of one class, and the larger classes."""
    design = Design(equal(6), 118, 59, 0.3)
    shares = np.array([[4, 4, 1, 1, 1, 1], [1, 1, 1, 1, 4, 4]]) / 12
    rng = np.random.default_rng(0)
    risks = []
    for seed in range(DRAWS):
        large = (rng.random(design.n_rows) < 0.5).astype(int)
        label = (shares.cumsum(axis=1)[large, :-1] < rng.random((design.n_rows, 1))).sum(axis=1)
        cluster = np.repeat(np.argsort(label), 1 + 6 * large[np.argsort(label)])
        model = design.model(seed)
        model.fit(design.features(rng, len(cluster)), label[cluster], clusters=cluster)
        losses = design.losses(model.predict_set(design.features(rng, NEW_ROWS)))
        risks.append((shares @ losses).mean())
    assert_kept(risks, design.alpha)


def test_risk_exceeds_alpha_with_probability_delta_at_most():
    """Three standard errors are allowed. Sets for an alpha that is larger by a tenth exceed it more often."""
    delta, larger = 0.1, 0.33
    design = Design(equal(5), 398, 199, 0.3, options={"delta": delta})
    rng = np.random.default_rng(0)
    risks = []
    for seed in range(DRAWS):
        model, new = design.fitted(rng, seed), design.features(rng, 10 * NEW_ROWS)
        sets = model.predict_set(new), model.predict_set(new, alpha=larger)
        risks.append([design.losses(each) @ design.shares for each in sets])
    exceeds = np.mean(np.array(risks) > design.alpha, axis=0)
    most = delta + 3 * np.sqrt(delta * (1 - delta) / DRAWS)
    assert exceeds[0] <= most < exceeds[1], exceeds
