"""Which columns of a file hold the scores, the label and what else rows have, and which classes there are.

What the user names is taken. What a calibration was made with is found again by name, wherever it stands.
What is obvious is guessed, and said; anything else is an error that says what to name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any, NamedTuple

import pyarrow as pa

from ordinalrisk.calibration.accumulate import Calibration
from ordinalrisk.files.formats import FileError
from ordinalrisk.files.readers import Source
from ordinalrisk.inputs.column_roles import ScoreColumns

SCORE_PREFIXES = ("p", "proba", "prob", "probability", "probabilities", "score", "scores", "logit", "logits")
LABEL_NAMES = ("label", "y", "y_true", "truth", "true_label", "target", "grade", "rating", "outcome", "class")
ROLES = {"group": "--group", "cluster": "--cluster-col", "weight": "--weight-col"}
"""What a column can hold beside scores and label, and the option that names it."""
LONGEST_NUMBER = 1000
"""Longer text is compared as text, even if all its characters are digits."""
LONGEST_SHOWN = 100
"""Characters of a name or a label in a message."""

Say = Callable[[str], None]
"""Takes a sentence about a guess."""


class Asked(NamedTuple):
    """What the user says of the columns; None where nothing is said."""

    scores: str | None = None
    label: str | None = None
    logits: bool | None = None
    rescale: bool = False
    group: str | None = None
    cluster: str | None = None
    weight: str | None = None


def chosen(
    source: Source,
    asked: Asked,
    classes: Sequence[Any] | None,
    say: Say,
) -> tuple[ScoreColumns, list[Any]]:
    """The columns to calibrate with and the classes in order, from what is asked for and what is obvious."""
    apart = _by_role(source, asked, {})
    columns, listed = _named_or_guessed(source, asked.scores, classes, [*apart.values()])
    of_label = label_column(source, asked.label, [*columns, *apart.values()], say)
    columns = _without_others(source, columns, of_label, apart, listed)
    labels = class_labels(source, classes, columns, of_label)
    ordered = _as_listed(columns, labels) if listed else _matched(source, columns, labels)
    if not listed or classes is None:
        say(f"The scores of the classes {listing(labels)} are in the columns {listing(ordered)}.")
    logits = False if asked.rescale else are_logits(ordered, asked.logits, say)
    return ScoreColumns(tuple(ordered), of_label, logits, asked.rescale, **apart), labels


def needed(calibration: Calibration, *, for_test: bool) -> list[str]:
    """What rows must have beside scores, by role: to be predicted, or to be tested too."""
    used = {
        "group": calibration.strata.groups is not None,
        "cluster": calibration.unit == "cluster" and for_test,
        "weight": calibration.shift == "covariates",
    }
    return [role for role, is_used in used.items() if is_used]


def _by_role(
    source: Source, asked: Asked, saved: Mapping[str, str | None], needs: Collection[str] = tuple(ROLES)
) -> dict[str, str]:
    """The columns that hold what rows have beside scores and label: as asked for, else as saved."""
    found: dict[str, str] = {}
    for role, option in ROLES.items():
        given = getattr(asked, role)
        if given is not None and role not in needs:
            raise ValueError(f"{option}: the calibration was made without {role}s; leave it out.")
        name = given or saved.get(role)
        if name is None or role not in needs:
            continue
        _require_columns(source, [name], option)
        kind = source.schema.field(name).type
        if role != "weight" and not _is_name(kind):
            raise FileError(
                f"{source.name}: column {name!r} holds {kind}, no names; choose another {option}."
            )
        if role == "weight" and not source.types_are_guessed and not is_number(kind):
            raise FileError(
                f"{source.name}: column {name!r} holds {kind}, not numbers; choose another {option}."
            )
        for other, taken in found.items():
            if taken == name:
                raise FileError(
                    f"{source.name}: column {name!r} can't be the {other} and the {role}; correct {option}."
                )
        found[role] = name
    return found


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
            f"{listing(source.schema.names)}); name it with --label."
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
    asked: Asked,
    say: Say,
    *,
    with_label: bool,
    needs: Collection[str] = (),
) -> ScoreColumns:
    """The columns of a calibration in another file: by name, in whatever order they stand there.

    What is ``asked`` for comes first, then what was ``saved``. ``needs`` are the roles of :data:`ROLES` that
    columns must be found for; see :func:`needed`.
    """
    scores, label, logits, rescale = asked[:4]
    apart = _by_role(source, asked, {} if saved is None else saved.to_dict(), needs)
    for role in needs:
        if role not in apart:
            raise ValueError(
                f"The calibration was made with {role}s, but from no file; name their column with "
                f"{ROLES[role]}."
            )
    if saved is not None:
        label = label or saved.label
        rescale = rescale or (saved.rescale and logits is None)
        logits = saved.logits if logits is None else logits
    if scores is None and saved is not None:
        _require_columns(source, saved.scores, "--scores")
        columns, listed = list(saved.scores), True
    else:
        columns, listed = _named_or_guessed(source, scores, classes, [*apart.values()])
    others = [*columns, *apart.values()]
    of_label = label_column(source, label, others, say) if with_label else label or ""
    columns = _without_others(source, columns, of_label, apart, listed)
    if len(columns) != len(classes):
        raise FileError(
            f"{source.name}: there are {len(columns)} columns of scores, {listing(columns)}, but the "
            f"calibration has {len(classes)} classes, {listing(classes)}; name one for each with --scores."
        )
    if listed:
        _as_listed(columns, classes)
    else:
        columns = _matched(source, columns, classes)
        say(f"The scores of the classes {listing(classes)} are in the columns {listing(columns)}.")
    logits = not rescale and are_logits(columns, logits, say)
    return ScoreColumns(tuple(columns), of_label, logits, rescale, **apart)


def class_labels(source: Source, given: Sequence[Any] | None, scores: Sequence[str], label: str) -> list[Any]:
    """The classes in order: those given, an ordered dictionary's, else what the names of the scores say."""
    first = next(source.batches([label]), None)
    column = pa.array([]) if first is None else first.column(label)
    ordered: list[Any] | None = None
    if pa.types.is_dictionary(column.type) and column.type.ordered:
        ordered = column.dictionary.to_pylist()
    if given is not None and ordered is not None and list(map(str, given)) != list(map(str, ordered)):
        raise FileError(
            f"{source.name}: column {label!r} has the order {listing(ordered)}, --classes {listing(given)}; "
            "give one of them."
        )
    if (known := given if given is not None else ordered) is not None:
        if len(known) != len(scores):
            raise FileError(
                f"{source.name}: there are {len(known)} classes, {listing(known)}, but {len(scores)} columns "
                f"of scores, {listing(scores)}; correct --classes or --scores."
            )
        return _saveable(source, label, known)
    return _classes_by_name(source, scores, label, column)


