"""The time of a new process: the import, a first small call, and the same call with other libraries."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec

IMPORT = "import ordinalrisk"
SMALL_CALL = """
import numpy as np
import ordinalrisk as orisk
rng = np.random.default_rng(0)
proba = rng.dirichlet(np.ones(5), size=1000)
controller = orisk.RiskController(alpha=0.1, check=False).calibrate(proba, rng.integers(0, 5, 1000))
controller.predict_set(proba)
"""
ROWS = """
import warnings
import numpy as np
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
proba = rng.dirichlet(np.ones(5), size=2000).astype(np.float32)
y = (proba.cumsum(axis=1)[:, :-1] < rng.random((2000, 1))).sum(axis=1)
"""
COLD_STARTS = {
    "numpy": ("numpy", "", "import numpy"),
    "ours": (
        "ordinalrisk",
        ROWS,
        """
import ordinalrisk
controller = ordinalrisk.RiskController(alpha=0.1).calibrate(proba, y)
controller.predict_set(proba)
""",
    ),
    "MAPIE lac": (
        "mapie",
        ROWS,
        """
from mapie.classification import SplitConformalClassifier
from sklearn.base import BaseEstimator, ClassifierMixin
class Given(ClassifierMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.classes_ = np.arange(5)
        return self
    def predict_proba(self, X):
        return X
    def predict(self, X):
        return X.argmax(axis=1)
how = {"confidence_level": 0.9, "conformity_score": "lac", "prefit": True}
model = SplitConformalClassifier(Given().fit(proba), **how)
model.conformalize(proba, y).predict_set(proba)
""",
    ),
    "crepes": (
        "crepes",
        ROWS,
        """
from crepes import ConformalClassifier
from crepes.extras import hinge
model = ConformalClassifier().fit(hinge(proba, np.arange(5), y))
model.predict_set(hinge(proba), confidence=0.9)
""",
    ),
    "TorchCP LAC": (
        "torchcp",
        ROWS,
        """
import sys
from types import SimpleNamespace
from importlib.util import find_spec, module_from_spec
sys.modules["torchcp"] = module_from_spec(find_spec("torchcp"))  # without the parts that are not used here
sys.modules["torchsort"] = SimpleNamespace(soft_rank=None, soft_sort=None)
import torch
from torchcp.classification.predictor import SplitPredictor
from torchcp.classification.score import LAC
predictor = SplitPredictor(LAC(score_type="identity"), alpha=0.1)
predictor.calculate_threshold(torch.from_numpy(proba), torch.from_numpy(y))
predictor.predict_with_logits(torch.from_numpy(proba))
""",
    ),
}
"""For each contender: its package, the code before, and the timed code from the import to 2,000 sets."""
TIMED = """
import time
{before}
start = time.perf_counter()
{code}
print(time.perf_counter() - start)
"""


def measure_latency(repeats: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Best and median seconds of each in a row of processes; the first is not counted."""
    for name, code in {"import": IMPORT, "small call": SMALL_CALL}.items():
        runs = [_run("", code) for _ in range(repeats + 1)][1:]
        inside, whole = zip(*runs, strict=True)
        yield (
            name,
            {
                "best": min(inside),
                "median": statistics.median(inside),
                "whole process best": min(whole),
                "whole process median": statistics.median(whole),
            },
        )


def measure_cold_start(repeats: int) -> dict[str, float]:
    """Median seconds of each contender's first calibration and prediction; they take turns."""
    installed = {name: parts for name, (package, *parts) in COLD_STARTS.items() if find_spec(package)}
    rounds = [
        {name: _run(*parts)[0] for name, parts in installed.items()} for _ in range(repeats + 1)
    ]  # the first round writes bytecode
    return {name: statistics.median(each[name] for each in rounds[1:]) for name in installed}


def _run(before: str, code: str) -> tuple[float, float]:
    """Seconds of the code in a new process, and of the whole process."""
    start = time.perf_counter()
    script = [sys.executable, "-c", TIMED.format(before=before, code=code)]
    done = subprocess.run(script, check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout), time.perf_counter() - start
