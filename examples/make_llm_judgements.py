"""Write llm_judgements.jsonl: artificial judgements in the layout of an OpenAI-style chat completion.

Each line is one answer: what three people rated it from 1 to 5, and the responses of a judge to two prompts,
one token each with its ``top_logprobs``. No model was called. The numbers are random, from this model:

- An answer has a quality. A person rates it with some error, rounded to 1 to 5.
- The judge sees the quality with some error, which differs between the prompts.
- Central tendency: what it sees is pulled towards 3.3, so that it seldom says 1 or 5.
- Over-confidence: the log-probabilities of its ratings differ three times as much as its error warrants.
- Missing tokens: only five tokens are listed, and some of them are no ratings.

    python examples/make_llm_judgements.py
"""

import json
from pathlib import Path

import numpy as np

RATINGS = np.arange(1, 6)
ROWS, PEOPLE, PROMPTS = 600, 3, 2
CENTRE, PULL, CONFIDENCE = 3.3, 0.5, 3.0

rng = np.random.default_rng(0)


def response(seen):
    """What the judge answers if it sees this quality: its token, and the five most probable ones."""
    logits = -CONFIDENCE * (RATINGS - seen) ** 2 + rng.normal(0, 0.3, 5)
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
    top = [
        {"token": token, "logprob": round(logprob, 4)}
        for token, logprob in sorted(tokens, key=lambda token: -token[1])[:5]
    ]
    content = [{**top[0], "top_logprobs": top}]
    message = {"role": "assistant", "content": top[0]["token"]}
    return {
        "object": "chat.completion",
        "choices": [{"message": message, "logprobs": {"content": content}}],
    }


lines = []
for i in range(ROWS):
    quality = 3 + rng.normal(0, 1.1)
    people = np.clip(np.rint(quality + rng.normal(0, 0.5, PEOPLE)), 1, 5).astype(int)
    pulled = CENTRE + PULL * (quality - 3)
    responses = [response(pulled + rng.normal(0, 0.3)) for _ in range(PROMPTS)]
    line = {"id": f"answer-{i}", "responses": responses, "people": people.tolist()}
    lines.append(json.dumps(line, separators=(",", ":")))
Path(__file__).with_name("llm_judgements.jsonl").write_text("\n".join(lines) + "\n")