def _classes_by_name(source: Source, scores: Sequence[str], label: str, column: pa.Array) -> list[Any]:
    """What the names of the scores end in, or ``0 .. K-1`` if that says no numbers, if the labels fit."""
    endings, numbers = _endings(scores), list(range(len(scores)))
    numbered = all(isinstance(ending, int) for ending in endings)
    if not numbered and _alphabetical(endings):
        raise FileError(
            f"{source.name}: the columns are in alphabetical order, {listing(scores)}, which need not be "
            "that of the scale; name all labels in order with --classes."
        )
    for classes in [sorted(endings)] if numbered else [endings, numbers]:
        position = position_of_label(classes)
        unknown = [v for v in column.unique().to_pylist() if not is_missing(v) and position(v) is None]
        if not unknown:
            return classes
    row = next(i for i, value in enumerate(column.to_pylist()) if value == unknown[0])
    shown = _cut(repr(unknown[0]))
    raise FileError(
        f"{source.name}: row {row + 1}, column {label!r}: the label {shown} is none that the "
        f"columns {listing(scores)} tell of; correct it, or name all labels in order with --classes."
    )


def _saveable(source: Source, label: str, classes: Sequence[Any]) -> list[Any]:
    if not all(isinstance(value, str | int | float) for value in classes):
        raise FileError(
            f"{source.name}: the labels in column {label!r} are neither text nor numbers; make them text."
        )
    return list(classes)


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


