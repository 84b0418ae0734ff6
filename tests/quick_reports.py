"""Reports that are made sooner: about few risks.

Whoever counts rows and whoever merges the counts must agree on the risks.
"""

from ordinalrisk.report import stops

FEW = {"MOST_STOPS": 9, "MOST_STOPS_APART": 9, "FEWEST_STOPS": 2, "_FEWEST_STOPS_APART": 2}
USUAL = {name: getattr(stops, name) for name in FEW}


def few_stops(patch=setattr):
    for name, value in FEW.items():
        patch(stops, name, value)


def usual_stops(patch=setattr):
    """For tests of how many there are, and which."""
    for name, value in USUAL.items():
        patch(stops, name, value)
