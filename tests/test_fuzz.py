"""The attacks of ``make fuzz``: a short run finds nothing, and faults are found."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from fuzz import KINDS, api, data_files, hostile_text, hunting, saved_files, workers  # noqa: E402
from fuzz.hunting import REGRESSIONS, Hunt  # noqa: E402
from fuzz.workers import Finding, Worker  # noqa: E402

QUICK = [kind for kind in KINDS if kind != "signals"]  # which wait for time


@pytest.fixture(scope="module")
def worker():
    with Worker() as started:
        yield started


@pytest.mark.parametrize("path", sorted(REGRESSIONS.glob("*.json")), ids=lambda path: path.stem)
def test_what_was_found_stays_mended(worker, path):
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert worker.run(kept["kind"], kept["case"]) is None, kept["found"]


def test_a_short_run_finds_nothing(worker):
    hunt = Hunt(worker, seed=0)
    hunt.round(0, QUICK)
    assert all(hunt.n_cases[kind] >= KINDS[kind].CASES_A_ROUND // 2 for kind in QUICK)
    assert hunt.findings == {}


# each kind finds its fault

GOOD_ROWS = [20, 3, 0]


@pytest.mark.parametrize(
    ("call", "gives", "found"),
    [
        ("{}['x']", "open", ("raw error", "KeyError in fuzz")),
        ("orisk.compare(proba, y)", "error", ("wrong", "accepted what is wrong in orisk.compare")),
        ("orisk.compare(None, y)", "result", ("wrong", "refused what is allowed in orisk.compare")),
        ("orisk.compare(proba, y)", "result", None),
        ("orisk.compare(None, y)", "error", None),
        ("np.float64(1) / np.float64(0)", "open", ("raw error", "RuntimeWarning in fuzz")),
    ],
)
def test_calls(call, gives, found):
    outcome = workers.outcome("api", {"rows": GOOD_ROWS, "call": call, "gives": gives})
    assert (outcome and outcome[:2]) == found


def test_limits_of_a_worker():
    calls = {
        "np.ones(2**29)": "memory",
        "len(y)": None,
        "__import__('os').kill(__import__('os').getpid(), 11)": "crash",  # so the next has a new process
        "all(True for _ in iter(int, 1))": "hang",
    }
    with Worker(seconds=1) as limited:
        for call, kind in calls.items():
            found = limited.run("api", {"rows": GOOD_ROWS, "call": call, "gives": "open"})
            assert (found and found.kind) == kind


def test_an_edited_file_that_is_accepted_is_found(monkeypatch):
    case = {"base": "calibration", "edits": [{"at": [6], "to": 0.3}], "digests": False, "cut": 0}
    assert workers.outcome("saved", case) is None
    loaded = saved_files.orisk.RiskController
    monkeypatch.setitem(saved_files._CLASSES, "calibration", type("Lax", (), {"load": lambda path: loaded()}))
    assert workers.outcome("saved", case).where == "accepted"


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_wrong_cell_that_is_accepted_is_found(monkeypatch, kind):
    case = {"format": kind, "cell": "-1", "row": 2, "column": 1, "command": "evaluate"}
    assert workers.outcome("data", case) is None
    monkeypatch.setitem(data_files._COMMANDS, "evaluate", ["--version"])
    assert workers.outcome("data", case).where == "wrong cell accepted by evaluate"


def test_text_that_becomes_an_element_is_found(monkeypatch):
    page = "<p title='a'>{}</p><script>1</script>"
    monkeypatch.setattr(hostile_text, "_page", lambda texts: page.format(texts.get("class", "name")))
    for text in ("<img src=x onerror=alert(1)>", "</script><script>alert(1)//", "<svg/onload=alert(1)>"):
        assert workers.outcome("text", {"text": text, "places": ["class"]}).kind == "wrong"
        escaped = text.replace("<", "&lt;")
        assert workers.outcome("text", {"text": escaped, "places": ["class"]}) is None


def test_findings_are_shrunk_and_kept(monkeypatch, tmp_path):
    class Fault:
        def run(self, kind, case):
            return Finding("wrong", "here", "text") if len(case["edits"]) > 1 else None

    hunt = Hunt(Fault(), seed=3)
    hunt.round(0, ["saved"])
    ((kind, *_), (case, found)), *others = hunt.findings.items()
    assert (kind, len(case["edits"]), case["cut"], others) == ("saved", 2, 0, [])
    path = hunting.keep(kind, case, found, tmp_path)
    assert json.loads(path.read_text()) == {"kind": "saved", "found": "wrong: here", "case": case}


def test_equal_seeds_give_equal_cases():
    def cases(seed):
        told = []

        class Listener:
            def run(self, kind, case):
                told.append(case)

        Hunt(Listener(), seed).round(0, ["api"])
        return told

    assert cases(1) == cases(1) != cases(2)


def test_every_call_is_tried_with_right_arguments():
    """So that a refusal of what is allowed can be found in each."""
    for call in api.CALLS:
        for slot, pool in api.ARGUMENTS.items():
            call = call.replace(f"{{{slot}}}", pool["right"][0])
        compile(call.removeprefix("?"), call, "eval")
        assert "{" not in call
