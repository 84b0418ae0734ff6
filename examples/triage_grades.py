"""
Triage: automate the clear cases, refer the others
==================================================

A clinic wants to accept the grade of a network where it is clear, and to send the other photographs to a
doctor. Prediction sets with a single label look like the clear cases. They are not safe: their guarantee is
about all sets together. Triage has a guarantee for the accepted photographs alone.

The scores are logits of two ResNet-34, for the 520 photographs of RetinaMNIST (MedMNIST v2, CC BY 4.0) and
for 17,000 faces of UTKFace, none of which they were trained on.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ordinalrisk as orisk

scores = pd.read_csv("../docs/scores/retinamnist.csv.gz")
proba = orisk.probabilities.softmax(scores.filter(like="logit"))
grade = scores["label"].to_numpy()
calibration, test = orisk.splitting.split_rows(len(scores), random_state=0)

# %%
# What the plain guarantee hides
# ------------------------------
#
# Sets at ``alpha=0.1`` miss about one grade in ten. If only the sets with a single label are used, as
# automatic answers, more of them are wrong. We count over 200 random halves.

n_single, n_wrong, missed = 0, 0, []
for seed in range(200):
    known, new = orisk.splitting.split_rows(len(scores), random_state=seed)
    plain = orisk.RiskController(alpha=0.1, check=False)
    sets = plain.calibrate(proba[known], grade[known]).predict_set(proba[new])
    single = sets.size == 1
    missed.append(1 - orisk.metrics.coverage(grade[new], sets))
    n_single += single.sum()
    n_wrong += (sets.lower[single] != grade[new][single]).sum()
print(f"all sets that miss: {np.mean(missed):.3f}")
print(f"single labels that are wrong: {n_wrong / n_single:.3f}")

# %%
# Accept the clear ones
# ---------------------
#
# Triage accepts a photograph if the model's own risk of its grade is below a threshold. With probability 0.9
# over the draw of the calibration photographs, at most one accepted grade in five is wrong.

triage = orisk.TriageController(alpha=0.2, delta=0.1)
triage.calibrate(proba[calibration], grade[calibration])
decisions = triage.decide(proba[test])
print(triage.guarantee())
wrong = decisions.labels != grade[test][decisions.accepted]
print(decisions)
print(f"wrong among the accepted: {wrong.mean():.3f}")

# %%
# What a stricter alpha costs
# ---------------------------
#
# This network is right for half of the photographs, and there are 260 to calibrate with. So only a few of
# them can be certified, and none at ``alpha=0.1``. The triage says so, and refers them all.

axes = orisk.plots.plot_share_accepted(
    triage.share_curve([0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5])
)
axes.set_title("260 photographs of retinas")
plt.show()

# %%
# More rows, and a distance
# -------------------------
#
# Any loss will do. For 20 age groups of faces, accepted ages must be off by at most three quarters of a
# group on average. With 5,000 calibration rows, about half of the faces are accepted.

faces = pd.read_csv("../docs/scores/utkface.csv.gz")
proba = orisk.probabilities.softmax(faces.filter(like="logit"))
age = faces["label"].to_numpy()
order = np.random.default_rng(0).permutation(len(age))
calibration, test = order[:5000], order[5000:]

distance = orisk.DivergenceLoss(normalize=False)
triage = orisk.TriageController(distance, alpha=0.75, delta=0.1)
triage.calibrate(proba[calibration], age[calibration])
decisions = triage.decide(proba[test])
off = np.abs(decisions.labels - age[test][decisions.accepted])
print("accepted:", decisions.share_accepted(confidence=0.95))
print(f"mean distance of the accepted: {off.mean():.3f}")

axes = orisk.plots.plot_share_accepted(
    triage.share_curve([0.25, 0.5, 0.75, 1, 1.25, 1.5])
)
axes.set_title("5,000 faces: groups off, on average")
plt.show()
