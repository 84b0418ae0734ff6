"""Recalibration: maps from the scores of a model to probabilities of the labels.

A map is fitted on rows that are not calibration rows. It makes sets smaller; the guarantee does not depend on
it.
"""
