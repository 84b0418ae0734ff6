"""Calls of public names, as source text: arguments that the documentation allows, forbids, or leaves open."""

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import ordinalrisk as orisk
from fuzz.checking import VOCABULARY, WrongError, rows

CASES_A_ROUND = 400


CALLS, ARGUMENTS = VOCABULARY["calls"], VOCABULARY["arguments"]


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    """A call with at most two arguments that are not right, and what it must give."""
    call = draw(st.sampled_from(CALLS))
    slots = re.findall(r"{(\w+)}", call)
    spoilt = draw(st.sets(st.integers(0, len(slots) - 1), max_size=2))
    kinds = {"open" if "any" in slots or call.startswith("?") else "right"}
    for i, slot in enumerate(slots):
        allowed = {"wrong", "open"} if i in spoilt else {"right"}
        pool = [
            (kind, source) for kind, found in ARGUMENTS[slot].items() if kind in allowed for source in found
        ]
        kind, source = draw(st.sampled_from(pool))
        kinds.add(kind)
        call = call.replace(f"{{{slot}}}", source, 1)
    size = [draw(st.integers(12, 40)), draw(st.integers(2, 6)), draw(st.integers(0, 9))]
    gives = "error" if "wrong" in kinds else "open" if "open" in kinds else "result"
    return {"rows": size, "call": call.removeprefix("?"), "gives": gives}


def check(case: dict[str, Any]) -> None:
    """Errors are a ``ValueError``; what must be refused is, and what is allowed is not."""
    proba, y = rows(*case["rows"])
    n, n_classes = proba.shape
    names = {
        **{"orisk": orisk, "np": np, "pd": pd, "Fraction": Fraction, "Decimal": Decimal},
        **{"nan": math.nan, "inf": math.inf, "proba": proba, "y": y, "n": n, "K": n_classes},
        **{"tens": np.arange(n) // 3, "spoilt": _spoilt},
        "sets": orisk.IntervalSet(np.zeros(n, int), np.full(n, n_classes - 1), np.arange(n_classes)),
    }
    try:
        result = eval(case["call"], names)
        repr(result)
    except (ValueError, IndexError) as error:
        if isinstance(error, IndexError) and not case["call"].startswith("sets["):
            raise
        if case["gives"] == "result":
            raise WrongError(f"refused what is allowed in {_name(case)}: {error}") from None
        return
    if case["gives"] == "error":
        raise WrongError(f"accepted what is wrong in {_name(case)}: {result!r}"[:500])


def _name(case: dict[str, Any]) -> str:
    return re.match(r"[\w.]+", case["call"])[0]


def _spoilt(proba: np.ndarray, value: float) -> np.ndarray:
    proba = proba.copy()
    proba[-1, -1] = value
    return proba


def warm_up() -> None:
    """Import what the cases need, or the first ones would be taken for hangs."""
    for growth in ARGUMENTS["growth"]["right"]:
        call = f"orisk.RiskController(growth={growth}).calibrate(proba, y).predict_set(proba)"
        check({"rows": [12, 3, 0], "call": call, "gives": "result"})
