r"""
Reading the report
==================

The people who act on the ranges do not read Python. For them there is one HTML file,
without any network, that can be sent around and put on record.
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
# (``predict_ordered_proba`` has a column for each label in their order on the scale.
# scikit-learn's ``predict_proba`` sorts text labels alphabetically.)
#
# .. raw:: html
#
#    <p><a href="report.html">Open the report on a page of its own</a>, or try it here:</p>
#    <iframe class="report" src="report.html" title="The report of this page" loading="lazy"></iframe>
#
# From top to bottom
# ------------------
#
# **The slider over alpha** stays at the top and moves everything below it, so that a meeting can
# look at the price of less risk without a new calibration.
#
# **On the test rows** has the numbers that matter: the loss, the share of sets that hold the truth,
# the labels in a set. Beside them stands the threshold, which is all that the calibration chose.
#
# **Is the promise kept?** compares the loss on the test rows with ``alpha``. It "agrees" unless
# the whole confidence interval of the loss lies above ``alpha``. A few rows agree with anything:
# look at the width of the interval.
#
# **What do the sets look like?** is what people will feel. A single label is a decision, the
# whole scale is a case for an expert.
#
# **Is every class served?** shows what the average hides. The promise is about all rows together,
# and rare classes may be missed far more often than ``alpha``. If that matters, weigh them
# (:doc:`/tutorial/choosing_a_loss`) or ask for a promise for each class (:doc:`/guarantees`).
#
# **Which cases stand out?** lists the widest sets and the missed cases, with the columns that
# ``cases`` names: where to look for errors in the data or in the model. **Would another growth
# rule do better?** answers itself.
#
# **For the auditor** has the fingerprints of calibration and test rows, the version, and the loss.
# With the saved calibration beside it, every number can be repeated:

model.controller_.save("marriages.json")
again = orisk.RiskController.load("marriages.json")
sets = again.predict_set(model.predict_ordered_proba(answers.iloc[later]))
assert sets == model.predict_set(answers.iloc[later])
print(again.data_blake3_[:16], again.n_rows_, "rows")

# %%
# Without Python
# --------------
#
# The same from files, where the scores of a model are columns of a table:
#
# .. code-block:: console
#
#    $ ordinalrisk calibrate scores.csv --loss divergence --natural-units --alpha 0.2 -o marriages.json
#    $ ordinalrisk report marriages.json test.csv -o report.html
#
# More on this in :doc:`/reference/command_line`.
