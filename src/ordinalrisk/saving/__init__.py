"""Saved state: JSON documents of calibrations, runs and monitors, with a schema, digests and signatures."""