def position_of_name(known: Sequence[Any]) -> Callable[[Any], int | None]:
    """Where a value stands among known names, as for labels; true and false may be spelled in any case."""
    position = position_of_label(known)
    truths = position_of_label([str(name).lower() for name in known])

    def position_of(value: Any) -> int | None:
        found, text = position(value), str(value).lower()
        return truths(text) if found is None and text in ("true", "false") else found

    return position_of


def _number(label: Any) -> Fraction | None:
    """The number that a label is or spells out, exactly; ``01`` is none."""
    text = str(label)
    if len(text) > LONGEST_NUMBER:
        return None
    return Fraction(text) if re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", text) else None


def matching(names: Sequence[str], asked: str) -> Iterator[tuple[str, list[str]]]:
    """Each part of ``asked``, which commas separate, with the columns that it names or matches."""
    known = set(names)
    for part in filter(None, (part.strip() for part in asked.split(","))):
        yield part, [part] if part in known else [name for name in names if fnmatchcase(name, part)]


def _named_or_guessed(
    source: Source, asked: str | None, classes: Sequence[Any] | None, apart: Collection[str]
) -> tuple[list[str], bool]:
    """The columns of the scores, and whether they were listed one by one: then their order is meant."""
    if asked is None:
        return _guessed_scores(source, classes, apart), False
    names, columns, listed = source.schema.names, [], True
    for part, found in matching(names, asked):
        if not found:
            raise FileError(
                f"{source.name}: there is no column {part!r} (there are {listing(names)}); correct --scores."
            )
        columns += found
        listed = listed and part == found[0]
    repeated = [name for name, times in Counter(columns).items() if times > 1]
    if repeated or len(columns) < 2:
        problem = (
            f"names column {repeated[0]!r} more than once"
            if repeated
            else "must name a column for each class"
        )
        raise ValueError(f"--scores {problem}.")
    return columns, listed


def _without_others(
    source: Source, columns: list[str], label: str, apart: Mapping[str, str], listed: bool
) -> list[str]:
    """The columns of the scores without those that hold something else, which may match a pattern too."""
    for role, name in apart.items():
        if name == label:
            raise FileError(
                f"{source.name}: column {name!r} can't be the label and the {role}; correct {ROLES[role]}."
            )
    others = {name: role for role, name in [("label", label), *apart.items()]}
    for name in columns:
        if name in others and listed:
            raise FileError(
                f"{source.name}: column {name!r} can't be a score and the {others[name]}; correct --scores."
            )
    return [name for name in columns if name not in others]


def _guessed_scores(source: Source, classes: Sequence[Any] | None, apart: Collection[str]) -> list[str]:
    numbers = {field.name for field in source.schema if is_number(field.type)}
    wanted = [str(label) for label in classes or ()]
    missing = [name for name in wanted if name not in numbers]
    if wanted and not missing:
        return wanted
    groups: dict[str, list[str]] = {}
    for name in source.schema.names:
        if name in apart:
            continue
        if found := re.fullmatch(r"([A-Za-z]+)[_ .:-]?(\d+)|([A-Za-z]+)[_ .:-](.+)", name):
            prefix = (found[1] or found[3]).lower()
            if prefix in SCORE_PREFIXES:
                groups.setdefault(prefix, []).append(name)
    families = [names for names in groups.values() if len(names) > 1]
    if len(families) != 1 or 0 < sum(name[-1].isdigit() for name in families[0]) < len(families[0]):
        remedy = (
            "name them with --scores, such as --scores 'p*', or --classes if they are called like the labels"
        )
        if 0 < len(missing) < len(wanted):
            remedy = (
                f"none is called like class {missing[0]!r}: correct --classes, or name them with --scores"
            )
        raise FileError(
            f"{source.name}: can't tell which columns hold the scores (there are "
            f"{listing(source.schema.names)}); {remedy}."
        )
    text = [name for name in families[0] if name not in numbers]
    if text and not text[0][-1].isdigit():  # p3 is a score, and its text is found later; p_note may be one
        raise FileError(
            f"{source.name}: column {text[0]!r} is called like a score, but holds text; correct it, or name "
            "the scores with --scores."
        )
    return families[0]


