"""The page that shows a reproduction: tables, pictures, differences and their causes, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ordinalrisk.display.text_table import TextTable
from reproduction import remarks
from reproduction.run import RELEASED, TOLERANCE, Reproduction
from reproduction.tables import centroid_table, class_tables, published_table, rules_tables, weight_table

_PICTURES = {
    "data": "The data: points of ten ordered classes",
    "examples": "Held-out images with their labels and intervals",
    "sizes": "Mean set size against alpha",
    "risks": "Realised risk over random halves",
    "centroids": "Centroids of the sets at equal mean size",
    "classes": "Coverage and mean set size of each true class",
}
_INTRODUCTION = f"""\
# The paper, reproduced

The three experiments of *Conformal Risk Control for Ordinal Classification* (Xu, Guo, Wei; UAI 2023). This
command makes the page, in a clone of the repository after `pip install -e ".[test]"`:

    {{command}}

`simulated.csv` and `diabetic_retinopathy.csv`, where the command names them, are the scores that the
authors of the paper [released](https://github.com/yx8njit/ordinal-conformal-risk-control). They are not
part of this repository. The files that made the published page have these SHA-256:

    5a861ce15c1b2eeb4b06fbdca3a42da3b451c01746bec09e6d00607074366c52  simulated.csv
    b9eb7bc32f8c10ae49b786b1c1cd04cc7363ca46982c2f4173858af93f79a3e8  diabetic_retinopathy.csv

Half of the rows calibrate, the other half tests, and every number is a mean over {{trials}} such random
halves (fewer, 5 to 25 by the number of rows, for the curves of set size and at equal mean size); *s.e.* is
the standard error of that mean. "Differs" marks cells further than {TOLERANCE} from the published ones.

Agreement says little where risk is close to alpha: there every valid calibration agrees, whatever the
scores. It says much where risk saturates, that is, where single labels keep within alpha: that risk belongs
to the scores alone.

{{summary}}

Common to all of them:

- **Scores.** The paper feeds "the softmax output" to its algorithms. Its released code does not take a
  softmax: it subtracts the smallest logit of a row and divides by the sum, here `{RELEASED}`. The published
  numbers are compared with that; a true softmax is shown too.
- **Thresholds.** The released search for lambda can stop at a value that breaks the inequality it solves.
  Here the threshold is exact: the largest at which the calibration losses keep within their budget.
- **Growth rules.** `paper` is the paper's greedy rule (Algorithms 1 and 3, with the sum of Algorithm 1
  started at the point label, which the set already holds); `adaptive` and `frontier` add labels by what
  they save, on the same scores and the same halves. If the scores are accurate probabilities, at each risk
  that `frontier` attains no other intervals that contain the point label have a smaller mean size.
  `{RELEASED}` scores are not accurate probabilities.
{{slips}}"""


def page(
    reproductions: Sequence[Reproduction],
    pictures: Mapping[str, Sequence[tuple[str, str]]],
    command: str,
    notes: Mapping[str, str] | None = None,
    slips: str | None = None,
) -> str:
    """The whole page.

    Parameters
    ----------
    reproductions : sequence of Reproduction
        One section each.
    pictures : mapping
        For the key of each reproduction's scores, names and paths of its pictures.
    command : str
        The command that makes the page.
    notes : mapping, optional
        For the key of some scores, the path of a text on how they were made.
    slips : str, optional
        The path of the note that lists where the library differs from the paper.
    """
    first = reproductions[0]
    summary = TextTable(
        "",
        ("experiment", "scores", "rows", f"cells within {TOLERANCE}", "largest difference"),
        [
            (
                f"{r.experiment.title}, Table {r.experiment.table}",
                r.source,
                f"{len(r.scores.y):,}",
                f"{sum(c.agrees for c in r.comparisons)} of {len(r.comparisons)}",
                f"{max((c.difference for c in r.comparisons), key=abs):+z.4f}",
            )
            for r in reproductions
        ],
    )
    introduction = _INTRODUCTION.format(
        command=command,
        trials=first.trials,
        summary=summary.markdown(),
        slips=f"\n[Where we differ from the paper]({slips}) lists the differences and the reasons.\n"
        if slips
        else "",
    )
    sections = [
        "\n".join(_section(r, pictures.get(r.scores.key, ()), (notes or {}).get(r.scores.key)))
        for r in reproductions
    ]
    return "\n".join([introduction, *sections]) + "\n"


def _section(r: Reproduction, pictures: Sequence[tuple[str, str]], note: str | None) -> Iterator[str]:
    experiment, scores = r.experiment, r.scores
    yield f"## {experiment.title}: {r.source}\n"
    yield (
        f"{len(scores.y):,} rows, accuracy {scores.accuracy:.3f}, mean absolute error "
        f"{scores.mean_absolute_error:.3f} labels."
        + (f" [How the scores were made]({note})." if note else "")
        + "\n"
    )
    yield from _captioned(published_table(r))
    yield remarks.agreement(r) + "\n"
    yield from (f"- {sentence}" for sentence in remarks.differences(r))
    yield ""
    shown = dict(pictures)
    if "examples" in experiment.figures and "examples" not in shown:
        yield (
            f"Figure {experiment.figures['examples']}, photographs with their labels and intervals, is drawn "
            "where `--images` names them. No photograph is stored here.\n"
        )
    yield from _pictures(r, shown, ["data", "examples", "sizes", "risks"])
    yield "### Past the paper\n"
    for table in rules_tables(r):
        yield from _captioned(table)
    yield from (f"- {sentence}" for sentence in remarks.findings(r))
    yield ""
    yield from _captioned(centroid_table(r))
    yield from _pictures(r, shown, ["centroids"])
    yield "### Single classes\n"
    yield (
        "The paper leaves open how weights act on the coverage of single classes. "
        f"{remarks.class_spread(r)}\n"
    )
    yield from _captioned(weight_table(r))
    for table in class_tables(r):
        yield from _captioned(table)
    yield from _pictures(r, shown, ["classes"])


def _captioned(table: TextTable) -> Iterator[str]:
    yield f"{table.caption}:\n"
    yield table.markdown() + "\n"


def _pictures(r: Reproduction, shown: Mapping[str, str], names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if name in shown:
            number = r.experiment.figures.get(name)
            yield f"{f'Figure {number}: ' if number else ''}{_PICTURES[name]}.\n"
            yield f"![{_PICTURES[name]}]({shown[name]})\n"
