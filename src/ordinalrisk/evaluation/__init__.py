"""Do known labels agree with the promise? Counts, estimates with intervals, verdicts."""
