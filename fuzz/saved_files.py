"""Saved calibrations, online runs and monitors, edited, with their digests computed again or not."""

import copy
import hashlib
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from hypothesis import strategies as st

import ordinalrisk as orisk
from fuzz.checking import VOCABULARY, WrongError, rows
from ordinalrisk.saving.json_schemas import json_schema

CASES_A_ROUND = 200
_CLASSES = {
    "calibration": orisk.RiskController,
    "online": orisk.OnlineRiskController,
    "monitor": orisk.RiskMonitor,
}
_BASES = [*_CLASSES, "confidence", "betting", "by group", "by class", "clusters", "weights"]
_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=4),
    st.sampled_from(
        [*VOCABULARY["json_text"], 10**9, 3 * 10**8, 10**400, 2**64, 1e-300, 0.5, [], {}, [[]], "9" * 5000]
    ),
)
_EDITS = st.fixed_dictionaries(
    {"at": st.lists(st.integers(0, 40), min_size=1, max_size=6)}, optional={"to": _VALUES}
)


def cases() -> st.SearchStrategy[dict[str, Any]]:
    """A document, edits of it (without ``to`` a member is dropped), and what is done after them."""
    return st.fixed_dictionaries(
        {
            "base": st.sampled_from(_BASES),
            "edits": st.lists(_EDITS, max_size=3),
            "digests": st.sampled_from([True, True, True, False]),
            "cut": st.one_of(st.just(0), st.just(0), st.just(0), st.integers(1, 3000)),
        }
    )


def check(case: dict[str, Any]) -> None:
    """A file that was edited without new digests is refused; whatever is loaded fits the schema and works."""
    original = _documents()[case["base"]]
    kind = case["base"] if case["base"] in _CLASSES else "calibration"
    document = copy.deepcopy(original)
    for edit in case["edits"]:
        _edit(document, edit)
    if case["digests"] and isinstance(document.get("digests"), dict):
        document["digests"] = {name: _digest(value) for name, value in document.items() if name != "digests"}
    text = json.dumps(document)
    cut = text[: len(text) - case["cut"]] if case["cut"] else text
    Path("file.json").write_text(cut)
    try:
        loaded = _CLASSES[kind].load("file.json")
    except ValueError:
        if cut == json.dumps(original):
            raise WrongError("refused: a file as it was saved") from None
        return
    if not case["digests"] and cut != json.dumps(original):
        raise WrongError("accepted: an edited file with old digests")
    try:
        jsonschema.validate(json.loads(cut), _schema(kind))
    except jsonschema.ValidationError as error:
        raise WrongError(
            f"accepted against its JSON Schema: {error.message[:200]} at {list(error.path)}"
        ) from None
    loaded.save("again.json")
    again = _CLASSES[kind].load("again.json")
    if kind == "calibration" and not _same(again.thresholds_, loaded.thresholds_):
        raise WrongError("another threshold after it was saved again")


def _same(one: Any, other: Any) -> bool:
    return len(one) == len(other) and all(a == b or math.isnan(a) for a, b in zip(one, other, strict=True))


def _edit(document: Any, edit: dict[str, Any]) -> None:
    node, path = document, edit["at"]
    while True:
        keys = [*node] if isinstance(node, dict) else [*range(len(node))]
        if not keys:
            return
        key, path = keys[path[0] % len(keys)], path[1:]
        if not path or not isinstance(node[key], dict | list):
            break
        node = node[key]
    if "to" in edit:
        node[key] = edit["to"]
    else:
        del node[key]


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def _schema(kind: str) -> Any:
    return json_schema(kind)


@cache
def _documents() -> dict[str, Any]:
    proba, y = rows(30, 3, 0)
    tens = [i // 3 for i in range(30)]
    made = {
        "calibration": orisk.RiskController(alpha=0.2).calibrate(proba, y),
        "confidence": orisk.RiskController(alpha=0.3, delta=0.2).calibrate(proba, y),
        "betting": orisk.RiskController(
            "divergence", 0.3, delta=0.2, confidence_bound="betting", random_state=1
        ).calibrate(proba, y),
        "by group": orisk.RiskController(orisk.WeightedLoss([1, 2, 4]), 0.3, "paper").calibrate(
            proba, y, groups=["a", "b"] * 15
        ),
        "by class": orisk.RiskController(alpha=0.4, condition_on="label").calibrate(proba, y),
        "clusters": orisk.RiskController("divergence", 0.3).calibrate(proba, y, clusters=tens),
        "weights": orisk.RiskController(alpha=0.3).calibrate(proba, y, sample_weight=[1, 2] * 15),
        "online": orisk.OnlineRiskController(alpha=0.2, classes=range(3)),
        "monitor": orisk.RiskMonitor(alpha=0.2, classes=range(3)),
    }
    made["online"].replay(proba, y)
    made["monitor"].update(y, made["calibration"].predict_set(proba))
    documents = {}
    for name, saved in made.items():
        saved.save("base.json")
        documents[name] = json.loads(Path("base.json").read_text())
        Path("base.json").unlink()
    return documents


def warm_up() -> None:
    """Make the documents."""
    import os
    import tempfile

    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        _documents()
        os.chdir(before)
