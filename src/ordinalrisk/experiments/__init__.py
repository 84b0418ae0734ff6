"""The paper's experiments: one module each, and the protocol they share."""
