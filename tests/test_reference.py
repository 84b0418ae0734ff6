"""The reference: every public name once, with its parameters as they are, an example, the paper's numbers."""

import inspect
import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate

import ordinalrisk

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted((DOCS / "reference").glob("*.md"))
MODULES = ("datasets", "metrics", "plots", "probabilities", "report", "shift", "splitting")
ENTRY = re.compile(
    r"^\.\. (?P<kind>auto\w+|py:\w+):: (?P<name>[\w.]+)(?P<signature>\(.*\))?\n(?P<options>(?:   .*\n)*)",
    re.M,
)
EQUATION, THEOREM, ALGORITHM, SECTION = r"Eq\. ", "Theorem", "Algorithm", "Section "

# What other modules of the package use: named on the controller's page, without entries of their own.
FOR_ENGINES = {
    "RiskController": {
        "of",
        "spec",
        "thresholds_",
    },
    "JointController": {"of", "calibrated_parts"},
    "RiskCurve": {"require_whole"},
    "Guarantee": {"condition", "name"},
    "IntervalSet": {"of"},
    "IntervalLoss": {"called", "in_words", "kind", "measure", "promise_in_words", "to_dict", "whole_costs"},
    "GrowthRule": {"name", "note", "row_levels", "intervals", "steps", "given_points", "require_points"}
    | {"uses_loss", "level_range"},
    "FarOff": {"to_dict"},
    "TriageController": {"uncalibrated", "empty_rows", "use_rows", "decide_batch", "groups_"},
}
OF_SCIKIT_LEARN = {"get_metadata_routing", "set_fit_request", "set_score_request"}

PAPER = {
    "ordinalrisk.RiskController": [EQUATION + "2 and 3", THEOREM + "s 1 and 4", ALGORITHM + " 2"],
    "ordinalrisk.RiskController.guarantee": [THEOREM + " 1"],
    "ordinalrisk.calibration.guarantees.Guarantee": [THEOREM + " 1"],
    "ordinalrisk.RiskCurve": [EQUATION + "3", THEOREM + " 4"],
    "ordinalrisk.RiskCurve.first_level_above": [EQUATION + "3"],
    "ordinalrisk.OrdinalRiskClassifier": [EQUATION + "2 and 3", THEOREM + " 1"],
    "ordinalrisk.losses.IntervalLoss": [EQUATION + "1"],
    "ordinalrisk.WeightedLoss": [SECTION + "2.3"],
    "ordinalrisk.DivergenceLoss": [SECTION + "2.4", EQUATION + "8"],
    "ordinalrisk.CostTableLoss": [SECTION + "2.2"],
    "ordinalrisk.growth.GrowthRule": [SECTION + "2.1"],
    "ordinalrisk.PaperGrowth": [
        ALGORITHM + "s 1 and 3",
        EQUATION + "7",
        EQUATION + "11",
        THEOREM + "s 2 and 3",
    ],
    "ordinalrisk.AdaptiveGrowth": [EQUATION + "6 and 10"],
    "ordinalrisk.FrontierGrowth": ["The paper has no such rule"],
    "ordinalrisk.RankedProbabilityGrowth": ["The paper has no such rule"],
    "ordinalrisk.IntervalSet": [SECTION + "2.1"],
    "ordinalrisk.metrics.losses": [EQUATION + "1"],
    "ordinalrisk.metrics.risk": [EQUATION + "2"],
    "ordinalrisk.metrics.centroid_histogram": ["Figures 4, 6 and 8"],
    "ordinalrisk.plots.plot_centroids": ["Figures 4, 6 and 8"],
    "ordinalrisk.plots.plot_risk_curve": [EQUATION + "3"],
    "ordinalrisk.alpha_for_size": [SECTION + "3.1"],
    "ordinalrisk.weights_for_coverage": [SECTION + "4"],
    "ordinalrisk.probabilities.min_shift": ["Table 3"],
    "ordinalrisk.datasets.simulated_classes": [SECTION + "3.1"],
}
NOT_ASKED = {"ES01", "SA01", "PR04", "RT02"}  # a second paragraph, a "See Also", types beside the annotations
NOT_ASKED_OF_RESULTS = {"PR01", "EX01"}
WITHOUT_FORMULA = {"compare", "ranked", "trade_off", "split_rows", "split_folds", "OrdinalRiskClassifier"}


