"""The category of warnings about a calibration."""


class CalibrationWarning(UserWarning):
    """Something about a calibration that its user may not want: scores, labels, options or too few rows.

    The calibration is made all the same. :doc:`checks` lists the warnings and what to do about each.
    Filter them with Python's ``warnings`` module, or pass ``check=False`` to skip the checks of scores and
    sets.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import ordinalrisk as orisk
    >>> proba = np.random.default_rng(0).dirichlet([9, 3, 1], 500)
    >>> y = np.random.default_rng(1).choice(3, 500, p=[0.08, 0.22, 0.7])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     controller = orisk.RiskController(alpha=0.1).calibrate(proba, y)
    >>> "in reverse order" in str(caught[0].message)
    True
    """
