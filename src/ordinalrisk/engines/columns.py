"""Which columns of a file hold the scores and the label, and which classes they are of.

What the user names is taken. What a calibration was made with is found again by name, wherever it stands.
What is obvious is guessed, and said; anything else is an error that says what to name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from ordinalrisk.engines.formats import FileError
from ordinalrisk.engines.readers import Source
from ordinalrisk.score_columns import ScoreColumns

SCORE_PREFIXES = ("p", "proba", "prob", "probability", "probabilities", "score", "scores", "logit", "logits")
LABEL_NAMES = ("label", "y", "y_true", "truth", "true_label", "target", "grade", "rating", "outcome", "class")

Say = Callable[[str], None]
"""Takes a sentence about a guess."""


def chosen(
    source: Source,
    asked: tuple[str | None, str | None, bool | None],
    classes: Sequence[Any] | None,
    say: Say,
) -> tuple[ScoreColumns, list[Any]]:
    """The columns to calibrate with and the classes in order, from what is asked for and what is obvious.

    Where the names of the scores end in the classes, each class gets the column of its name.
    """
    scores, label, logits = asked
    columns = score_columns(source, scores, classes, say)
    of_label = label_column(source, label, columns, say)
    labels = class_labels(source, classes, columns, of_label, say)
    ordered = _in_order(columns, labels)
    if ordered != columns:
        say(f"Scores are taken in the order {_list(ordered)}, that of the classes.")
    return ScoreColumns(tuple(ordered), of_label, are_logits(ordered, logits, say)), labels


def score_columns(source: Source, asked: str | None, classes: Sequence[Any] | None, say: Say) -> list[str]:
    """The columns of the scores, in the order of the classes."""
    if asked is not None:
        columns = _named(source, asked)
    else:
        columns = _guessed_scores(source, classes)
        say(f"Scores are in the columns {_list(columns)}.")
    if len(columns) < 2:
        raise FileError(
            f"{source.name}: only column {columns[0]!r} was named; a column for each class is needed."
        )
    ordered = _in_order(columns, classes)
    if asked is not None and ordered != columns:
        say(f"Scores are taken in the order {_list(ordered)}.")
    return ordered


def label_column(source: Source, asked: str | None, scores: Sequence[str], say: Say) -> str:
    """The column of the true label."""
    if asked is not None:
        _require_columns(source, [asked], "--label")
        if pa.types.is_nested(kind := source.schema.field(asked).type):
            raise FileError(
                f"{source.name}: column {asked!r} holds {kind}, which is no label; choose another --label."
            )
        return asked
    found: list[str] = [
        name for name in source.schema.names if name.lower() in LABEL_NAMES and name not in set(scores)
    ]
    if len(found) != 1:
        raise FileError(
            f"{source.name}: can't tell which column holds the label (there are "
            f"{_list(source.schema.names)}); name it with --label."
        )
    say(f"The label is in the column {found[0]!r}.")
    return label_column(source, found[0], scores, say)


def are_logits(scores: Sequence[str], asked: bool | None, say: Say) -> bool:
    """Whether the scores are logits: if it was said so, or else if they are called so."""
    if asked is not None:
        return asked
    if all(name.lower().startswith("logit") for name in scores):
        say("The scores are taken for logits, as they are called so; --probabilities says otherwise.")
        return True
    return False


def found_again(
    source: Source,
    saved: ScoreColumns | None,
    classes: Sequence[Any],
    asked: tuple[str | None, str | None, bool | None],
    say: Say,
    *,
    with_label: bool,
) -> ScoreColumns:
    """The columns of a calibration in another file: by name, in whatever order they stand there.

    What is ``asked`` for (scores, label, whether they are logits) comes first, then what was ``saved``.
    """
    scores, label, logits = asked
    if scores is None and saved is not None:
        _require_columns(source, saved.scores, "--scores")
        columns = list(saved.scores)
    else:
        columns = score_columns(source, scores, classes, say)
    if len(columns) != len(classes):
        raise FileError(
            f"{source.name}: there are {len(columns)} columns of scores, {_list(columns)}, but the "
            f"calibration has {len(classes)} classes, {_list(classes)}; name a column for each with --scores."
        )
    if saved is not None:
        label, logits = label or saved.label, saved.logits if logits is None else logits
    of_label = label_column(source, label, columns, say) if with_label else label or ""
    return ScoreColumns(tuple(columns), of_label, are_logits(columns, logits, say))


def class_labels(
    source: Source, given: Sequence[Any] | None, scores: Sequence[str], label: str, say: Say
) -> list[Any]:
    """The classes in order: those given, an ordered dictionary's, else what the names of the scores say."""
    if given is not None:
        if len(given) != len(scores):
            raise FileError(
                f"{source.name}: there are {len(given)} classes, {_list(given)}, but {len(scores)} columns "
                f"of scores, {_list(scores)}; correct --classes or --scores."
            )
        return list(given)
    first = next(source.batches([label]), None)
    column = pa.array([]) if first is None else first.column(label)
    if pa.types.is_dictionary(column.type) and column.type.ordered:
        ordered: list[Any] = column.dictionary.to_pylist()
        if len(ordered) == len(scores):
            say(f"The classes are {_list(ordered)}, in this order.")
            return ordered
    seen = [value for value in column.unique().to_pylist() if not is_missing(value)]
    for classes in (_endings(scores), list(range(len(scores)))):
        known = position_of_label(classes)
        if classes and all(known(value) is not None for value in seen):
            _require_no_alphabet(source, classes)
            say(f"The classes are {_list(classes)}, in this order.")
            return classes
    unknown = next(value for value in seen if known(value) is None)
    raise FileError(
        f"{source.name}: the labels in column {label!r} (such as {unknown!r}) are not those that the columns "
        f"{_list(scores)} tell of; name all labels in order with --classes."
    )


