"""
An LLM as judge: when to ask a person
=====================================

A language model grades answers from 1 to 5. It returns one token, and the log-probabilities of other tokens
(``top_logprobs``). People graded some of the answers too. From both you get prediction sets that contain
the person's grade nine times in ten, and a rule for when to ask a person.

.. note:: The judgements are artificial. ``llm_judgements.jsonl`` has the layout of an OpenAI-style response,
   but ``make_llm_judgements.py`` drew its numbers at random, for a judge that is informative and a little
   overconfident. No model was called, so use the method and not the numbers.
"""

import json

import matplotlib.pyplot as plt
import numpy as np

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, GREY, SKY, VERMILLION

with open("llm_judgements.jsonl") as file:
    judged = [json.loads(line) for line in file]
person = np.array([row["person"] for row in judged])
first_token = [
    row["response"]["choices"][0]["logprobs"]["content"][0] for row in judged
]
{
    candidate["token"]: candidate["logprob"]
    for candidate in first_token[0]["top_logprobs"]
}

# %%
# :func:`~ordinalrisk.probabilities.from_logprobs` takes the ratings from the candidate tokens, drops all
# other tokens, and normalises the rest to sum to one.

ratings = [1, 2, 3, 4, 5]
proba = orisk.probabilities.from_logprobs(
    [token["top_logprobs"] for token in first_token], classes=ratings
)
said = np.array(
    [int(row["response"]["choices"][0]["message"]["content"]) for row in judged]
)
print(
    f"the judge's own rating is the person's in {(said == person).mean():.0%} of the answers"
)

# %%
# Half of the answers with a person's grade calibrate, and the other half checks the guarantee.

known, new = orisk.splitting.split_rows(len(judged), random_state=0)
controller = orisk.RiskController(alpha=0.1, classes=ratings).calibrate(
    proba[known], person[known]
)
sets = controller.predict_set(proba[new])
print(controller.guarantee())
missed = orisk.metrics.risk(person[new], sets, confidence=0.95)
print(
    f"missed on the other half: {missed}, with {sets.size.mean():.2f} ratings in a set"
)
assert missed.low < 0.1

# %%
# Each column is an answer of the second half, ordered by the position of its set. If the set has one or two
# ratings, the judge is enough. If it has more, a person should look. Crosses are misses.

order = np.lexsort([sets.size, sets.centroid])
inside = sets.contains(person[new])[order]
x = np.arange(len(order))
long = sets.size[order] > 2
figure, axes = plt.subplots(layout="constrained")
for rows, colour in ((~long, SKY), (long, GREY)):
    axes.vlines(
        x[rows],
        sets.lower[order][rows] - 0.4,
        sets.upper[order][rows] + 0.4,
        color=colour,
        linewidth=2.2,
    )
axes.plot(x[inside], person[new][order][inside], ".", color=BLUE, markersize=4)
axes.plot(x[~inside], person[new][order][~inside], "X", color=VERMILLION, markersize=6)
axes.set(xlabel="answers", ylabel="rating", xticks=[], yticks=ratings)
axes.set_title(
    "One or two ratings (blue): the judge is enough. Three (grey): ask a person"
)
plt.show()

# %%
# The number of answers that go to a person depends on ``alpha``. One calibration works for all values.

for alpha in (0.05, 0.1, 0.15, 0.2):
    long = controller.predict_set(proba[new], alpha=alpha).size > 2
    print(f"alpha {alpha:4}: {long.mean():4.0%} go to a person")
