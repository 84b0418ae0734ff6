"""What users pass in: numbers, arrays of any library, probabilities, labels, groups.

Every check of an input and its message is here. Modules of this room know nothing of losses or thresholds.
"""
