"""
Two eyes of a patient
=====================

Two photographs of one patient are not independent: if the network fails on one eye, it often fails on the
other. So you should split by patient, calibrate by patient, and get a guarantee for a new patient.

.. note:: The scores of 12,316 photographs are those that the authors of the paper released at
   `github.com/yx8njit/ordinal-conformal-risk-control
   <https://github.com/yx8njit/ordinal-conformal-risk-control>`__. They are not part of this project. To run
   the example, put them into a folder ``paper_scores`` as ``diabetic_retinopathy.csv``, and set
   ``ORDINALRISK_DATA`` to the folder above it. Without them, this page shows no results.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, GREY

folder = Path(os.environ.get("ORDINALRISK_DATA", "../../shared/data"))
table = pd.read_csv(folder / "paper_scores" / "diabetic_retinopathy.csv", index_col=0)
table.columns = ["name", "grade", "predicted", *range(5)]
proba = orisk.probabilities.softmax(table[range(5)])
grade = table["grade"].to_numpy(int)
patient = (
    table["name"].str.split("_").str[0].to_numpy()
)  # "466_left.jpeg" is an eye of patient 466
print(f"{len(table):,} photographs of {len(np.unique(patient)):,} patients")

# %%
# :func:`~ordinalrisk.splitting.split_rows` with ``clusters`` keeps both eyes of a patient in the same half:
# one half calibrates, the other tests. ``calibrate`` gets the patients too. The guarantee is then about the
# mean loss of a new patient.

calibration, test = orisk.splitting.split_rows(
    len(table), clusters=patient, random_state=0
)
assert not set(patient[calibration]) & set(patient[test])
controller = orisk.RiskController(alpha=0.1, classes=range(5))
controller.calibrate(
    proba[calibration], grade[calibration], clusters=patient[calibration]
)
sets = controller.predict_set(proba[test])
print(controller.guarantee())

# %%
# So the check takes the mean over the eyes of each patient first, and then the mean over patients.

missed = pd.Series(~sets.contains(grade[test])).groupby(patient[test])
by_patient = missed.mean()
error = 2 * by_patient.sem()
print(f"mean loss of a patient: {by_patient.mean():.3f} ± {error:.3f}")
assert by_patient.mean() - error < 0.1

# sphinx_gallery_thumbnail_path = 'images/two_eyes.png'

# %%
# Does it matter? The picture shows the patients with both eyes in the test half. If the eyes were
# independent, the sets would miss both eyes less often than they do.

both = missed.sum()[missed.size() == 2]
share = both.mean() / 2
independent = np.array([(1 - share) ** 2, 2 * share * (1 - share), share**2]) * len(
    both
)
counted = np.bincount(both, minlength=3)

figure, axes = plt.subplots(layout="constrained")
for offset, values, colour, name in (
    (-0.2, independent, GREY, "if eyes were independent"),
    (0.2, counted, BLUE, "counted"),
):
    bars = axes.bar(
        np.arange(1, 3) + offset, values[1:], 0.38, color=colour, label=name
    )
    axes.bar_label(bars, [f"{value:.0f}" for value in values[1:]], padding=2)
axes.set_xticks([1, 2], ["one eye missed", "both eyes missed"])
axes.set(ylabel="patients", title="Both eyes are missed more often than by chance")
axes.legend()
assert counted[2] > 1.5 * independent[2]
plt.show()

# %%
# A guarantee with confidence depends most on clusters. With ``delta=0.1`` the risk is at most ``alpha`` for
# nine calibrations in ten. This depends on the number of *independent* units. Most patients have one
# photograph here, so the difference is small. With hundreds of rows for each unit it is large, as
# :doc:`/guarantees` shows for lecturers.

confident = orisk.RiskController(alpha=0.1, delta=0.1, classes=range(5), random_state=0)
confident.calibrate(
    proba[calibration], grade[calibration], clusters=patient[calibration]
)
print(confident.guarantee())
