"""Prediction sets: intervals of labels, their ends by row or by label, their view in a notebook."""