def public_names():
    names = [f"ordinalrisk.{name}" for name in ordinalrisk.__all__]
    for module in MODULES:
        names += [f"ordinalrisk.{module}.{name}" for name in import_module(f"ordinalrisk.{module}").__all__]
    return names


def found(name):
    """The object of a dotted name."""
    thing = ordinalrisk
    for part in name.split(".")[1:]:
        try:
            thing = getattr(thing, part)
        except AttributeError:
            thing = import_module(f"{thing.__name__}.{part}")
    return thing


def text_of(page):
    """The text of a page, with an entry for each class that ``autoclasses`` stands for."""

    def entries(directive):
        classes = found(directive[1]).values()
        return "\n\n".join(f".. autoclass:: ordinalrisk.{each.__name__}" for each in classes)

    return re.sub(r"\.\. autoclasses:: (\S+)", entries, page.read_text(encoding="utf-8"))


ENTRIES = [match for page in PAGES for match in ENTRY.finditer(text_of(page))]
KINDS = {match["name"]: match["kind"] for match in ENTRIES}


def members(entry):
    listed = re.search(r":members: (.*)", entry["options"] or "")
    return listed[1].split(", ") if listed else []


# Every name with an entry that is called: functions, classes, methods.
CALLED = [
    name
    for entry in ENTRIES
    if entry["kind"] in ("autofunction", "autoclass")
    for name in [entry["name"], *(f"{entry['name']}.{member}" for member in members(entry))]
    if callable(found(name))
]
CLASSES = [name for name, kind in KINDS.items() if kind == "autoclass"]


def results():
    """Classes that functions return and nobody makes: their docstrings list attributes, not parameters."""
    text = (DOCS / "_extensions" / "schemas.py").read_text(encoding="utf-8")
    return {*re.findall(r'"(ordinalrisk\.[\w.]+)",', text[text.index("RESULTS") :])}


def documentation(thing):
    return NumpyDocString(inspect.getdoc(thing) or "")


def names_in(section):
    return [name.strip().lstrip("*") for each in section for name in each.name.split(",")]


def test_every_public_name_is_on_one_page_once():
    counted = Counter(match["name"] for match in ENTRIES)
    assert {name: counted[name] for name in public_names() if counted[name] != 1} == {}


def test_modules_and_data_are_entered_as_what_they_are():
    for name in public_names():
        thing = found(name)
        kind = (
            "automodule"
            if inspect.ismodule(thing)
            else "autoexception"
            if inspect.isclass(thing) and issubclass(thing, Exception)
            else "autoclass"
            if inspect.isclass(thing)
            else "autofunction"
            if callable(thing)
            else "py:data"
        )
        assert KINDS[name] in (kind, "py:function"), name


def test_the_index_has_a_card_for_every_page():
    index = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    assert [page.stem for page in PAGES if f":link: {page.stem}\n" not in index] == ["index"]


@pytest.mark.parametrize("name", CALLED)
def test_docstrings_are_as_numpydoc_asks(name):
    """All parameters in the order of the signature, what is returned, an example; each in sentences."""
    not_asked = NOT_ASKED | (
        NOT_ASKED_OF_RESULTS if name in {*results(), "ordinalrisk.growth.GrowthRule"} else set()
    )
    assert [said for code, said in validate(name)["errors"] if code not in not_asked] == []


