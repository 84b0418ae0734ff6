"""Summaries of watched files: rows that were watched before, and rows of clusters until all are read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.fingerprint import Fingerprint, row_digests
from ordinalrisk.inputs.batch import Batch, Summary
from ordinalrisk.prediction.interval_set import IntervalSet
from ordinalrisk.saving.run_documents import WatchedFile

_FEWEST, _DIFFERENT = 20, 10
"""Fewer rows, or fewer different ones, can be the same by chance."""


class Repeated(NamedTuple):
    """Rows of a file that an earlier file had too."""

    n_rows: int
    whole: bool  # whether these are all rows of the file
    in_order: bool = True


class FileFingerprints(Summary):
    """The fingerprints of files, compared with those of earlier files.

    A file is known again by its rows in the same order, by its rows in any order, or by its first rows.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.linspace(0, 1, 60)
    >>> january = FileFingerprints([])
    >>> january.add(Batch(np.column_stack([scores, 1 - scores])[:30]))
    >>> until_february = FileFingerprints(january.files)
    >>> until_february.add(Batch(np.column_stack([scores, 1 - scores])))
    >>> until_february.repeated
    {0: Repeated(n_rows=30, whole=False, in_order=True)}
    """

    def __init__(self, known: Iterable[WatchedFile]) -> None:
        self._known = [*known]
        self._lengths = sorted({file.n_rows for file in self._known})
        self._parts: dict[int, _RowsOfFile | _FileDigests] = {}

    def add(self, batch: Batch) -> None:
        rows = self._parts.setdefault(batch.part, _RowsOfFile())
        if isinstance(rows, _FileDigests):
            raise ValueError(f"Part {batch.part} is finished; its fingerprint can't take in more rows.")
        labels = np.zeros(len(batch), np.int64) if batch.labels is None else batch.labels
        rows.add(batch.proba, labels, self._lengths)

    def merge(self, other: FileFingerprints) -> FileFingerprints:
        """Return the fingerprints of the files of both, which have no file in common."""
        if common := self._parts.keys() & other._parts.keys():
            raise ValueError(f"Both have rows of part {min(common)}; a part is read by one summary.")
        both = copy(self)
        both._parts = {**self._finished, **other._finished}
        return both

    @property
    def _finished(self) -> dict[int, _FileDigests]:
        return {
            part: rows if isinstance(rows, _FileDigests) else rows.finished()
            for part, rows in sorted(self._parts.items())
        }

    @property
    def files(self) -> list[WatchedFile]:
        """The files that were read, in order."""
        return [rows.file for rows in self._finished.values()]

    @property
    def repeated(self) -> dict[int, Repeated]:
        """The rows of each file that an earlier one had too; of several such files, the most rows."""
        found = {}
        in_order = {digest for file in self._known for digest in (file.blake3, *file.starts)}
        in_any_order = {file.in_any_order for file in self._known} - {None}
        for part, rows in self._finished.items():
            file = rows.file
            known_starts = [n_rows for n_rows, digest in rows.starts.items() if digest in in_order]
            if file.blake3 in in_order or file.n_rows in known_starts:
                found[part] = Repeated(file.n_rows, whole=True)
            elif file.in_any_order in in_any_order:
                found[part] = Repeated(file.n_rows, whole=True, in_order=False)
            elif known_starts:
                found[part] = Repeated(max(known_starts), whole=False)
            in_order |= {file.blake3, *file.starts}
            in_any_order |= {file.in_any_order} - {None}
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Pickle digests in place of hashers, which can't be pickled."""
        return self.__dict__ | {"_parts": self._finished}


class _FileDigests(NamedTuple):
    """The fingerprints of a file, and of as many of its first rows as an earlier file may have."""

    file: WatchedFile
    starts: dict[int, str]


class _RowsOfFile:
    """The fingerprints of a file that is being read."""

    def __init__(self) -> None:
        self._n_rows, self._rows = 0, Fingerprint()
        self._sum = 0  # of the digests of rows, so that their order does not matter
        self._different: set[bytes] = set()
        self._doubling: list[str] = []
        self._starts: dict[int, str] = {}

    def add(self, proba: NDArray[Any], labels: NDArray[np.int64], lengths: Collection[int]) -> None:
        before, after = self._n_rows, self._n_rows + len(proba)
        doubling = {_FEWEST << power for power in range(after.bit_length())}
        ends = sorted(end for end in {*lengths, *doubling} if before < end <= after)
        for start, end in zip([before, *ends], [*ends, after], strict=True):
            rows = slice(start - before, end - before)
            self._rows.update(proba[rows], labels[rows])
            for digest in row_digests(proba[rows], labels[rows]):
                self._sum += int.from_bytes(digest, "little")
                if len(self._different) < _DIFFERENT:
                    self._different.add(digest)
            if end in ends and end >= _FEWEST and self._are_different:
                self._starts[end] = self._rows.hexdigest()
                if end in doubling:
                    self._doubling.append(self._starts[end])
        self._n_rows = after

    @property
    def _are_different(self) -> bool:
        return len(self._different) == _DIFFERENT

    def finished(self) -> _FileDigests:
        enough = self._n_rows >= _FEWEST and self._are_different
        return _FileDigests(
            WatchedFile(
                self._n_rows,
                self._rows.hexdigest(),
                self._rows.in_any_order(self._sum) if enough else None,
                tuple(self._doubling),
            ),
            dict(self._starts),
        )


class ClusteredRows(Summary):
    """The rows of files with their sets, until all rows of each cluster are read.

    ``sets_of`` returns the set of each row of a batch, and the number of sets that are full for lack of rows.
    """

    def __init__(self, sets_of: Callable[[Batch], tuple[IntervalSet, int]]) -> None:
        self._sets_of = sets_of
        self._kept: dict[tuple[int, int], tuple[NDArray[Any], IntervalSet, NDArray[Any]]] = {}
        self.n_uncertified = 0

    def add(self, batch: Batch) -> None:
        sets, n_uncertified = self._sets_of(batch)
        self._kept[batch.place] = batch.labels, sets, batch.clusters
        self.n_uncertified += n_uncertified

    def merge(self, other: ClusteredRows) -> ClusteredRows:
        """Return the rows of both, which have no batch in common."""
        if common := self._kept.keys() & other._kept.keys():
            raise ValueError(f"Both have row {min(common)[1]:,} of part {min(common)[0]}; read it once.")
        both = copy(self)
        both._kept = {**self._kept, **other._kept}
        both.n_uncertified = self.n_uncertified + other.n_uncertified
        return both

    def rows(self) -> tuple[NDArray[Any], IntervalSet, NDArray[Any]]:
        """Return the true labels, the sets and the clusters of all rows, in order."""
        labels, sets, clusters = zip(*(kept for _, kept in sorted(self._kept.items())), strict=True)
        lower = np.concatenate([part.lower_index for part in sets])
        upper = np.concatenate([part.upper_index for part in sets])
        classes = sets[0].classes
        every_set = IntervalSet.of(lower, upper, classes)
        return classes[np.concatenate(labels)], every_set, np.concatenate(clusters)
