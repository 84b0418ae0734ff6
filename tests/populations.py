"""A population that is known: cases with label distributions, and a model that is wrong about them."""

import numpy as np

import ordinalrisk as orisk

K = 5
LABELS = np.arange(K)
COST_TABLE = [[0, 1, 1, 2, 3], [2, 0, 1, 2, 2], [4, 2, 0, 0, 1], [6, 5, 3, 0, 1], [9, 7, 5, 2, 0]]


class Population:
    """Cases with known label distributions, scored by a model that is wrong about them."""

    def __init__(self, seed, n_cases=300, coarse=False):
        self.rng = rng = np.random.default_rng(seed)
        centre = rng.uniform(-0.5, K - 0.5, (n_cases, 1))
        self.truth = orisk.probabilities.softmax(-((LABELS - centre) ** 2) / 2)
        self.proba = orisk.probabilities.softmax(np.log(self.truth) * 1.6 + rng.normal(0, 0.7, (n_cases, K)))
        if coarse:
            self.proba = np.array([rng.multinomial(4, p) for p in self.proba]) / 4
        self.joint = self.truth / n_cases
        self.cumulative = self.truth.cumsum(axis=1)

    def draw(self, n):
        """Cases and labels of them."""
        case = self.rng.integers(0, len(self.proba), n)
        return case, (self.cumulative[case, :-1] < self.rng.random((n, 1))).sum(axis=1)

    def losses(self, loss, lower, upper):
        """What each label of each case loses by the intervals of the cases."""
        return loss.cost_table(K)[LABELS, np.clip(LABELS, lower[:, None], upper[:, None])]

    def losses_of(self, loss, sets):
        return self.losses(loss, sets.lower_index, sets.upper_index)


HEALTH = ["very poor", "poor", "fair", "good", "very good"]


def survey(n, seed):
    """Answers of which 3 % are 'very poor', which the model takes for 'fair'."""
    rng = np.random.default_rng(seed)
    y = rng.choice(5, n, p=[0.03, 0.12, 0.35, 0.35, 0.15])
    centre = np.where(y == 0, 2, y) + rng.normal(0, 0.6, n)
    return orisk.probabilities.softmax(-((np.arange(5) - centre[:, None]) ** 2)), y