@pytest.mark.parametrize("name", sorted(results() & {*CALLED}))
def test_results_list_their_fields_as_attributes(name):
    fields = [*getattr(found(name), "__dataclass_fields__", getattr(found(name), "_fields", ()))]
    described = documentation(found(name))
    assert [each for each in names_in(described["Attributes"]) if each in fields] == fields
    assert not described["Parameters"]


@pytest.mark.parametrize("name", CLASSES)
def test_what_is_public_of_a_class_is_documented_or_named_as_left_out(name):
    cls = found(name)
    entry = next(match for match in ENTRIES if match["name"] == name)
    described = documentation(cls)
    left_out = set().union(*(FOR_ENGINES.get(each.__name__, set()) for each in cls.__mro__)) | OF_SCIKIT_LEARN
    shared = {
        member for match in ENTRIES if found(match["name"]) in cls.__mro__[1:] for member in members(match)
    }
    known = {
        *members(entry),
        *shared,
        *names_in(described["Attributes"]),
        *names_in(described["Parameters"]),
        *left_out,
    }
    ours = [each for each in cls.__mro__ if each.__module__.startswith("ordinalrisk")]
    public = {
        member
        for each in ours
        for member in [*vars(each), *getattr(each, "__annotations__", {})]
        if not member.startswith("_")
    }
    assert public - known == set()


def test_what_is_left_out_exists_and_is_named_on_the_page():
    page = (DOCS / "reference" / "controller.md").read_text(encoding="utf-8")
    tail = page[page.index("## For developers of extensions") :]
    classes = {found(name).__name__: found(name) for name in CLASSES}
    for name, left_out in FOR_ENGINES.items():
        for member in left_out:
            owners = [classes[name], *classes[name].__subclasses__()]
            assert any(hasattr(owner, member) for owner in owners), f"{name}.{member}"
            assert f"`{member}`" in tail


@pytest.mark.parametrize("name", PAPER)
def test_what_the_paper_has_says_where(name):
    text = " ".join((inspect.getdoc(found(name)) or "").split())
    for number in PAPER[name]:
        assert re.search(number + r"(?!\d)", text), number


def numbers_after(word, text):
    """All numbers of lists such as "Eq. 6 and 10" or "Theorems 1, 2"."""
    lists = re.findall(rf"\b{word}s?\.? (\d[\d.]*(?:(?:, | and\s+| to )\d[\d.]*)*)", text)
    return {number.rstrip(".") for each in lists for number in re.findall(r"\d[\d.]*", each)}


def test_the_table_of_the_paper_has_the_numbers_of_the_docstrings():
    table = (DOCS / "reference" / "index.md").read_text().split("| in the paper |")[1]
    rows = re.findall(r"^\| (.*?) \| (.*?) \|$", table, flags=re.M)
    assert len(rows) > 8
    for cell, here in rows:
        named = re.findall(r"~?(ordinalrisk[\w.]*)>?`", here)
        texts = " ".join(inspect.getdoc(found(name)) for name in named)
        for word in ("Eq", "Theorem", "Algorithm"):
            assert numbers_after(word, cell) <= numbers_after(word, texts), cell


def test_losses_rules_and_what_they_make_are_among_those_with_numbers():
    names = [f"ordinalrisk.{name}" for name in ordinalrisk.__all__ if name.endswith(("Loss", "Growth"))]
    for name in names:
        assert name in PAPER or "The paper has no such" in inspect.getdoc(found(name))


@pytest.mark.parametrize("name", [name for name in CALLED if name.count(".") == 1])
def test_what_computes_a_quantity_has_its_formula(name):
    assert ".. math::" in inspect.getdoc(found(name)) or name.split(".")[1] in WITHOUT_FORMULA


@pytest.mark.parametrize("module", ["metrics", "probabilities", "shift"])
def test_every_function_of_a_module_of_formulas_has_one(module):
    home = import_module(f"ordinalrisk.{module}")
    for name in home.__all__:
        if not inspect.isclass(getattr(home, name)):
            assert ".. math::" in inspect.getdoc(getattr(home, name)), name
