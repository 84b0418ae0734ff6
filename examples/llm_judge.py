"""
An LLM as judge: from five tokens to people's ratings
=====================================================

A language model grades answers from 1 to 5. It returns one token, and the log-probabilities of other tokens
(``top_logprobs``). For some of the answers there is also the mean rating of three people, which has 13
levels. From both you get prediction sets that include the people's mean nine times in ten, and a rule for
when to ask people.

.. note:: The judgements are artificial. ``llm_judgements.jsonl`` has the layout of an OpenAI-style response,
   but ``make_llm_judgements.py`` drew its numbers at random, for a judge that avoids the ends of the scale,
   is too confident, and lists only five tokens. No model was called, so use the method and not the numbers.
"""

import json

import matplotlib.pyplot as plt
import numpy as np

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, GREY, SKY, VERMILLION

with open("llm_judgements.jsonl") as file:
    judged = [json.loads(line) for line in file]
levels = np.round(np.arange(3, 16) / 3, 2)  # 1, 1.33, 1.67, 2, ...
people = np.array([np.round(sum(row["people"]) / 3, 2) for row in judged])


def tokens(prompt):
    """The candidates for the first token, for each answer."""
    choices = [row["responses"][prompt]["choices"][0] for row in judged]
    return [choice["logprobs"]["content"][0]["top_logprobs"] for choice in choices]


{candidate["token"]: candidate["logprob"] for candidate in tokens(0)[0]}

# %%
# Some answers with people's ratings are for recalibration, others for calibration, and the rest check the
# guarantee.

order = np.random.default_rng(0).permutation(len(judged))
fit, known, new = np.split(order, [150, 400])

# %%
# Four lines lead from tokens to sets. :func:`~ordinalrisk.probabilities.from_logprobs` drops tokens that are
# not ratings. :class:`~ordinalrisk.Recalibrator` learns from the first part how the judge's five ratings and
# the people's 13 levels go together.

proba = orisk.probabilities.from_logprobs(tokens(0), classes=[1, 2, 3, 4, 5])
recalibrator = orisk.Recalibrator(classes=levels).fit(proba[fit], people[fit])
controller = orisk.RiskController(alpha=0.1, recalibration=recalibrator).calibrate(
    proba[known], people[known]
)
sets = controller.predict_set(proba[new])
print(controller.guarantee())
missed = orisk.metrics.risk(people[new], sets, confidence=0.95)
print(f"missed: {missed}, with {sets.size.mean():.1f} of 13 levels in a set")
assert missed.low < 0.1

# %%
# Without recalibration
# ---------------------
# The raw scores know only five of the 13 levels, and give many of them no probability at all. The guarantee
# holds for them too, but the sets are useless: larger than those of someone who ignores the judge, and knows
# only how often people give each level.

raw = np.zeros((len(judged), 13))
raw[:, ::3] = proba  # 1, 2, 3, 4 and 5
shares = np.bincount(np.searchsorted(levels, people[fit]), minlength=13) + 0.5
ignorant = np.tile(shares / shares.sum(), (len(judged), 1))


def calibrated_sets(scores):
    """Sets of the new answers, from scores on the 13 levels."""
    plain = orisk.RiskController(alpha=0.1, classes=levels, check=False)
    return plain.calibrate(scores[known], people[known]).predict_set(scores[new])


# %%
# Several prompts
# ---------------
# The judge answered two prompts. Their mean knows more than one of them.

both = (
    proba + orisk.probabilities.from_logprobs(tokens(1), classes=[1, 2, 3, 4, 5])
) / 2
recalibrator = orisk.Recalibrator(classes=levels).fit(both[fit], people[fit])
compared = {
    "raw scores": calibrated_sets(raw),
    "without the judge": calibrated_sets(ignorant),
    "recalibrated": sets,
    "recalibrated, two prompts": calibrated_sets(recalibrator.transform(both)),
}
for name, found in compared.items():
    covered = orisk.metrics.coverage(people[new], found)
    print(f"{name:26} {found.size.mean():5.1f} levels in a set, {covered:.0%} covered")
mean = {name: found.size.mean() for name, found in compared.items()}
assert mean["recalibrated"] < mean["without the judge"] < mean["raw scores"]

# %%
# If you can't take the mean, because each answer was judged under another prompt or another number of times,
# use every judgement as a row and name its answer as the cluster. The guarantee is then for a new answer.

every = np.concatenate(
    [
        proba,
        orisk.probabilities.from_logprobs(tokens(1), classes=[1, 2, 3, 4, 5]),
    ]
)
answer = np.tile(np.arange(len(judged)), 2)
rating = np.tile(people, 2)
part = {
    name: np.isin(answer, rows)
    for name, rows in (("fit", fit), ("known", known), ("new", new))
}
recalibrator = orisk.Recalibrator(classes=levels).fit(
    every[part["fit"]], rating[part["fit"]], clusters=answer[part["fit"]]
)
clustered = orisk.RiskController(alpha=0.1, recalibration=recalibrator).calibrate(
    every[part["known"]], rating[part["known"]], clusters=answer[part["known"]]
)
print(clustered.guarantee())

# %%
# When to ask people
# ------------------
# Each column is a new answer, ordered by the position of its set: raw scores on the left, recalibrated scores
# from two prompts on the right. If a set has five levels or fewer (blue), the judge is enough. Crosses are
# misses.

figure, panels = plt.subplots(1, 2, sharey=True, layout="constrained")
names = ("raw scores", "recalibrated, two prompts")
for axes, name in zip(panels, names, strict=True):
    found = compared[name]
    order = np.lexsort([found.size, found.centroid])
    inside = found.contains(people[new])[order]
    x = np.arange(len(order))
    long = found.size[order] > 5
    for rows, colour in ((~long, SKY), (long, GREY)):
        axes.vlines(
            x[rows],
            found.lower[order][rows] - 0.1,
            found.upper[order][rows] + 0.1,
            color=colour,
        )
    truth = people[new][order]
    axes.plot(x[inside], truth[inside], ".", color=BLUE, markersize=3)
    axes.plot(x[~inside], truth[~inside], "X", color=VERMILLION, markersize=5)
    axes.set(xlabel="answers", xticks=[], yticks=[1, 2, 3, 4, 5])
    axes.set_title(f"{name}: {found.size.mean():.1f} levels")
panels[0].set_ylabel("people's mean rating")
plt.show()
