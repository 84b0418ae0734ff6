"""
From Excel to sets
==================

Scores often come in a workbook, or in the CSV that Excel writes in Germany or France. Both are read
as they are: what is unusual about a file is detected, and a note says so.
"""

import tempfile
import textwrap
from pathlib import Path

import pandas as pd

import ordinalrisk as orisk

WORKBOOK = "marriage_scores.xlsx"
SCALE = ["very poor", "poor", "fair", "good", "very good"]
rows = pd.read_excel(WORKBOOK, sheet_name="calibration", engine="calamine")
print(rows.head(3).to_string())

# %%
# The workbook has three sheets: ``calibration`` and ``test`` with known ratings, and ``new`` without
# them. It has the scores of an ordered logit for answers to a survey about marriages, made by
# ``examples/make_marriage_scores.py``. Excel files need ``pip install "ordinalrisk[excel]"``.
#
# :func:`jobs.calibrate <ordinalrisk.jobs.calibrate>` reads the first sheet unless ``sheet`` names
# another one. The column ``p_very_poor`` has the scores of the class "very poor": spaces, dashes and
# capitals do not count. ``note`` gets each guess as a sentence; without it, guesses become warnings.

folder = Path(tempfile.mkdtemp())


def say(note):
    """Print a note in short lines, without the name of the temporary folder."""
    print(textwrap.fill(note.replace(f"{folder}/", ""), 80))


controller = orisk.jobs.calibrate(
    orisk.RiskController(loss="divergence", alpha=0.05),
    WORKBOOK,
    classes=SCALE,
    note=say,
)
print(controller.guarantee())

# %%
# The sets of new rows go into a CSV file, which Excel opens. The columns that are no scores pass
# through, and ``safe_csv`` keeps Excel from running text as a formula. Sets are not written as a
# workbook: ``sets.xlsx`` is an error that lists the formats.

orisk.jobs.predict(
    controller, WORKBOOK, folder / "sets.csv", sheet="new", safe_csv=True
)
sets = pd.read_csv(folder / "sets.csv")
print(sets.head(4).to_string(index=False))

# %%
# The same from the CSV of a German Excel
# ---------------------------------------
#
# There the values are separated by semicolons and decimals have a comma. Percent signs, thousands
# separators, tabs and UTF-16, which Excel calls "Unicode text", are detected in the same way.

new = pd.read_excel(WORKBOOK, sheet_name="new", engine="calamine")
german = new.to_csv(sep=";", decimal=",", index=False)
(folder / "neu.csv").write_text(german, encoding="utf-8-sig")
print("\n".join(german.splitlines()[:2]))

orisk.jobs.predict(controller, folder / "neu.csv", folder / "again.csv", note=say)
again = pd.read_csv(folder / "again.csv")
assert again[["answer", "lower", "upper"]].equals(sets[["answer", "lower", "upper"]])

# %%
# Where a file leaves a choice, such as ``1,234`` in a file without any other number, the error names
# the option that decides: ``delimiter=";"`` or ``decimal=","``, on the command line ``--delimiter``
# and ``--decimal``.
#
# Does it hold?
# -------------
#
# :func:`jobs.evaluate <ordinalrisk.jobs.evaluate>` compares the ratings in the sheet ``test`` with the
# promise. In a notebook the result shows as the report does, with a table for each true class:

orisk.jobs.evaluate(controller, WORKBOOK, sheet="test")

# %%
# The table is a data frame too, with the ratings as ordered categories:

found = orisk.jobs.evaluate(controller, WORKBOOK, sheet="test")
assert found.colour == "amber"
print(found.to_pandas()[["label", "rows", "coverage", "risk", "size"]].round(3))

# %%
# The verdict is amber. The promise is about all rows together, and it is kept, but all the poor ratings
# are missed. If that matters, see :doc:`/tutorial/choosing_a_loss`.
#
# Without Python
# --------------
#
# .. code-block:: console
#
#    $ ordinalrisk calibrate marriage_scores.xlsx --loss divergence --alpha 0.05 \
#        --classes 'very poor,poor,fair,good,very good' -o cal.json
#    $ ordinalrisk predict cal.json marriage_scores.xlsx --sheet new -o sets.csv
#    $ ordinalrisk evaluate cal.json marriage_scores.xlsx --sheet test
#
# More on files in :doc:`/reference/files`.
