"""Write llm_judgements.jsonl: artificial judgements in the layout of an OpenAI-style chat completion.

Each line is one answer: the response of the judge, one token with its ``top_logprobs``, and the rating of a
person. No model was called. Ratings and log-probabilities are random, so that the judge is informative, a
little overconfident, and sometimes has a candidate token that is not a rating.

    python examples/make_llm_judgements.py
"""

import json
from pathlib import Path

import numpy as np

RATINGS = np.arange(1, 6)
ROWS = 400

rng = np.random.default_rng(0)
lines = []
for i in range(ROWS):
    quality = rng.uniform(0.6, 5.4)
    person = int(np.clip(np.rint(quality + rng.normal(0, 0.7)), 1, 5))
    logits = -(((RATINGS - quality - rng.normal(0, 0.4)) / 0.75) ** 2) + rng.normal(
        0, 0.3, 5
    )
    logprobs = (
        logits - np.logaddexp.reduce(logits) + np.log(0.97)
    )  # the rest goes to tokens that are not ratings
    tokens = [
        (str(rating), float(logprob))
        for rating, logprob in zip(RATINGS, logprobs, strict=True)
    ]
    tokens += [
        ("The", float(np.log(rng.uniform(0.002, 0.02)))),
        (" ", float(np.log(rng.uniform(0.001, 0.01)))),
    ]
    top = sorted(tokens, key=lambda token: -token[1])[:5]
    content = [
        {
            "token": top[0][0],
            "logprob": round(top[0][1], 4),
            "top_logprobs": [
                {"token": token, "logprob": round(logprob, 4)} for token, logprob in top
            ],
        }
    ]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": top[0][0]},
        "logprobs": {"content": content},
    }
    response = {"object": "chat.completion", "choices": [choice]}
    lines.append(
        json.dumps({"id": f"answer-{i}", "response": response, "person": person})
    )
Path(__file__).with_name("llm_judgements.jsonl").write_text("\n".join(lines) + "\n")
