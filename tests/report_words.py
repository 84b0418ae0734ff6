"""Sentences of a report, by the public way to them."""

from ordinalrisk.report import summarise


def headline(controller, proba, y):
    """The guarantee as a report on these rows words it."""
    summary = summarise(controller, proba, y)
    return summary["stops"][summary["start"]]["headline"]
