"""
Drift: an alarm, and intervals that follow
==========================================

A calibration is a promise about cases like those it saw. Here they change: a service that estimates ages
from photographs starts with visitors of all ages, and then its public grows older, for whom the network is
less sure. A :class:`~ordinalrisk.RiskMonitor` notices from the labels as they come in, and an
:class:`~ordinalrisk.OnlineRiskController` adapts.

The faces and scores are those of :doc:`/gallery/age_in_years`; only the order in which they come is made up.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ordinalrisk as orisk
from ordinalrisk.palette import BLUE, GREEN, GREY, INK, ORANGE, VERMILLION

scores = pd.read_csv("../docs/scores/utkface.csv.gz")
proba = orisk.softmax(scores.filter(like="logit"))
group = scores["label"].to_numpy()
calibration, rest = orisk.split_rows(len(scores), share=0.4)

# %%
# A stream of 6,000 visitors. The first 2,000 are drawn as the calibration was. Then the share of people over
# forty rises, step by step.

rng = np.random.default_rng(0)
old, young = rest[group[rest] >= 8], rest[group[rest] < 8]
share = np.interp(np.arange(6_000), [2_000, 4_000], [len(old) / len(rest), 0.9])
stream = np.where(rng.random(6_000) < share, rng.choice(old, 6_000), rng.choice(young, 6_000))

# %%
# The fixed controller is calibrated once. With ``delta=0.1`` its risk is within ``alpha`` with confidence, so
# that an alarm is about a change and not about an unlucky draw. The monitor looks at each label that becomes
# known; however often it looks, the probability that it ever rings in vain is at most 0.05.

fixed = orisk.RiskController(alpha=0.1, delta=0.1).calibrate(proba[calibration], group[calibration])
fixed_sets = fixed.predict_set(proba[stream])
monitor = orisk.RiskMonitor(alpha=0.1, delta=0.05)
evidence = []
for start in range(0, 6_000, 20):
    batch = slice(start, start + 20)
    monitor.update(group[stream][batch], fixed_sets[batch])
    evidence.append(monitor.evidence_)
print(monitor)
assert 2_000 < monitor.alarm_row_ < 4_000

# %%
# The online controller starts from the same rows, and each label moves its threshold a little: a miss makes
# the next interval longer, a hit makes it shorter.

online = orisk.OnlineRiskController(alpha=0.1).calibrate(proba[calibration], group[calibration])
online_sets = online.update(proba[stream], group[stream])
print(
    f"mean loss of all 6,000: {online.risk_:.3f}, for certain at most {float(online.bound_after(6_000)):.3f}"
)

# %%
# The alarm rings before the change is over. The fixed intervals miss more and more; the online ones keep to
# ``alpha`` and pay in labels.

figure, (top, middle, bottom) = plt.subplots(3, sharex=True, figsize=(7.2, 6), height_ratios=[1.2, 1, 1])
for name, sets, colour in (("fixed", fixed_sets, ORANGE), ("online", online_sets, BLUE)):
    frame = pd.DataFrame({"missed": ~sets.contains(group[stream]), "size": sets.size}).rolling(400).mean()
    for axes, column in ((top, "missed"), (middle, "size")):
        axes.plot(frame[column], color=colour, linewidth=2)
        axes.annotate(
            name,
            (5_999, frame[column].iloc[-1]),
            (4, 0),
            textcoords="offset points",
            color=colour,
            va="center",
        )
top.axhline(0.1, color=INK, linestyle="--", linewidth=1)
top.set(
    ylabel="share missed",
    title="The alarm rings before the change is over; online intervals follow",
    ylim=(0, None),
)
middle.set(ylabel="groups in\nan interval")
bottom.semilogy(np.arange(20, 6_001, 20), evidence, color=GREEN, linewidth=2)
bottom.axhline(20, color=INK, linestyle="--", linewidth=1)
bottom.annotate("1 / delta", (0, 20), (2, 4), textcoords="offset points")
bottom.set(xlabel="visitors", ylabel="evidence", ylim=(0.05, 1e6))
for axes in (top, middle, bottom):
    axes.axvline(monitor.alarm_row_, color=VERMILLION, linewidth=1.5)
    axes.axvspan(2_000, 4_000, color=GREY, alpha=0.15, linewidth=0)
top.annotate("alarm", (monitor.alarm_row_, 0.01), (4, 0), textcoords="offset points", color=VERMILLION)
top.annotate("the public ages", (2_050, top.get_ylim()[1]), ha="left", va="top", color=INK)
assert (
    (~fixed_sets.contains(group[stream]))[4_000:].mean()
    > 0.13
    > (~online_sets.contains(group[stream]))[4_000:].mean()
)
plt.show()

# %%
# After an alarm, calibrate again on recent rows, or weight the old ones by how the population has moved
# (:mod:`ordinalrisk.shift`; :doc:`/guarantees` shows it).

recent = stream[monitor.alarm_row_ + 1_000 : monitor.alarm_row_ + 2_000]
again = orisk.RiskController(alpha=0.1, delta=0.1).calibrate(proba[recent], group[recent])
last = stream[5_400:]
print(f"missed of the last 600: {orisk.metrics.risk(group[last], again.predict_set(proba[last])):.3f}")
