"""Which alpha, loss and rule: searches and comparisons before a calibration."""
