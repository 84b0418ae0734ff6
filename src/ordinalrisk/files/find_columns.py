"""Find the columns of a file with the scores, the label and the rest, and the classes.

Columns that the user names are used. The columns of a calibration are found by name, in any order. Obvious
columns are inferred, with a note. Otherwise an error says what to name. Messages call parameters by their
Python names, in backticks; the command line puts its options in their place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import pyarrow as pa

from ordinalrisk.files.formats import FileError
from ordinalrisk.files.label_names import (
    LONGEST_NUMBER,
    is_blank,
    listing,
    position_of_label,
    shortened,
)
from ordinalrisk.files.readers import Source
from ordinalrisk.inputs.column_roles import ScoreColumns

SCORE_PREFIXES = ("p", "proba", "prob", "probability", "probabilities", "score", "scores", "logit", "logits")
LABEL_NAMES = ("label", "y", "y_true", "truth", "true_label", "target", "grade", "rating", "outcome", "class")
ROLES = ("group", "cluster", "weight")
"""The roles of columns besides the scores and the label."""
_NAMES_HAVE_TYPES = (
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_boolean),
    *(pa.types.is_date, pa.types.is_timestamp, pa.types.is_time),
)

Note = Callable[[str], None]
"""A function that takes a sentence about a guess."""


class AskedColumns(NamedTuple):
    """The columns that the user names; None for those not named."""

    scores: str | Sequence[str] | None = None
    label: str | None = None
    logits: bool | None = None
    rescale: bool = False
    group: str | None = None
    cluster: str | None = None
    weight: str | None = None


class _FoundScores(NamedTuple):
    """Columns of scores, and whether the user listed them one by one: then their order counts."""

    names: list[str]
    listed: bool


class ColumnFinder:
    """Finds columns in a file, and notes each guess."""

    def __init__(self, source: Source, asked: AskedColumns, note: Note) -> None:
        self._source, self._asked, self._note = source, asked, note
        self._names: list[str] = source.schema.names

    def to_calibrate(
        self, classes: Sequence[Any] | None, *, maps_scores: bool = False
    ) -> tuple[ScoreColumns, list[Any]]:
        """Return the columns to calibrate with, and the classes in order.

        If a map makes probabilities of scores, there can be another number of scores than of classes.
        """
        roles = self._roles({}, ROLES)
        scores = self._scores(classes, roles)
        label = self._label(self._asked.label, [*scores.names, *roles.values()])
        columns = self._without_others(scores, label, roles)
        if maps_scores and classes is not None and len(columns) != len(classes):
            logits = not self._asked.rescale and self._are_logits(columns, self._asked.logits)
            self._note(f"The scores are in the columns {listing(columns)}.")
            return ScoreColumns(tuple(columns), label, logits, self._asked.rescale, **roles), [*classes]
        labels = self._classes(classes, columns, label)
        ordered = _in_class_order(columns, labels) if scores.listed else self._matched(columns, labels)
        if not scores.listed or classes is None:
            self._note_scores(labels, ordered)
        logits = not self._asked.rescale and self._are_logits(ordered, self._asked.logits)
        return ScoreColumns(tuple(ordered), label, logits, self._asked.rescale, **roles), labels

    def as_calibrated(
        self,
        saved: ScoreColumns | None,
        classes: Sequence[Any],
        *,
        with_label: bool,
        needs: Collection[str] = (),
        n_scores: int | None = None,
    ) -> ScoreColumns:
        """Return the columns that the user names, else those of the calibration.

        There are ``n_scores`` columns of scores if a map makes probabilities of them, else one for each
        class. The :data:`ROLES` in ``needs`` must have columns.
        """
        asked = self._asked
        roles = self._roles({} if saved is None else saved.to_dict(), needs)
        if missing := [role for role in needs if role not in roles]:
            made = " and ".join(f"{role}s" for role in missing)
            options = " and ".join(f"`{role}`" for role in missing)
            too = ", and that of the label with `label`" if with_label and not self._has_label(saved) else ""
            raise ValueError(
                f"The calibration was made with {made}, but not from a file; name their "
                f"column{'s' * (len(missing) > 1)} with {options}{too}."
            )
        label, logits, rescale = asked.label, asked.logits, asked.rescale
        if saved is not None:
            label = label or saved.label
            rescale = rescale or (saved.rescale and logits is None)
            logits = saved.logits if logits is None else logits
        if asked.scores is None and saved is not None:
            self._require(saved.scores, "scores")
            scores = _FoundScores(list(saved.scores), True)
        else:
            scores = self._scores(classes, roles)
        label = self._label(label, [*scores.names, *roles.values()]) if with_label else label or ""
        columns = self._without_others(scores, label, roles)
        if len(columns) != (n_scores or len(classes)):
            has = f"{len(classes)} classes, {listing(classes)}" if not n_scores else f"{n_scores} scores"
            raise self._error(
                f"there are {len(columns)} columns of scores, {listing(columns)}, but the calibration has "
                f"{has}; name one for each with `scores`."
            )
        if n_scores not in (None, len(classes)):
            if not scores.listed:
                self._note(f"The scores are in the columns {listing(columns)}.")
        elif scores.listed:
            _in_class_order(columns, classes)
        else:
            columns = self._matched(columns, classes)
            self._note_scores(classes, columns)
        logits = not rescale and self._are_logits(columns, logits)
        return ScoreColumns(tuple(columns), label, logits, rescale, **roles)

    def groups(self, name: str) -> str:
        """Return a column of groups, if there is one of that name."""
        self._require([name], "group")
        self._require_kind(name, "group")
        return name

    def kept(self, asked: str | Sequence[str] | None, scores: Sequence[str]) -> list[str]:
        """Return the columns that pass through: those asked for, or all but the scores."""
        if asked is None:
            others = set(scores)
            return [name for name in self._names if name not in others]
        matches = self._matching(asked, "keep")
        return list(dict.fromkeys(name for _, names in matches for name in names))

    def _error(self, problem: str) -> FileError:
        return FileError(f"{self._source.name}: {problem}")

    def _note_scores(self, classes: Sequence[Any], columns: Sequence[str]) -> None:
        self._note(f"The scores of the classes {listing(classes)} are in the columns {listing(columns)}.")

    def _roles(self, saved: Mapping[str, str | None], needs: Collection[str]) -> dict[str, str]:
        """Find the columns of groups, clusters and weights: as asked for, else as saved."""
        columns: dict[str, str] = {}
        for role in ROLES:
            asked = getattr(self._asked, role)
            if asked is not None and role not in needs:
                raise ValueError(f"`{role}`: the calibration was made without {role}s; leave it out.")
            name = asked or saved.get(role)
            if name is None or role not in needs:
                continue
            self._require([name], role)
            self._require_kind(name, role)
            for other, taken in columns.items():
                if taken == name:
                    raise self._error(
                        f"column {name!r} can't be the {other} and the {role}; correct `{role}`."
                    )
            columns[role] = name
        return columns

    def _require_kind(self, name: str, role: str) -> None:
        kind = self._source.schema.field(name).type
        if role == "weight":
            is_right, content = self._source.types_are_guessed or is_number(kind), "numbers"
        else:
            is_right, content = _can_name(kind), "names"
        if not is_right:
            raise self._error(f"column {name!r} holds {kind}, not {content}; choose another `{role}`.")

    def _label(self, asked: str | None, others: Collection[str]) -> str:
        if asked is None:
            named = self._like_labels(others)
            if len(named) != 1:
                raise self._error(
                    f"can't tell which column holds the label (there are {listing(self._names)}); name it "
                    "with `label`."
                )
            asked = named[0]
            self._note(f"The label is in the column {asked!r}.")
        self._require([asked], "label")
        if pa.types.is_nested(kind := self._source.schema.field(asked).type):
            raise self._error(f"column {asked!r} holds {kind}, not labels; choose another `label`.")
        return asked

    def _like_labels(self, others: Collection[str]) -> list[str]:
        return [name for name in self._names if name.lower() in LABEL_NAMES and name not in others]

    def _has_label(self, saved: ScoreColumns | None) -> bool:
        """Return whether the column of the label is named, or can be guessed."""
        return self._asked.label is not None or saved is not None or len(self._like_labels(())) == 1

    def _are_logits(self, scores: Sequence[str], asked: bool | None) -> bool:
        if asked is None and all(name.lower().startswith("logit") for name in scores):
            self._note("The scores are read as logits, by their names; if they are not, add `logits=False`.")
            return True
        return bool(asked)

    def _scores(self, classes: Sequence[Any] | None, roles: Mapping[str, str]) -> _FoundScores:
        if self._asked.scores is None:
            return _FoundScores(self._guessed_scores(classes, roles.values()), False)
        matches = [*self._matching(self._asked.scores, "scores")]
        columns = [name for _, names in matches for name in names]
        repeated = [name for name, times in Counter(columns).items() if times > 1]
        if repeated:
            raise ValueError(f"`scores` names column {repeated[0]!r} more than once.")
        if len(columns) < 2:
            raise ValueError("`scores` must name a column for each class.")
        return _FoundScores(columns, all(part == names[0] for part, names in matches))

    def _matching(self, asked: str | Sequence[str], parameter: str) -> Iterator[tuple[str, list[str]]]:
        """Yield each name or pattern with the columns that it matches; text is split at commas."""
        known = set(self._names)
        for part in asked.split(",") if isinstance(asked, str) else asked:
            if not (part := part.strip()):
                continue
            names = [part] if part in known else [name for name in self._names if fnmatchcase(name, part)]
            if not names:
                raise self._error(
                    f"there is no column {part!r} (there are {listing(self._names)}); correct `{parameter}`."
                )
            yield part, names

    def _without_others(self, scores: _FoundScores, label: str, roles: Mapping[str, str]) -> list[str]:
        """Leave out columns with another role, which may match a pattern of scores too."""
        others = {label: "label"}
        for role, name in roles.items():
            if name == label:
                raise self._error(f"column {name!r} can't be the label and the {role}; correct `{role}`.")
            others[name] = role
        for name in scores.names if scores.listed else ():
            if name in others:
                raise self._error(
                    f"column {name!r} can't be a score and the {others[name]}; correct `scores`."
                )
        return [name for name in scores.names if name not in others]

    def _guessed_scores(self, classes: Sequence[Any] | None, others: Collection[str]) -> list[str]:
        numbers = {field.name for field in self._source.schema if is_number(field.type)}
        wanted = [str(label) for label in classes or ()]
        missing = [name for name in wanted if name not in numbers]
        if wanted and not missing:
            return wanted
        free = [name for name in self._names if name in numbers and name not in others]
        if wanted and (spelled := _named_like(wanted, free)):
            return spelled
        families: dict[str, list[str]] = {}
        for name in self._names:
            match = re.fullmatch(r"([A-Za-z]+)[_ .:-]?(\d+)|([A-Za-z]+)[_ .:-](.+)", name)
            prefix = (match[1] or match[3]).lower() if match else ""
            if prefix in SCORE_PREFIXES and name not in others:
                families.setdefault(prefix, []).append(name)
        large = [names for names in families.values() if len(names) > 1]
        columns = large[0] if len(large) == 1 else []
        if not large and not wanted:
            columns = _numbered_columns(free)
        if not columns or 0 < sum(name[-1].isdigit() for name in columns) < len(columns):
            remedy = "name them with `scores`, such as `scores='p*'`, or `classes` if named like labels"
            if 0 < len(missing) < len(wanted):
                remedy = (
                    f"none is named like class {missing[0]!r}: correct `classes`, or name them with `scores`"
                )
            raise self._error(
                f"can't tell which columns hold the scores (there are {listing(self._names)}); {remedy}."
            )
        text = [name for name in columns if name not in numbers]
        if text and not text[0][-1].isdigit():  # p3 is a score, and its text is found later
            raise self._error(
                f"column {text[0]!r} is named like a score, but holds text; correct it, or name the scores "
                "with `scores`."
            )
        return columns

    def _classes(self, asked: Sequence[Any] | None, scores: Sequence[str], label: str) -> list[Any]:
        """Return the classes in order: as asked for, of an ordered dictionary, or in the names of scores."""
        first = next(self._source.batches([label]), None)
        column = pa.array([]) if first is None else first.column(label)
        ordered: list[Any] | None = None
        if pa.types.is_dictionary(column.type) and column.type.ordered:
            ordered = column.dictionary.to_pylist()
        if asked is not None and ordered is not None and list(map(str, asked)) != list(map(str, ordered)):
            raise self._error(
                f"column {label!r} has the order {listing(ordered)}, `classes` {listing(asked)}; give one of "
                "them."
            )
        known = ordered if asked is None else asked
        if known is None:
            return self._classes_by_name(scores, label, column)
        if len(known) != len(scores):
            raise self._error(
                f"there are {len(known)} classes, {listing(known)}, but {len(scores)} columns of scores, "
                f"{listing(scores)}; correct `classes` or `scores`."
            )
        if not all(isinstance(value, str | int | float) for value in known):
            raise self._error(f"the labels in column {label!r} are neither text nor numbers; make them text.")
        return list(known)

    def _classes_by_name(self, scores: Sequence[str], label: str, column: pa.Array) -> list[Any]:
        """Take the endings of the names of the scores, or ``0 .. K-1``: whichever fits the labels."""
        endings, numbers = _endings(scores), list(range(len(scores)))
        numbered = all(isinstance(ending, int) for ending in endings)
        if not numbered and _are_alphabetical(endings):
            raise self._error(
                f"the columns are in alphabetical order, {listing(scores)}, which need not be the order of "
                "the classes; name all labels in order with `classes`."
            )
        for classes in [sorted(endings)] if numbered else [endings, numbers]:
            position = position_of_label(classes)
            found = [value for value in column.unique().to_pylist() if not is_blank(value)]
            unknown = [value for value in found if position(value) is None]
            if not unknown:
                return classes
            if not numbered and (alike := _named_like(unknown, endings)):
                spelled = dict(zip(alike, unknown, strict=True))  # "very poor" where a column has p_very_poor
                return [spelled.get(name, name) for name in endings]
        row = next(i for i, value in enumerate(column.to_pylist()) if value == unknown[0])
        raise self._error(
            f"row {row + 1}, column {label!r}: none of the columns {listing(scores)} matches the label "
            f"{shortened(repr(unknown[0]))}; correct it, or name all labels in order with `classes`."
        )

    def _matched(self, columns: Sequence[str], classes: Sequence[Any]) -> list[str]:
        """Sort the columns into the order of the classes, by the endings of their names or by their names."""
        endings = _endings(columns)
        labels = [str(label).casefold() for label in classes]
        for names in ([str(ending).casefold() for ending in endings], [name.casefold() for name in columns]):
            times, place = Counter(names), {name: k for k, name in enumerate(names)}
            if all(times[label] == 1 for label in labels):
                return [columns[place[label]] for label in labels]
        shorter = [_without_prefix(name) for name in columns]
        for spellings in ([str(ending) for ending in endings], [*columns], shorter):
            if spelled := _named_like(labels, spellings):
                return [columns[spellings.index(name)] for name in spelled]
        if all(isinstance(ending, int) for ending in endings):
            return [name for _, name in sorted(zip(endings, columns, strict=True))]
        if list(classes) == list(range(len(columns))) and not _are_alphabetical(endings):
            return list(columns)  # the labels are positions
        raise self._error(
            f"can't tell which of the columns {listing(columns)} belongs to which class "
            f"({listing(classes)}); list them with `scores` in the order of the classes."
        )

    def _require(self, columns: Sequence[str], parameter: str) -> None:
        known = set(self._names)
        if missing := [name for name in columns if name not in known]:
            raise self._error(
                f"there is no column {missing[0]!r} (there are {listing(self._names)}); name the right one "
                f"with `{parameter}`."
            )


def _named_like(labels: Sequence[Any], names: Sequence[Any]) -> list[Any]:
    """Return the name of each label if spaces, dashes and case don't count; none if that leaves a choice.

    >>> _named_like(["very poor", "Poor"], ["poor", "very_poor", "id"])
    ['very_poor', 'poor']
    """
    plain = [_plain_name(name) for name in names]
    times, wanted = Counter(plain), [_plain_name(label) for label in labels]
    if len(set(wanted)) < len(wanted) or any(not name or times[name] != 1 for name in wanted):
        return []
    return [names[plain.index(name)] for name in wanted]


def _plain_name(name: Any) -> str:
    return re.sub(r"[\W_]+", "_", str(name).casefold()).strip("_")


def _without_prefix(name: str) -> str:
    """Leave out the first word of a name if it says that the column holds scores."""
    first, _, rest = _plain_name(name).partition("_")
    return rest if first in SCORE_PREFIXES else name


def _numbered_columns(names: Sequence[str]) -> list[str]:
    """Return the columns that are named 1, 2, .. or 0, 1, .. without a gap, if no other name is a number."""
    numbered = {int(name): name for name in names if re.fullmatch("[0-9]{1,4}", name)}
    order = sorted(numbered)
    if len(order) < 2 or order[0] > 1 or order != [*range(order[0], order[0] + len(order))]:
        return []
    return [numbered[number] for number in order]


def _in_class_order(columns: list[str], classes: Sequence[Any]) -> list[str]:
    """Return the columns as the user listed them, unless their names contradict that order."""
    endings, labels = list(map(str, _endings(columns))), list(map(str, classes))
    if endings != labels and sorted(endings) == sorted(labels):
        raise ValueError(
            f"`scores` lists {listing(columns)}, but the classes are {listing(classes)}; list them in that "
            "order."
        )
    return columns


def _are_alphabetical(endings: Sequence[Any]) -> bool:
    """Return whether the order of names may come from sorting them, not from a scale."""
    return len(endings) > 2 and list(endings) == sorted(endings)


def _endings(columns: Sequence[str]) -> list[Any]:
    """Return what follows the shared beginning of the names; as whole numbers, if all are."""
    before = [name.rstrip("0123456789") for name in columns]
    for starts in (
        before,
        [start.removesuffix("-") for start in before],
    ):  # not a minus sign if in all
        digits = [name[len(start) :] for start, name in zip(starts, columns, strict=True)]
        are_numbers = all(text[-1:].isdigit() and len(text) <= LONGEST_NUMBER for text in digits)
        if len(set(starts)) == 1 and are_numbers:
            return [int(text) for text in digits]
    shared = 0
    while all(len(name) > shared + 1 and name[shared] == columns[0][shared] for name in columns):
        shared += 1
    boundary = max((columns[0][:shared].rfind(mark) for mark in "_ .:-"), default=-1) + 1
    return [name[boundary:] for name in columns]


def _can_name(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _can_name(kind.value_type)
    return is_number(kind) or any(is_kind(kind) for is_kind in _NAMES_HAVE_TYPES)


def is_number(kind: pa.DataType) -> bool:
    """Return whether values are numbers; a column without values has no type, and counts as numbers."""
    of_numbers = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal, pa.types.is_null)
    return any(is_kind(kind) for is_kind in of_numbers)
