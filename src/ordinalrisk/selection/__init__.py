"""Which alpha, which loss, which growth rule: searches and comparisons before a calibration."""
