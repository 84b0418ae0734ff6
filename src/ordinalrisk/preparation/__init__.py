"""Learn on rows set apart: the map of the scores and the growth rule, before a calibration.

Which rows are set apart, and what is fitted or chosen on them, belong here, with the Recalibrator that users
fit themselves. None of these rows is a calibration row.
"""
