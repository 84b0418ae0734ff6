"""
Drift: an alarm, and sets that adapt
====================================

The guarantee holds for rows like the calibration rows. Here the rows change. A service that estimates ages
from photographs starts with visitors of all ages. Then its visitors get older, and the network is less sure
about older people. A :class:`~ordinalrisk.RiskMonitor` notices the change from the labels, and an
:class:`~ordinalrisk.OnlineRiskController` adapts.

The faces and scores are from :doc:`/gallery/age_in_years`; only their order is artificial.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, GREEN, GREY, INK, ORANGE, VERMILLION

scores = pd.read_csv("../docs/scores/utkface.csv.gz")
proba = orisk.probabilities.softmax(scores.filter(like="logit"))
group = scores["label"].to_numpy()
calibration, rest = orisk.splitting.split_rows(len(scores), share=0.3, random_state=0)

# %%
# The stream has 4,500 visitors. The first 1,500 are drawn like the calibration rows. Then the share of people
# over fifty rises step by step. Each visitor comes once.

rng = np.random.default_rng(0)
old, young = (
    rng.permutation(rest[group[rest] >= 10]),
    rng.permutation(rest[group[rest] < 10]),
)
share = np.interp(np.arange(4_500), [1_500, 3_000], [len(old) / len(rest), 0.8])
is_old = rng.random(4_500) < share
stream = np.empty(4_500, int)
stream[is_old], stream[~is_old] = old[: is_old.sum()], young[: (~is_old).sum()]

# %%
# The fixed controller is calibrated once. With ``delta=0.05``, its risk is above ``alpha`` with probability
# at most 0.05. The monitor looks at each label in the order of the visitors. If the risk is at most
# ``alpha``, the probability that it ever raises an alarm is at most 0.05, however often it looks. The two
# probabilities add up: an alarm without a change has a probability of at most 0.1.

fixed = orisk.RiskController(alpha=0.1, delta=0.05).calibrate(
    proba[calibration], group[calibration]
)
fixed_sets = fixed.predict_set(proba[stream])
monitor = orisk.RiskMonitor(alpha=0.1, delta=0.05)
evidence = []
for start in range(0, 4_500, 20):
    batch = slice(start, start + 20)
    monitor.update(group[stream][batch], fixed_sets[batch])
    evidence.append(monitor.evidence_)
print(
    f"alarm at visitor {monitor.alarm_row_:,}, p-value in the end {monitor.p_value_:.0e}"
)
assert monitor.alarm_row_ > 1_500

# %%
# The online controller starts from the same rows, and each label changes its threshold a little. After a miss
# the next sets are larger, otherwise smaller. Sets are made for twenty visitors at a time, before their
# labels are known. The bound holds for these sets.

online = orisk.OnlineRiskController(alpha=0.1).calibrate(
    proba[calibration], group[calibration]
)
lower, upper = np.empty((2, 4_500), int)
for start in range(0, 4_500, 20):
    batch = slice(start, start + 20)
    sets = online.predict_set(proba[stream][batch])
    lower[batch], upper[batch] = sets.lower_index, sets.upper_index
    online.update(group[stream][batch])
online_sets = orisk.IntervalSet(lower, upper, classes=online.classes_)
print(f"mean loss of all 4,500: {online.risk_:.3f}")
print(f"for any stream at most: {float(online.bound_so_far()):.3f}")

# %%
# The alarm comes some time after the change starts, because the monitor needs evidence. The fixed sets miss
# more and more. The online sets stay near ``alpha`` and need more labels.

figure, (top, middle, bottom) = plt.subplots(
    3, sharex=True, figsize=(7.2, 6), layout="constrained"
)
missed = {}
for name, sets, colour in (
    ("fixed", fixed_sets, ORANGE),
    ("online", online_sets, BLUE),
):
    missed[name] = ~sets.contains(group[stream])
    for axes, values in ((top, missed[name]), (middle, sets.size)):
        rolling = pd.Series(values).rolling(400).mean()
        axes.plot(rolling, color=colour, linewidth=2)
        axes.text(4_540, rolling.iloc[-1], name, color=colour, va="bottom")
bottom.semilogy(np.arange(20, 4_501, 20), evidence, color=GREEN, linewidth=2)
for axes in (top, middle, bottom):
    axes.axvline(monitor.alarm_row_, color=VERMILLION, linewidth=1.5)
    axes.axvspan(1_500, 3_000, color=GREY, alpha=0.15, linewidth=0)
top.hlines(0.1, 0, 4_500, color=INK, linestyle="--", linewidth=1)
top.text(monitor.alarm_row_ + 30, 0.01, "alarm", color=VERMILLION)
top.text(1_520, 0.01, "the public ages")
top.set(ylabel="share missed", ylim=(0, None))
top.set_title("The monitor raises an alarm, and the online sets adapt")
middle.set(ylabel="groups in a set")
bottom.axhline(20, color=INK, linestyle="--", linewidth=1)
bottom.text(0, 30, "1 / delta")
bottom.set(xlabel="visitors", ylabel="evidence", xlim=(-150, 4_950), ylim=(0.05, 1e6))
plt.show()
assert missed["fixed"][3_000:].mean() > 0.13 > missed["online"][3_000:].mean()

# %%
# After an alarm, calibrate again on recent rows, or weight the old rows by the change of the population
# (:mod:`ordinalrisk.shift`; :doc:`/guarantees` shows how).

recent = stream[monitor.alarm_row_ : 3_900]
again = orisk.RiskController(alpha=0.1, delta=0.1).calibrate(
    proba[recent], group[recent]
)
last = stream[3_900:]
print(
    f"missed of the last 600: {orisk.metrics.risk(group[last], again.predict_set(proba[last])):.3f}"
)
