"""A fingerprint of calibration data: one BLAKE3 digest, the same for rows on the host and on a GPU.

BLAKE3 hashes a tree of chunks, so cores and vector lanes share the work. Rows on a GPU are copied to the host
in blocks and hashed there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.batch import Batch, Summary

ROWS_AT_ONCE = 65_536
"""Rows copied at a time from an array that can't be hashed in place."""
BYTES_AT_ONCE = 1 << 24
"""About how many bytes are copied at a time from a GPU; larger blocks need fresh memory, which is slow."""
BYTES_WORTH_A_THREAD = 1 << 22


def of_parts(digests: Sequence[str]) -> str:
    """Return the fingerprint of rows in several parts, such as files, from those of the parts in order.

    A single part keeps its own fingerprint.
    """
    if len(digests) == 1:
        return digests[0]
    return _blake3(f"{len(digests)} parts\n", bytes.fromhex("".join(digests)))


class Fingerprint:
    r"""The fingerprint of rows that come in batches, however they are cut.

    It is the BLAKE3 digest (O'Connor, Aumasson, Neves, Wilcox-O'Hearn 2020) of shape, number type,
    probabilities and labels, as 64 hexadecimal digits:

    .. math:: H(\text{"(n, K) type\textbackslash n"} \,\|\, H(\text{proba}) \,\|\, H(\text{labels}))

    The probabilities are hashed in row-major order, the labels in the smallest unsigned type that holds
    ``K - 1``, both with the lowest byte first. So equal values of one type have one fingerprint, whatever
    their memory layout and wherever they are. Numpy lacks bfloat16: an array of it has the structured type
    ``[("bfloat16", np.uint16)]``.
    """

    def __init__(self) -> None:
        self._n_rows = 0
        self._kind: tuple[int, str] | None = None

    def update(self, proba: Any, labels: Any) -> None:
        """Add rows with the same columns and number type as before; contiguous arrays are not copied."""
        if not isinstance(proba, np.ndarray):
            self._update_from_tensors(proba, labels)
            return
        n_rows, n_classes = proba.shape
        kind = (n_classes, proba.dtype.names[0] if proba.dtype.names else proba.dtype.name)
        if self._kind is None:
            self._kind = kind
            self._proba, self._labels = _hasher(proba.nbytes), _hasher(n_rows)
        if kind != self._kind:
            raise ValueError(
                f"This batch has {kind[0]} columns of {kind[1]}; the batches before it had {self._kind[0]} "
                f"columns of {self._kind[1]}."
            )
        self._n_rows += n_rows
        _feed(self._proba, proba)
        _feed(self._labels, labels.astype(np.min_scalar_type(max(n_classes - 1, 0))))

    def _update_from_tensors(self, proba: Any, labels: Any) -> None:
        """Copy the rows to the host and hash them, block by block."""
        import torch

        bytes_in_row = max(proba.shape[1] * proba.element_size(), 1)
        rows_at_once = max(BYTES_AT_ONCE // bytes_in_row, 1)
        for rows, of_rows in zip(proba.split(rows_at_once), labels.split(rows_at_once), strict=True):
            if rows.dtype == torch.bfloat16:
                bits = rows.view(torch.uint16).cpu().numpy()
                self.update(bits.view([("bfloat16", np.uint16)]), of_rows.cpu().numpy())
            else:
                self.update(rows.cpu().numpy(), of_rows.cpu().numpy())

    def hexdigest(self) -> str:
        if self._kind is None:
            raise ValueError("There are no rows to take the fingerprint of.")
        return _blake3(self._header, self._proba.digest() + self._labels.digest())

    def in_any_order(self, total: int) -> str:
        """Return the fingerprint of rows in any order, from the sum of the :func:`row_digests`."""
        return _blake3(f"in any order {self._header}", (total % 2**256).to_bytes(32, "little"))

    @property
    def _header(self) -> str:
        n_classes, name = self._kind or (0, "")
        return f"{(self._n_rows, n_classes)} {name}\n"


def row_digests(proba: NDArray[Any], labels: NDArray[np.int64]) -> Iterator[bytes]:
    """Yield a digest of each row: of its probabilities and its label.

    >>> proba = np.array([[0.25, 0.75], [1, 0], [0.25, 0.75]])
    >>> first, second, third = row_digests(proba, np.array([1, 0, 1]))
    >>> first == third, first == second
    (True, False)
    """
    from hashlib import blake2b  # for a few bytes it is faster to call than BLAKE3

    numbers = np.ascontiguousarray(proba, dtype=proba.dtype.newbyteorder("<")).view(np.uint8)
    names = np.ascontiguousarray(labels, dtype="<u4")[:, None].view(np.uint8)
    rows = np.concatenate([numbers, names], axis=1)
    width, content = rows.shape[1], memoryview(rows.tobytes())
    for start in range(0, len(content), width):
        yield blake2b(content[start : start + width], digest_size=32).digest()


class DataFingerprint(Summary):
    """The fingerprint of rows in one part or in several, such as files, in the order of the parts.

    Rows are not hashed once there are more than ``at_most``; the fingerprint is then empty.
    """

    def __init__(self, at_most: int | None = None) -> None:
        self._at_most, self.n_rows = at_most, 0
        self._parts: dict[int, Fingerprint | str] = {}

    def add(self, batch: Batch) -> None:
        self.n_rows += len(batch)
        if self._are_too_many or not len(batch):
            return
        running = self._parts.setdefault(batch.part, Fingerprint())
        if isinstance(running, str):
            raise ValueError(f"Part {batch.part} is finished; its fingerprint can't take in more rows.")
        running.update(batch.proba, batch.labels)

    @property
    def _are_too_many(self) -> bool:
        return self._at_most is not None and self.n_rows > self._at_most

    def merge(self, other: DataFingerprint) -> DataFingerprint:
        """Return the fingerprint of the rows of both, which have no part in common."""
        if common := self._parts.keys() & other._parts.keys():
            raise ValueError(f"Both have rows of part {min(common)}; a part is read by one summary.")
        both = DataFingerprint(self._at_most)
        both.n_rows = self.n_rows + other.n_rows
        both._parts = {**self.digests, **other.digests}
        return both

    @property
    def digests(self) -> dict[int, str]:
        """The fingerprint of each part, in order."""
        return {
            part: rows if isinstance(rows, str) else rows.hexdigest()
            for part, rows in sorted(self._parts.items())
        }

    def hexdigest(self) -> str:
        return "" if self._are_too_many else of_parts([*self.digests.values()])

    def __getstate__(self) -> dict[str, Any]:
        """Pickle digests in place of hashers, which can't be pickled."""
        return self.__dict__ | {"_parts": self.digests}


def _hasher(n_bytes: int) -> Any:
    from blake3 import blake3

    # A number of threads, never blake3.AUTO: its threads, shared by the process, are missing after a fork,
    # and a child would wait for them for ever.
    threads = n_bytes // BYTES_WORTH_A_THREAD
    if threads > 1:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        threads = min(threads, cores)
    return blake3(max_threads=max(1, threads))


def _blake3(header: str, content: bytes) -> str:
    digest: str = _hasher(0).update(header.encode() + content).hexdigest()
    return digest


def _feed(hasher: Any, array: NDArray[Any]) -> None:
    """Hash the bytes of the array in row-major order, lowest byte first."""
    little = array.dtype.newbyteorder("<")
    in_place = array.flags.c_contiguous and array.dtype == little
    rows_at_once = max(len(array), 1) if in_place else ROWS_AT_ONCE
    for start in range(0, len(array), rows_at_once):
        block = array[start : start + rows_at_once]
        hasher.update(np.ascontiguousarray(block, dtype=little).reshape(-1).view(np.uint8).data)
