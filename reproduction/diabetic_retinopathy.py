"""The paper's experiment on diabetic retinopathy (Table 3): retina images in five grades."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np

from ordinalrisk.losses.kinds import DivergenceLoss, WeightedLoss
from reproduction.image_scores import SplitImages, split_at_random
from reproduction.images import ImageData, Track
from reproduction.protocol import Experiment
from reproduction.retinopathy import GRADES, load_kaggle_retinopathy, load_retinamnist

EXPERIMENT = Experiment(
    name="diabetic-retinopathy",
    title="Diabetic retinopathy",
    table=3,
    classes=tuple(GRADES),
    scenarios={"S1": WeightedLoss(), "S2": WeightedLoss([1, 1, 1, 2, 2]), "S3": DivergenceLoss()},
    meaning={"S1": "equal weights", "S2": "double weight on 3, 4", "S3": "divergence"},
    alphas=(0.02, 0.08, 0.14, 0.20),
    published={
        "S1": (0.0198, 0.0794, 0.1402, 0.1499),
        "S2": (0.0199, 0.0801, 0.1401, 0.1485),
        "S3": (0.0200, 0.0430, 0.0428, 0.0428),
    },
    histogram_alphas={"S1": 0.10, "S2": 0.10, "S3": 0.02},
    class_alpha=0.02,
    centroid_size=2,
    figures={"examples": 7, "centroids": 8},
    released_rows=12_316,
)
_IMAGE_SIZE = 128
_HELD_OUT, _HELD_OUT_SHARE = 19_000, 0.55
_EPOCHS, _WEIGHT_DECAY = 40, 0.3


def split_images(path: str | PathLike[str], seed: int = 0, track: Track = iter) -> SplitImages:
    """Retina images: the competition's folder, of which 19,000 are held out, or ``retinamnist.npz``.

    Both eyes of a patient are on one side. RetinaMNIST keeps its official training split; the images of its
    validation and test splits are held out.
    """
    if Path(path).suffix == ".npz":
        return _split_retinamnist(path)
    data = load_kaggle_retinopathy(path, _IMAGE_SIZE, track=track)
    return split_at_random("retinopathy", data, _HELD_OUT, _HELD_OUT_SHARE, _EPOCHS, _WEIGHT_DECAY, seed)


def _split_retinamnist(path: str | PathLike[str]) -> SplitImages:
    parts = load_retinamnist(path)
    data = ImageData(
        images=np.concatenate([part.images for part in parts]),
        y=np.concatenate([part.y for part in parts]),
        names=[name for part in parts for name in part.names],
        groups=np.concatenate([part.groups for part in parts]),
        captions=[caption for part in parts for caption in part.captions],
        skipped={},
    )
    rows, n_train = np.arange(len(data)), len(parts.train)
    return SplitImages("retinamnist", data, rows[:n_train], rows[n_train:], _EPOCHS, _WEIGHT_DECAY)
