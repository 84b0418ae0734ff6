"""Tests on data that a calibration rightly warns of: labels drawn apart from scores, all kinds of weights."""

import pytest

UNCHECKED = pytest.mark.filterwarnings(
    r"ignore:(The scores|In \d+% of|Some classes|The weights hurt|With these weights|alpha=\S+ allows)"
    ":ordinalrisk.CalibrationWarning"
)
