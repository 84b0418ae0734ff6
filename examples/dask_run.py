"""
Dask: the same threshold, bit for bit
=====================================

Scores are often in many files, perhaps on many machines. You can pass Dask arrays and data frames in place
of NumPy arrays. The rows stay where they are. A few queries to the files find exactly the threshold that
one machine with all rows would find.
"""

import tempfile
from pathlib import Path

import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, GREY, INK, ORANGE

# %%
# The example uses the 17,000 faces of :doc:`/gallery/age_in_years` in eight Parquet files. The files differ,
# as they often do: the faces are sorted by age, so the first file has infants and the last one has old
# people.

scores = pd.read_csv("../docs/scores/utkface.csv.gz").sort_values("label")
columns = [f"p{k}" for k in range(20)]
table = pd.DataFrame(
    orisk.probabilities.softmax(scores.filter(like="logit")), columns=columns
)
table["label"] = scores["label"].to_numpy()
parts = [table.iloc[rows] for rows in np.array_split(np.arange(len(table)), 8)]

folder = tempfile.TemporaryDirectory()
for i, part in enumerate(parts):
    part.to_parquet(Path(folder.name) / f"part-{i}.parquet")

# %%
# ``calibrate`` computes immediately. Sets are computed when you need them: for a metric, to look at some
# rows, or to write them file by file.

frame = dd.read_parquet(folder.name)
controller = orisk.RiskController(alpha=0.1).calibrate(frame[columns], frame["label"])
sets = controller.predict_set(frame[columns])
print(controller)
print(sets)
print(
    f"missed {orisk.metrics.risk(frame['label'], sets):.4f}, mean size {orisk.metrics.mean_size(sets):.3f}"
)
sets.to_dask_dataframe(columns=frame[["label"]]).head(3)

# %%
# One machine with all rows in memory gives the same number, to the last bit.

alone = orisk.RiskController(alpha=0.1).calibrate(table[columns], table["label"])
print(controller.threshold_.hex(), alone.threshold_.hex())
assert controller.threshold_ == alone.threshold_
assert sets.compute() == alone.predict_set(table[columns])

# %%
# Calibrating each file separately gives other thresholds. Each grey line is the mean loss of one file at
# every threshold, and each grey dot is the threshold of this file alone. The average of these thresholds is
# not the right one. The blue line is the mean loss of all rows. ``check=False`` turns off a warning: in a
# file with few ages, the shares of the ages alone predict better than the model.

figure, axes = plt.subplots(figsize=(7.2, 4), layout="constrained")
thresholds = []
for part in parts:
    own = orisk.RiskController(alpha=0.1, check=False)
    own.calibrate(part[columns], part["label"])
    thresholds.append(own.threshold_)
    curve = own.risk_curve_
    axes.plot(curve.levels, curve.totals / curve.n_rows, color=GREY, linewidth=1.2)
    axes.plot(own.threshold_, 0.1, "o", color=GREY, markersize=7)
curve = alone.risk_curve_
axes.plot(curve.levels, curve.totals / curve.n_rows, color=BLUE, linewidth=2.5)
axes.plot(
    controller.threshold_,
    0.1,
    "o",
    color=ORANGE,
    markersize=11,
    markeredgecolor="white",
)
axes.axhline(0.1, color=INK, linestyle="--", linewidth=1, zorder=0)
axes.annotate("alpha", (0.3, 0.1), (0, 4), textcoords="offset points", ha="right")
axes.annotate(
    "all rows",
    (0.18, curve.risk(0.18)),
    (6, -12),
    textcoords="offset points",
    color=BLUE,
)
axes.set(xlim=(0, 0.3), ylim=(0, 0.6), xlabel="threshold", ylabel="mean loss")
axes.set_title("Each file has its own curve; the threshold uses all rows")
assert np.mean(thresholds) > 1.2 * controller.threshold_
folder.cleanup()
plt.show()

# %%
# Here threads of this process read the files. On a cluster, first run
# ``client = distributed.Client("tcp://10.0.0.1:8786")`` and use paths that all machines can read, such as
# ``s3://bucket/*.parquet``. Nothing else changes. If there are more rows than fit on one machine, only the
# part of the curve near the threshold is returned, so name other values of ``alpha`` beforehand with
# ``more_alphas``. :doc:`/scale` explains what is sent, what it costs and what is not possible.
