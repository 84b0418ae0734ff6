"""Rows of watched files: find files that come twice, and clusters that are in several batches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.fingerprint import Fingerprint
from ordinalrisk.files.formats import FileError
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.inputs.matrix import RowError
from ordinalrisk.prediction.interval_set import IntervalSet
from ordinalrisk.saving.run_documents import WatchedFile
from ordinalrisk.sequential.monitor import RiskMonitor

_FEWEST_AT_THE_START = 20  # fewer rows can be equal by chance


class FileFingerprints:
    """The fingerprints of files that are read one after the other, compared with those of earlier files.

    Examples
    --------
    >>> import numpy as np
    >>> rows = Batch(np.full((30, 2), 0.5), np.zeros(30, int))
    >>> january = FileFingerprints([])
    >>> january.add(rows)
    >>> [file] = january.files
    >>> until_february = FileFingerprints([file])
    >>> until_february.add(rows)
    >>> until_february.add(rows)
    >>> until_february.repeated
    {0: (30, False)}
    """

    def __init__(self, known: Iterable[WatchedFile]) -> None:
        self._known = {(file.n_rows, file.blake3) for file in known}
        self._lengths = sorted({n_rows for n_rows, _ in self._known})
        self._running: dict[int, tuple[int, Fingerprint]] = {}
        self._at_the_start: dict[int, int] = {}

    def add(self, batch: Batch) -> None:
        labels = np.zeros(len(batch), np.int64) if batch.labels is None else batch.labels
        n_rows, fingerprint = self._running.get(batch.part, (0, Fingerprint()))
        ends = [n - n_rows for n in self._lengths[bisect_right(self._lengths, n_rows) :]]
        start = 0
        for end in [*(end for end in ends if end < len(batch)), len(batch)]:
            fingerprint.update(batch.proba[start:end], labels[start:end])
            start, now = end, (n_rows + end, fingerprint.hexdigest())
            if now in self._known and now[0] >= _FEWEST_AT_THE_START:
                self._at_the_start[batch.part] = now[0]
        self._running[batch.part] = n_rows + len(batch), fingerprint

    @property
    def files(self) -> list[WatchedFile]:
        """The files that were read, in order."""
        return [WatchedFile(n_rows, rows.hexdigest()) for _, (n_rows, rows) in sorted(self._running.items())]

    @property
    def repeated(self) -> dict[int, tuple[int, bool]]:
        """The number of rows of each file that repeat an earlier file, and whether these are all its rows."""
        found = {part: (n_rows, False) for part, n_rows in self._at_the_start.items()}
        known = set(self._known)
        for part, file in zip(sorted(self._running), self.files, strict=True):
            whole: Any = (file.n_rows, file.blake3)
            if whole in known:
                found[part] = file.n_rows, True
            known.add(whole)
        return found


class ClusteredRows:
    """The rows of files until all are read, since rows of one cluster may lie in several batches."""

    def __init__(self, monitor: RiskMonitor) -> None:
        self._monitor = monitor
        self._rows: list[tuple[NDArray[Any], IntervalSet, NDArray[Any]]] = []

    def add(self, batch: Batch, sets: IntervalSet) -> None:
        self._rows.append((batch.labels, sets, batch.clusters))

    def watch(self, name: str) -> None:
        """Watch all rows; ``name`` is that of the files, for errors."""
        if not self._rows:
            return
        labels, sets, clusters = zip(*self._rows, strict=True)
        lower = np.concatenate([part.lower_index for part in sets])
        upper = np.concatenate([part.upper_index for part in sets])
        classes = sets[0].classes
        try:
            self._monitor.update(
                classes[np.concatenate(labels)],
                IntervalSet.of(lower, upper, classes),
                clusters=np.concatenate(clusters),
            )
        except RowError as error:
            raise FileError(f"{name}: cluster {error.value!r}{str(error).partition(' that')[2]}") from None
