"""
A scikit-learn pipeline that predicts sets
==========================================

Before the election of 1996 a survey asked 944 Americans for their position between the two parties, on a
scale of seven steps. We predict the step from a table of mixed columns with an ordinary scikit-learn
pipeline. :class:`~ordinalrisk.OrdinalRiskClassifier` wraps the pipeline and predicts a set of neighbouring
steps.
"""

import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, GREY, VERMILLION

scale = ["strong Democrat", "weak Democrat", "leans Democrat", "independent"]
scale += ["leans Republican", "weak Republican", "strong Republican"]

survey = sm.datasets.anes96.load_pandas().data
y = np.array(scale)[survey["PID"].astype(int)]
numbers = ["age", "income", "TVnews", "selfLR", "ClinLR", "DoleLR"]
X = survey[numbers].assign(
    vote=survey["vote"].map({0: "Clinton", 1: "Dole"}),
    place=np.where(survey["popul"] > 100, "city", "country"),
)
X.head(3)

# %%
# The labels are text, and in alphabetical order "independent" would come first. So we pass the order:
# ``classes=scale``. Everything else works as with any classifier. ``fit`` trains the pipeline on some of its
# rows and calibrates on the others; ``alpha=0.2`` allows one set in five to miss the true answer.

columns = make_column_transformer(
    (StandardScaler(), numbers), (OneHotEncoder(), ["vote", "place"])
)
pipeline = make_pipeline(columns, LogisticRegression(C=0.3))
model = orisk.OrdinalRiskClassifier(
    pipeline, alpha=0.2, classes=scale, calibration_size=0.4, random_state=0
)

X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
model.fit(X_train, y_train)
sets = model.predict_set(X_test)
print(model.guarantee())
sets.to_pandas(index=X_test.index).join(X_test[["selfLR", "vote"]]).head()

# %%
# On the test respondents, the share of misses agrees with the guarantee. The single label of the pipeline is
# wrong far more often.

missed = orisk.metrics.risk(y_test, sets, confidence=0.95)
wrong = (model.predict(X_test) != y_test).mean()
print(f"sets that miss: {missed}, of {sets.size.mean():.1f} steps on average")
print(f"single labels that are wrong: {wrong:.2f}")
assert missed.low < 0.2 < wrong

# %%
# Each column is a respondent of the test rows, ordered by the position of the set. Most sets end on one side
# of the middle: the model is sure of the party and unsure how strongly the respondent supports it.

position = np.array([scale.index(answer) for answer in y_test])
order = np.lexsort([sets.size, sets.centroid])
inside = sets.contains(y_test)[order]
figure, axes = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
column = np.arange(len(order))
axes.vlines(
    column,
    sets.lower_index[order] - 0.4,
    sets.upper_index[order] + 0.4,
    color=GREY,
    linewidth=1.6,
)
for hit, colour in ((True, BLUE), (False, VERMILLION)):
    axes.plot(
        column[inside == hit],
        position[order][inside == hit],
        ".",
        color=colour,
        markersize=5,
    )
axes.set_yticks(range(7), scale)
axes.text(
    0.02,
    0.95,
    "grey: set\nblue: answer in the set\nred: miss",
    transform=axes.transAxes,
    va="top",
)
axes.set(
    xlabel="respondents", xticks=[], title="Sure of the party, unsure how strongly"
)
one_side = (sets.upper_index < 4) | (sets.lower_index > 2)
assert one_side.mean() > 0.5
plt.show()

# %%
# A trained pipeline stays unchanged in a ``FrozenEstimator``. Then ``fit`` uses all rows that you pass for
# the calibration.

X_model, X_calibration, y_model, y_calibration = train_test_split(
    X_train, y_train, test_size=0.4, random_state=0
)
trained = pipeline.fit(X_model, y_model)
frozen = orisk.OrdinalRiskClassifier(FrozenEstimator(trained), alpha=0.2, classes=scale)
frozen.calibrate(X_calibration, y_calibration)
print(f"missed: {orisk.metrics.risk(y_test, frozen.predict_set(X_test)):.2f}")
