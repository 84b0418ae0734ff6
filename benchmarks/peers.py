"""Contenders with one interface: ``calibrate(proba, y)``, ``predict(proba)``, ``mask(what predict gave, K)``.

All are given the same float32 probabilities, so that only conformal work is timed, and none prepares anything
outside the timed calls.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec, module_from_spec
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

import ordinalrisk as orisk

from .literal import Literal

ALPHA = 0.1


class Contender(Protocol):
    """A method that is timed and compared."""

    def calibrate(self, proba: np.ndarray, y: np.ndarray) -> None: ...
    def predict(self, proba: np.ndarray) -> Any: ...
    def mask(self, predicted: Any, K: int) -> np.ndarray: ...


@dataclass
class Ours:
    """A loss and a growth rule of ordinalrisk."""

    growth: str = "frontier"
    loss: str = "coverage"

    def calibrate(self, proba: np.ndarray, y: np.ndarray) -> None:
        self.controller = orisk.RiskController(loss=self.loss, alpha=ALPHA, growth=self.growth)
        self.controller.calibrate(proba, y)

    def predict(self, proba: np.ndarray) -> orisk.IntervalSet:
        return self.controller.predict_set(proba)

    def mask(self, predicted: orisk.IntervalSet, K: int) -> np.ndarray:
        return predicted.mask()


class GivenProbabilities(ClassifierMixin, BaseEstimator):
    """A trained classifier that takes probabilities as features."""

    def __init__(self, n_classes: int = 2) -> None:
        self.n_classes = n_classes

    def fit(self, X, y=None):
        self.classes_ = np.arange(self.n_classes)
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return X.argmax(axis=1)


@dataclass
class Mapie:
    """A conformity score of MAPIE."""

    score: str

    def calibrate(self, proba: np.ndarray, y: np.ndarray) -> None:
        from mapie.classification import SplitConformalClassifier

        model = GivenProbabilities(proba.shape[1]).fit(proba)
        with warnings.catch_warnings(action="ignore"):  # about float32
            self.model = SplitConformalClassifier(
                model, confidence_level=1 - ALPHA, conformity_score=self.score, prefit=True
            ).conformalize(proba, y)

    def predict(self, proba: np.ndarray) -> np.ndarray:
        with warnings.catch_warnings(action="ignore"):
            _, sets = self.model.predict_set(proba)
        return sets

    def mask(self, predicted: np.ndarray, K: int) -> np.ndarray:
        return predicted[:, :, 0]


class Crepes:
    """The conformal classifier of crepes with its default hinge score and smoothing."""

    def calibrate(self, proba: np.ndarray, y: np.ndarray) -> None:
        from crepes import ConformalClassifier
        from crepes.extras import hinge

        self.hinge = hinge
        self.model = ConformalClassifier().fit(hinge(proba, np.arange(proba.shape[1]), y))

    def predict(self, proba: np.ndarray) -> np.ndarray:
        return self.model.predict_set(self.hinge(proba), confidence=1 - ALPHA)

    def mask(self, predicted: np.ndarray, K: int) -> np.ndarray:
        return predicted.astype(bool)


@dataclass
class TorchCP:
    """A score of TorchCP; its ``identity`` transformation takes probabilities as they are."""

    score: str

    def calibrate(self, proba: np.ndarray, y: np.ndarray) -> None:
        import torch

        parts = torchcp_classification()
        score = {"LAC": parts.LAC, "APS": parts.APS}[self.score](score_type="identity")
        with warnings.catch_warnings(action="ignore"):  # about its own deprecated default
            self.predictor = parts.SplitPredictor(score, alpha=ALPHA)
        self.predictor.calculate_threshold(torch.from_numpy(proba), torch.from_numpy(y))

    def predict(self, proba: np.ndarray) -> Any:
        import torch

        return self.predictor.predict_with_logits(torch.from_numpy(proba))

    def mask(self, predicted: Any, K: int) -> np.ndarray:
        return predicted.numpy().astype(bool)


@cache
def torchcp_classification() -> SimpleNamespace:
    """TorchCP's split predictor and scores, without what TorchCP's other parts import.

    Importing TorchCP imports graph networks, transformers and torchsort, a loss in training that is built
    from source against CUDA. None of it is used here, so only the folder of classification is imported,
    with a stand-in for torchsort where it is not installed.
    """
    sys.modules["torchcp"] = module_from_spec(find_spec("torchcp"))  # not run
    if find_spec("torchsort") is None:
        sys.modules["torchsort"] = SimpleNamespace(soft_rank=None, soft_sort=None)
    from torchcp.classification.predictor import SplitPredictor
    from torchcp.classification.score import APS, LAC

    return SimpleNamespace(SplitPredictor=SplitPredictor, LAC=LAC, APS=APS)


@dataclass(frozen=True)
class Peer:
    """How to make a contender, and its expected time and memory.

    Attributes
    ----------
    make : callable
        Gives a fresh contender.
    package : str
        What must be installed.
    predict_order : int
        Time to predict n rows after calibrating on n rows grows with this power of n.
    bytes_a_cell : int
        Peak memory for each probability, where tracemalloc does not see it; 0 where it does.
    """

    make: Callable[[], Contender]
    package: str
    predict_order: int = 1
    bytes_a_cell: int = 0

    @property
    def installed(self) -> bool:
        return find_spec(self.package) is not None


PEERS = {
    "MAPIE lac": Peer(lambda: Mapie("lac"), "mapie"),
    "MAPIE aps": Peer(lambda: Mapie("aps"), "mapie"),
    "crepes": Peer(Crepes, "crepes", predict_order=2),  # each p-value is a pass over the calibration rows
    "TorchCP LAC": Peer(lambda: TorchCP("LAC"), "torchcp", bytes_a_cell=16),
    "TorchCP APS": Peer(lambda: TorchCP("APS"), "torchcp", bytes_a_cell=64),
    "Algorithms 1-2": Peer(lambda: Literal(ALPHA), "numpy"),
}


def require_coverage(name: str, contender: Contender, proba: np.ndarray, y: np.ndarray) -> None:
    """Raise an error if the sets of a contender do not cover about ``1 - ALPHA`` of the labels, or cover all.

    APS without randomisation covers more than it is asked to, so there is room above.
    """
    K = proba.shape[1]
    mask = contender.mask(contender.predict(proba), K)
    coverage, size = mask[np.arange(len(y)), y].mean(), mask.sum(axis=1).mean()
    slack = 5 * np.sqrt(ALPHA * (1 - ALPHA) / len(y))
    if not (1 - ALPHA - slack <= coverage and size < K):
        raise RuntimeError(
            f"{name} covers {coverage:.3f} with {size:.2f} of {K} labels, asked for {1 - ALPHA:.2f}; "
            "its time would mean nothing."
        )
