"""Saved calibrations, runs and monitors: JSON documents with a schema, checksums and signatures."""
