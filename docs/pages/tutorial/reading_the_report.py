r"""
Reading the report
==================

The people who use the sets may not read Python. For them you can write a report: one HTML file that needs
no network, and that you can send and archive.
"""

# sphinx_gallery_thumbnail_path = 'images/report.png'

import statsmodels.api as sm
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ordinalrisk as orisk

RATINGS = ["very poor", "poor", "fair", "good", "very good"]
answers = sm.datasets.fair.load_pandas().data
rating = answers.pop("rate_marriage").astype(int).map(lambda stars: RATINGS[stars - 1])
train, held_out = orisk.splitting.split_rows(len(answers), share=1 / 3, random_state=0)
half, other_half = orisk.splitting.split_rows(len(held_out), random_state=0)
calibration, later = held_out[half], held_out[other_half]

model = orisk.OrdinalRiskClassifier(
    make_pipeline(StandardScaler(), LogisticRegression()),
    loss=orisk.DivergenceLoss(normalize=False),
    alpha=0.2,
    classes=RATINGS,
    random_state=0,
).fit(answers.iloc[[*train, *calibration]], rating.iloc[[*train, *calibration]])

orisk.report.write_report(
    model.controller_,
    model.predict_ordered_proba(answers.iloc[later]),
    rating.iloc[later],
    "report.html",
    cases={
        "age": answers["age"].iloc[later],
        "children": answers["children"].iloc[later],
    },
)
print(model.guarantee())

# %%
# (``predict_ordered_proba`` returns one column for each label, in the order of the scale. scikit-learn's
# ``predict_proba`` sorts text labels alphabetically.)
#
# .. raw:: html
#
#    <p><a href="report.html">Open the report on its own page</a>, or try it here:</p>
#    <iframe class="report" src="report.html" title="The report of this page" loading="lazy"></iframe>
#
# From top to bottom
# ------------------
#
# - **The slider for alpha** stays at the top and changes all numbers and charts. So you can see what less
#   risk costs, without a new calibration.
# - **The guarantee** is the largest sentence. Below it, a green, amber or red box says whether the test rows
#   agree with it. They agree unless the whole confidence interval of their loss is above ``alpha``. With few
#   test rows the interval is wide, and almost any result agrees. So look at its width. *Details* shows the
#   exact statement and the threshold, the only number that the calibration chose.
# - **The test rows.** The main numbers are the realised risk (the mean loss), the coverage (the share of sets
#   that contain the truth), and the mean number of labels in a set.
# - **The sets.** How many sets have one label, two labels, and so on. A set with a single label is easy to
#   act on, but sets of one size have no guarantee of their own: the guarantee is about all sets together. A
#   set with the full scale needs an expert.
# - **The classes.** The guarantee is about all rows together, so rare classes can be missed far more often
#   than ``alpha``. If this matters, give them larger weights (:doc:`/tutorial/choosing_a_loss`) or use a
#   guarantee for each class (:doc:`/guarantees`).
# - **The rows that stand out.** The largest sets and the misses, with the columns that you pass as ``cases``.
#   Look here for errors in the data or the model.
# - **Misses by column.** Which values of the columns have the most misses, if you pass ``cases``.
# - **The probabilities.** How often the model is right when it gives a label a certain probability.
# - **The growth rules.** The mean size of the sets for each growth rule, at the same ``alpha``.
# - **The audit.** The fingerprints of the calibration and test rows, the version, and the loss. With these
#   and the saved calibration you can repeat every number:

model.controller_.save("marriages.json")
again = orisk.RiskController.load("marriages.json")
sets = again.predict_set(model.predict_ordered_proba(answers.iloc[later]))
assert sets == model.predict_set(answers.iloc[later])
print(again.data_blake3_[:16], again.n_rows_, "rows")

# %%
# Without Python
# --------------
#
# The command line does the same with files. The scores of the model are columns of a table:
#
# .. code-block:: console
#
#    $ ordinalrisk calibrate scores.csv --loss divergence --natural-units --alpha 0.2 -o marriages.json
#    $ ordinalrisk report marriages.json test.csv -o report.html
#
# See :doc:`/reference/command_line`.
