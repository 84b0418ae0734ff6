"""From losses to thresholds: accumulate rows, keep a promise, say what is guaranteed.

Promises, the rules for combining options, thresholds, and the guarantee in words belong here. Reading rows
belongs to ``execution``, their checks to ``inputs``, and growing sets to ``prediction``. Promises and bounds
never see a probability.
"""
