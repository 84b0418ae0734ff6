"""The categories of warnings about a calibration."""


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


class TooFewRowsWarning(CalibrationWarning):
    """There are too few calibration rows for ``alpha``, or for some classes or groups: their sets are full.

    Make it an error where a calibration that certifies nothing must not pass.

    Examples
    --------
    >>> import warnings
    >>> import ordinalrisk as orisk
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", orisk.TooFewRowsWarning)
    ...     orisk.RiskController(alpha=0.1).calibrate([[0.5, 0.5]], [0])
    Traceback (most recent call last):
    ...
    ordinalrisk.calibration.warning_category.TooFewRowsWarning: alpha=0.1 needs at least 9 ...
    """
