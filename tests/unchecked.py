"""Tests on data that a calibration rightly warns of: unlikely labels, all kinds of weights, too few rows."""

import pytest

UNCHECKED = pytest.mark.filterwarnings(
    r"ignore:(The scores|The true class|In \d+% of|Some classes|Most groups|The weights hurt|"
    r"With these weights|alpha=\S+ allows):ordinalrisk.CalibrationWarning"
)
FEW = pytest.mark.filterwarnings("ignore::ordinalrisk.TooFewRowsWarning")
