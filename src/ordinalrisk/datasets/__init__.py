"""Data to try things on: a simulation, and loaders of images."""

from ordinalrisk.datasets.images import ImageData
from ordinalrisk.datasets.retinopathy import GRADES, load_kaggle_retinopathy, load_retinamnist
from ordinalrisk.datasets.simulated import simulated_classes
from ordinalrisk.datasets.utkface import AGE_GROUPS, load_utkface

__all__ = [
    "AGE_GROUPS",
    "GRADES",
    "ImageData",
    "load_kaggle_retinopathy",
    "load_retinamnist",
    "load_utkface",
    "simulated_classes",
]
