"""Promise against known labels: counts, estimates with intervals, verdicts."""
