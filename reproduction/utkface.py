"""The paper's experiment on age recognition (Table 2): faces in twenty groups of five years."""

from __future__ import annotations

from os import PathLike

from ordinalrisk.losses.kinds import DivergenceLoss, WeightedLoss
from reproduction.faces import AGE_GROUPS, load_utkface
from reproduction.image_scores import SplitImages, split_at_random
from reproduction.images import Track
from reproduction.protocol import Experiment

EXPERIMENT = Experiment(
    name="utkface",
    title="Age recognition",
    table=2,
    classes=tuple(AGE_GROUPS),
    scenarios={
        "S1": WeightedLoss(),
        "S2": WeightedLoss([2] * 4 + [1] * 16),
        "S3": WeightedLoss([1] * 16 + [2] * 4),
        "S4": DivergenceLoss(),
    },
    meaning={
        "S1": "equal weights",
        "S2": "double on 0..3",
        "S3": "double on 16..19",
        "S4": "divergence",
    },
    alphas=(0.005, 0.01, 0.025, 0.05, 0.10, 0.20),
    published={
        "S1": (0.005, 0.010, 0.025, 0.050, 0.100, 0.201),
        "S2": (0.005, 0.010, 0.025, 0.050, 0.100, 0.200),
        "S3": (0.005, 0.010, 0.025, 0.050, 0.100, 0.169),
        "S4": (0.005, 0.010, 0.016, 0.016, 0.016, 0.016),
    },
    histogram_alphas={"S1": 0.10, "S2": 0.10, "S3": 0.10, "S4": 0.02},
    class_alpha=0.025,
    centroid_size=3,
    figures={"examples": 5, "centroids": 6},
)
_IMAGE_SIZE = 128
_HELD_OUT, _HELD_OUT_SHARE = 17_000, 0.72
_EPOCHS, _WEIGHT_DECAY = 30, 0.3  # chosen on 800 of the training images


def split_images(path: str | PathLike[str], seed: int = 0, track: Track = iter) -> SplitImages:
    """The UTKFace images of a folder or zip file; 17,000 are held out, with all copies of an image."""
    data = load_utkface(path, _IMAGE_SIZE, track=track)
    return split_at_random("utkface", data, _HELD_OUT, _HELD_OUT_SHARE, _EPOCHS, _WEIGHT_DECAY, seed)