def _matched(source: Source, columns: Sequence[str], classes: Sequence[Any]) -> list[str]:
    """The column of each class, in the order of the classes, by what the names end in or hold."""
    endings = _endings(columns)
    labels = [str(label).casefold() for label in classes]
    for said in ([str(ending).casefold() for ending in endings], [name.casefold() for name in columns]):
        times, place = Counter(said), {text: k for k, text in enumerate(said)}
        if all(times[label] == 1 for label in labels):
            return [columns[place[label]] for label in labels]
    if all(isinstance(ending, int) for ending in endings):
        return [name for _, name in sorted(zip(endings, columns, strict=True))]
    if list(classes) == list(range(len(columns))) and not _alphabetical(endings):
        return list(columns)  # the labels are positions
    raise FileError(
        f"{source.name}: can't tell which of the columns {listing(columns)} is of which class "
        f"({listing(classes)}); list them with --scores in the order of the classes."
    )


def _as_listed(columns: list[str], classes: Sequence[Any]) -> list[str]:
    """The columns in the order that the user lists them in, unless their names contradict it."""
    endings = list(map(str, _endings(columns)))
    if endings != list(map(str, classes)) and sorted(endings) == sorted(map(str, classes)):
        raise ValueError(
            f"--scores lists {listing(columns)}, but the classes are {listing(classes)}; list them in "
            "that order."
        )
    return columns


def _alphabetical(endings: Sequence[Any]) -> bool:
    """Whether the order of names says nothing about a scale."""
    return len(endings) > 2 and list(endings) == sorted(endings)


def _endings(columns: Sequence[str]) -> list[Any]:
    """What the names say after what they share; whole numbers, if all are."""
    before = [name.rstrip("0123456789") for name in columns]
    for starts in (before, [start.removesuffix("-") for start in before]):  # a dash before all is no sign
        digits = [name[len(start) :] for start, name in zip(starts, columns, strict=True)]
        if len(set(starts)) == 1 and all(
            text[-1:].isdigit() and len(text) <= LONGEST_NUMBER for text in digits
        ):
            return [int(text) for text in digits]
    shared = 0
    while all(len(name) > shared + 1 and name[shared] == columns[0][shared] for name in columns):
        shared += 1
    boundary = max((columns[0][:shared].rfind(mark) for mark in "_ .:-"), default=-1) + 1
    return [name[boundary:] for name in columns]


def _require_columns(source: Source, columns: Sequence[str], option: str) -> None:
    names = set(source.schema.names)
    missing = [name for name in columns if name not in names]
    if missing:
        raise FileError(
            f"{source.name}: there is no column {missing[0]!r} (there are {listing(source.schema.names)}); "
            f"name the right one with {option}."
        )


def _is_name(kind: pa.DataType) -> bool:
    """Whether values can stand for groups or clusters."""
    if pa.types.is_dictionary(kind):
        return _is_name(kind.value_type)
    others = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_boolean,
        pa.types.is_date,
        pa.types.is_timestamp,
        pa.types.is_time,
    )
    return is_number(kind) or any(of(kind) for of in others)


def is_number(kind: pa.DataType) -> bool:
    """Or may be one: a column without values has no other type."""
    return bool(
        pa.types.is_floating(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    )


def listing(names: Sequence[Any]) -> str:
    """Names for a message: the first and the last of many; quoted where spaces would not be seen."""
    some = names if len(names) <= 12 else [*names[:10], "..", names[-1]]
    shown = [repr(name) if isinstance(name, str) and name != name.strip() else str(name) for name in some]
    return ", ".join(map(_cut, shown))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}.."
