"""Check what users pass in: numbers, arrays of any library, probabilities, labels, groups.

Every check of an input belongs here, with its error message. These modules do not depend on losses,
thresholds or files. The options of a guarantee are checked in ``calibration``.
"""
