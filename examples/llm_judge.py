"""An LLM judge: from the log-probabilities of a 1-5 rating to intervals that people can rely on.

A judge that answers with one token gives log-probabilities of its candidates (``top_logprobs``). Together
with ratings that people gave to some of the answers, they become intervals: at most one in ten misses the
person's rating. llm_judgements.jsonl is generated (by make_llm_judgements.py), in the layout of an
OpenAI-style response.

    python examples/llm_judge.py [FOLDER]        needs pip install ".[report]"
"""

import json
import sys
from pathlib import Path

import ordinalrisk as orisk
from ordinalrisk.report import write_report

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "judge")
folder.mkdir(parents=True, exist_ok=True)
ratings = [1, 2, 3, 4, 5]

with open(Path(__file__).with_name("llm_judgements.jsonl")) as file:
    judged = [json.loads(line) for line in file]

# The candidates of the first token of each answer; what is no rating among them is left out.
candidates = [
    row["response"]["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
    for row in judged
]
proba = orisk.probabilities.from_logprobs(candidates, classes=ratings)
person = [row["person"] for row in judged]
half = len(judged) // 2

controller = orisk.RiskController(loss="coverage", alpha=0.1, classes=ratings)
controller.calibrate(proba[:half], person[:half])
sets = controller.predict_set(proba[half:])

print(controller.guarantee())
for row, interval in zip(judged[half : half + 5], sets, strict=False):
    said = row["response"]["choices"][0]["message"]["content"]
    print(
        f"{row['id']}: the judge said {said}, a person says {interval.lower} to {interval.upper}"
    )
missed = orisk.metrics.risk(person[half:], sets, confidence=0.95)
print(
    f"Share missed on the other half: {missed}; {sets.size.mean():.2f} ratings in a set on average."
)

# Where the judge alone is enough, and where a person should look.
single = (sets.size == 1).mean()
print(f"One rating is left for {single:.0%} of the answers.")

controller.save(folder / "cal.json")
ids = [row["id"] for row in judged[half:]]
write_report(
    controller, proba[half:], person[half:], folder / "report.html", cases={"id": ids}
)
print(f"Wrote cal.json, report.html and report.json to {folder}")
