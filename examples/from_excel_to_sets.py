"""
From Excel to sets
==================

Scores are often in an Excel workbook, or in the CSV that Excel writes in Germany or France. You can use
both as they are. Unusual formats are detected, and a note tells you what was detected.
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
# The workbook has three sheets: ``calibration`` and ``test`` with known ratings, and ``new`` without them. It
# contains the scores of an ordered logit for a survey about marriages, made by
# ``examples/make_marriage_scores.py``. Excel files need ``pip install "ordinalrisk[excel]"``.
#
# :func:`jobs.calibrate <ordinalrisk.jobs.calibrate>` reads the first sheet unless ``sheet`` names another
# one. The column ``p_very_poor`` has the scores of the class "very poor": spaces, dashes and capitals are
# ignored. ``note`` receives each guess as a sentence. Without ``note``, guesses become warnings.

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
# The sets of the new rows are written to a CSV file that Excel can open. The other columns are copied, and
# ``safe_csv`` keeps Excel from running text as a formula. Sets are not written as a workbook: ``sets.xlsx``
# raises an error that lists the formats.

orisk.jobs.predict(
    controller, WORKBOOK, folder / "sets.csv", sheet="new", safe_csv=True
)
sets = pd.read_csv(folder / "sets.csv")
print(sets.head(4).to_string(index=False))

# %%
# The same from the CSV of a German Excel
# ---------------------------------------
#
# In a German CSV, semicolons separate the values and decimals have a comma. Percent signs, thousands
# separators, tabs and UTF-16, which Excel calls "Unicode text", are detected in the same way.

new = pd.read_excel(WORKBOOK, sheet_name="new", engine="calamine")
german = new.to_csv(sep=";", decimal=",", index=False)
(folder / "neu.csv").write_text(german, encoding="utf-8-sig")
print("\n".join(german.splitlines()[:2]))

orisk.jobs.predict(controller, folder / "neu.csv", folder / "again.csv", note=say)
again = pd.read_csv(folder / "again.csv")
assert again[["answer", "lower", "upper"]].equals(sets[["answer", "lower", "upper"]])

# %%
# If a file is ambiguous, such as ``1,234`` in a file without any other number, the error names the option to
# use: ``delimiter=";"`` or ``decimal=","``, on the command line ``--delimiter`` and ``--decimal``.
#
# Check the guarantee
# -------------------
#
# :func:`jobs.evaluate <ordinalrisk.jobs.evaluate>` compares the ratings in the sheet ``test`` with the
# guarantee. In a notebook the result looks like the report, with a table for each true class:

orisk.jobs.evaluate(controller, WORKBOOK, sheet="test")

# %%
# You can also get the table as a data frame, with the ratings as ordered categories:

found = orisk.jobs.evaluate(controller, WORKBOOK, sheet="test")
assert found.colour == "amber"
print(found.to_pandas()[["label", "rows", "coverage", "risk", "size"]].round(3))

# %%
# The verdict is amber. The guarantee is about all rows together, and it holds, but all the poor ratings are
# missed. If this matters, see :doc:`/tutorial/choosing_a_loss`.
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
# :doc:`/reference/files` describes the files.
