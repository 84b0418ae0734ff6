"""Saved state: JSON documents of calibrations, runs and monitors, with a schema, digests and signatures.

What a document contains, and how older versions are read, belongs here. Writing a file whole or not at all
belongs to ``files``.
"""