def _require_no_alphabet(source: Source, classes: Sequence[Any]) -> None:
    """Columns of named classes that stand in the order of the alphabet tell nothing about the scale."""
    if len(classes) > 2 and isinstance(classes[0], str) and list(classes) == sorted(classes):
        raise FileError(
            f"{source.name}: the columns are in alphabetical order, {_list(classes)}, which need not be that "
            "of the scale; name all labels in order with --classes."
        )


def is_missing(label: Any) -> bool:
    """Whether a value says that there is no label."""
    return label is None or label == "" or label != label


def position_of_label(classes: Sequence[Any]) -> Callable[[Any], int | None]:
    """Where a value stands among the classes; None if it is none of them.

    Text and numbers that say the same are the same: ``"3.0"`` in a file is the class 3, and 0.5 is ``"0.5"``.
    """
    position: dict[Any, int] = {}
    for of in (_number, str, lambda label: label):  # what says it more exactly comes last, and counts
        position |= {of(label): k for k, label in enumerate(classes)}
    position.pop(None, None)

    def position_of(value: Any) -> int | None:
        if value is None:  # whose text may well be a class
            return None
        for said in (value, str(value), _number(value)):
            if said in position:
                return position[said]
        return None

    return position_of


def _number(label: Any) -> float | None:
    try:
        return float(label)
    except (TypeError, ValueError):
        return None


def _named(source: Source, asked: str) -> list[str]:
    names = source.schema.names
    columns: list[str] = []
    for part in filter(None, (part.strip() for part in asked.split(","))):
        found = [part] if part in names else [name for name in names if fnmatchcase(name, part)]
        if not found:
            raise FileError(
                f"{source.name}: there is no column {part!r} (there are {_list(names)}); correct --scores."
            )
        columns += found
    repeated = [name for i, name in enumerate(columns) if name in columns[:i]]
    if repeated or not columns:
        problem = f"names column {repeated[0]!r} more than once" if repeated else "names no column"
        raise ValueError(f"--scores {problem}.")
    return columns


def _guessed_scores(source: Source, classes: Sequence[Any] | None) -> list[str]:
    numbers = {field.name for field in source.schema if _is_number(field.type)}
    if classes is not None and {str(label) for label in classes} <= numbers:
        return [str(label) for label in classes]
    groups: dict[str, list[str]] = {}
    for name in source.schema.names:
        if found := re.fullmatch(r"([A-Za-z]+)[_ .:-]?(\d+)|([A-Za-z]+)[_ .:-](.+)", name):
            prefix = (found[1] or found[3]).lower()
            if prefix in SCORE_PREFIXES and (found[1] or name in numbers):  # p3 is a score, p_note may be
                groups.setdefault(prefix, []).append(name)
    families = [names for names in groups.values() if len(names) > 1]
    if len(families) != 1:
        raise FileError(
            f"{source.name}: can't tell which columns hold the scores (there are "
            f"{_list(source.schema.names)}); name them with --scores, such as --scores 'p*'."
        )
    return families[0]


def _in_order(columns: list[str], classes: Sequence[Any] | None) -> list[str]:
    """By the classes that the names end in, if they do; else by their numbers, if they have any."""
    endings = _endings(columns)
    if classes is not None and sorted(map(str, endings)) == sorted(map(str, classes)):
        by_class = {str(ending): name for ending, name in zip(endings, columns, strict=True)}
        return [by_class[str(label)] for label in classes]
    if endings and all(isinstance(ending, int) for ending in endings):
        return [name for _, name in sorted(zip(endings, columns, strict=True))]
    return columns


def _endings(columns: Sequence[str]) -> list[Any]:
    """What the names say after what they share; whole numbers, if all are."""
    shared = 0
    while all(len(name) > shared + 1 and name[shared] == columns[0][shared] for name in columns):
        shared += 1
    stem = columns[0][:shared]
    if all(name[shared:].isdigit() for name in columns):
        shared = len(stem.rstrip("0123456789"))
        return [int(name[shared:]) for name in columns]
    boundary = max((stem.rfind(mark) for mark in "_ .:-"), default=-1) + 1
    return [name[boundary:] for name in columns]


def _require_columns(source: Source, columns: Sequence[str], option: str) -> None:
    missing = [name for name in columns if name not in source.schema.names]
    if missing:
        raise FileError(
            f"{source.name}: there is no column {missing[0]!r} (there are {_list(source.schema.names)}); "
            f"name the right one with {option}."
        )


def _is_number(kind: pa.DataType) -> bool:
    """Or may be one: a column without values has no other type."""
    return bool(
        pa.types.is_floating(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    )


def _list(names: Sequence[Any]) -> str:
    shown = [str(name) for name in names]
    return ", ".join(shown if len(shown) <= 12 else [*shown[:10], "..", shown[-1]])
