"""A model's scores on rows that it was not trained on: in memory, and as a CSV file.

Two layouts are read. Ours has a header ``name,label,logit_0,..,logit_{K-1}``. The paper's authors released
theirs with a header of numbers, ``,0,1,2,3,..``: an index, a name, the label, the predicted label, then the
logits. Either may be compressed (``.csv.gz``).
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.files.atomic import replacing
from ordinalrisk.probabilities import min_shift, softmax

NORMALISATIONS = {"min_shift": min_shift, "softmax": softmax}
_FEWEST = 2  # classes
_SHOWN = 6  # columns of a header in a message


@dataclass(frozen=True, eq=False)
class Scores:
    """Logits and labels of rows that a model was not trained on.

    Attributes
    ----------
    names : sequence of str
        What each row is called, such as the name of its image.
    y : array of int
        The labels ``0 .. K-1``.
    logits : array of shape (n, K)
        The model's outputs, from which a normalisation makes probabilities.
    key : str
        A short name for files that are made from them.
    source : str
        Where they come from, in words.
    authors_layout, trained_here : bool
        Whether they came in the layout of the paper's authors, or from a model that was trained just now.
    """

    names: Sequence[str]
    y: NDArray[np.int64]
    logits: NDArray[np.float64]
    key: str
    source: str
    authors_layout: bool = False
    trained_here: bool = False

    def proba(self, normalisation: str = "softmax") -> NDArray[np.float64]:
        """Class probabilities: ``"softmax"``, or ``"min_shift"`` as in the paper's released code."""
        return NORMALISATIONS[normalisation](self.logits)

    @property
    def accuracy(self) -> float:
        """The share of rows whose largest logit is at the label."""
        return float(np.mean(self.logits.argmax(axis=1) == self.y))

    @property
    def mean_absolute_error(self) -> float:
        """The mean number of labels between the truth and the largest logit."""
        return float(np.abs(self.logits.argmax(axis=1) - self.y).mean())


def write_scores(scores: Scores, path: str | PathLike[str]) -> None:
    """Write a file in our layout; compressed if the name ends in ``.gz``.

    Logits are written with all their digits, so that :func:`read_scores` gives the same numbers back.
    """
    target = Path(path)
    header = _our_header(scores.logits.shape[1])
    rows = (
        [name, int(label), *logits]
        for name, label, logits in zip(scores.names, scores.y, scores.logits.tolist(), strict=True)
    )
    with replacing(target) as temporary, temporary.open("wb") as raw:
        if target.suffix == ".gz":  # no name and no time inside, so that equal scores are equal files
            with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as compressed:
                compressed.write(_csv([header, *rows]))
        else:
            raw.write(_csv([header, *rows]))


def read_scores(path: str | PathLike[str]) -> Scores:
    """Read a file of scores in either layout.

    Raises
    ------
    ValueError
        With the file, the line and what is wrong there.
    """
    file = Path(path)
    if file.is_dir():
        raise ValueError(f"{file} is a folder; scores are read from a CSV file.")
    try:
        content = file.read_bytes()
        text = (gzip.decompress(content) if file.suffix == ".gz" else content).decode("utf-8-sig")
        rows = list(csv.reader(StringIO(text, newline="")))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        if isinstance(error, FileNotFoundError):
            raise ValueError(f"There is no file of scores at {file}.") from None
        raise ValueError(f"{file.name} can't be read as CSV ({error}).") from None
    if not rows:
        raise ValueError(f"{file.name} is empty.")
    header, body = rows[0], rows[1:]
    if header == _our_header(len(header) - 2):
        name, label, first_logit = 0, 1, 2
    elif header == _authors_header(len(header) - 4):
        name, label, first_logit = 1, 2, 4
    else:
        raise ValueError(
            f"{file.name} has an unknown layout: its header is {_shortened(header)!r}; expected "
            f"{_shortened(_our_header(9))!r} or the paper authors' {_shortened(_authors_header(9))!r}."
        )
    if not body:
        raise ValueError(f"{file.name} has a header but no rows.")
    n_classes = len(header) - first_logit
    y, logits = np.empty(len(body), np.int64), np.empty((len(body), n_classes))
    for i, row in enumerate(body):
        if len(row) != len(header):
            _wrong(file, i, f"has {len(row)} columns, the header {len(header)}")
        y[i] = _label(row[label], n_classes, file, i)
        try:
            logits[i] = [float(value) for value in row[first_logit:]]
        except ValueError as error:
            _wrong(file, i, f"holds something that is no number ({error})")
    if not np.isfinite(logits).all():
        i, k = np.argwhere(~np.isfinite(logits))[0].tolist()
        _wrong(file, i, f"has the logit {logits[i, k]} for class {k}; logits must be finite")
    return Scores(
        [row[name] for row in body],
        y,
        logits,
        re.sub(r"[^A-Za-z0-9.]+", "-", file.name.removesuffix(".gz").removesuffix(".csv")),
        f"scores in {file.name}",
        authors_layout=first_logit == 4,
    )


def _our_header(n_classes: int) -> list[str]:
    return ["name", "label", *(f"logit_{k}" for k in range(max(n_classes, _FEWEST)))]


def _authors_header(n_classes: int) -> list[str]:
    return ["", *(str(k) for k in range(3 + max(n_classes, _FEWEST)))]


def _shortened(header: Sequence[str]) -> str:
    return ",".join(header if len(header) <= _SHOWN else [*header[:_SHOWN], "..."])


def _label(text: str, n_classes: int, file: Path, i: int) -> int:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if value not in range(n_classes):
        _wrong(file, i, f"has the label {text!r}; with {n_classes} logits labels are 0 .. {n_classes - 1}")
    return int(value)


def _wrong(file: Path, i: int, what: str) -> NoReturn:
    raise ValueError(f"Line {i + 2} of {file.name} {what}.")


def _csv(rows: Iterable[Sequence[object]]) -> bytes:
    text = StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
