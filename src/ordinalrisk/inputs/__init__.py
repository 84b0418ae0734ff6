"""What users pass in: numbers, arrays of any library, probabilities, labels, groups.

Every check of an input belongs here, with its error message. Modules of this room know nothing of losses,
thresholds or files; options of a promise are checked in ``calibration``.
"""
