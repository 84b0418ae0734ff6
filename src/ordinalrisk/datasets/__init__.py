"""Ordinal data to try things on."""

from ordinalrisk.datasets.simulated import simulated_classes

__all__ = ["simulated_classes"]
