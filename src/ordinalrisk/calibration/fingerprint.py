"""A fingerprint of calibration data: one BLAKE3 digest, the same for rows on the host and on a GPU.

BLAKE3 hashes a tree of chunks, so cores and vector lanes share the work. Rows on a GPU are copied to the host
in blocks and hashed there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS_AT_ONCE = 65_536
"""Rows copied at a time from an array that can't be hashed in place."""
BYTES_AT_ONCE = 1 << 24
"""About how many bytes are copied at a time from a GPU; larger blocks are slow, as each is fresh memory."""
BYTES_WORTH_A_THREAD = 1 << 22


def fingerprint(proba: Any, labels: Any, *, threads: int | None = None) -> str:
    r"""BLAKE3 of the shape, the number type, the probabilities and the labels, as 64 hexadecimal digits.

    .. math:: H(\text{"(n, K) type\textbackslash n"} \,\|\, H(\text{proba}) \,\|\, H(\text{labels}))

    The probabilities are hashed in row-major order, the labels in the smallest unsigned type that holds
    ``K - 1``, both with the lowest byte first. So equal values of one type have one fingerprint, whatever
    their memory layout and wherever they are.

    Parameters
    ----------
    proba : array or torch tensor of shape (n, K)
        float16, float32, float64 or bfloat16, which numpy lacks: an array of it has the structured type
        ``[("bfloat16", np.uint16)]``. An array is hashed in place if it is C-contiguous; other arrays and
        tensors are copied to the host in blocks of rows.
    labels : array or torch tensor of shape (n,)
        Integers in ``0 .. K-1``.
    threads : int, optional
        The most threads to use; by default one for each core this process may use.

    References
    ----------
    O'Connor, Aumasson, Neves, Wilcox-O'Hearn. BLAKE3: one function, fast everywhere. 2020.

    Examples
    --------
    >>> proba = np.array([[0.5, 0.5], [0.25, 0.75]])
    >>> fingerprint(proba, np.array([0, 1]))
    '505a5717c1b42f1d297232627a761497479dd7394db880f517120198c6df7898'
    >>> fingerprint(np.asfortranarray(proba), np.array([0, 1]))
    '505a5717c1b42f1d297232627a761497479dd7394db880f517120198c6df7898'
    """
    return Fingerprint(threads=threads).update(proba, labels).hexdigest()


def of_parts(digests: Sequence[str]) -> str:
    """The fingerprint of rows in several parts, such as files, from those of the parts in order.

    That of a single part is its own.

    Examples
    --------
    >>> one, other = (fingerprint(np.array([p]), np.array([1])) for p in ([0.5, 0.5], [0.25, 0.75]))
    >>> of_parts([one]) == one, of_parts([one, other]) == of_parts([other, one])
    (True, False)
    """
    if len(digests) == 1:
        return digests[0]
    header = f"{len(digests)} parts\n".encode()
    whole: str = _hasher(0, 1).update(header + bytes.fromhex("".join(digests))).hexdigest()
    return whole


class Fingerprint:
    """The fingerprint of rows that come in batches, however they are cut.

    Examples
    --------
    >>> proba = np.array([[0.5, 0.5], [0.25, 0.75]])
    >>> batches = Fingerprint().update(proba[:1], np.array([0])).update(proba[1:], np.array([1]))
    >>> batches.hexdigest() == fingerprint(proba, np.array([0, 1]))
    True
    """

    def __init__(self, *, threads: int | None = None) -> None:
        self._threads = threads
        self._n_rows = 0
        self._kind: tuple[int, str] | None = None

    def update(self, proba: Any, labels: Any) -> Fingerprint:
        """Take in more rows: arrays or tensors, with the same number of columns and the same number type."""
        if not isinstance(proba, np.ndarray):
            return self._update_from_tensors(proba, labels)
        n_rows, n_classes = proba.shape
        kind = (n_classes, proba.dtype.names[0] if proba.dtype.names else proba.dtype.name)
        if self._kind is None:
            self._kind = kind
            self._proba, self._labels = _hasher(proba.nbytes, self._threads), _hasher(n_rows, self._threads)
        if kind != self._kind:
            raise ValueError(
                f"This batch has {kind[0]} columns of {kind[1]}; the batches before it had {self._kind[0]} "
                f"columns of {self._kind[1]}."
            )
        self._n_rows += n_rows
        _feed(self._proba, proba)
        _feed(self._labels, labels.astype(np.min_scalar_type(max(n_classes - 1, 0))))
        return self

    def _update_from_tensors(self, proba: Any, labels: Any) -> Fingerprint:
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
        return self

    def hexdigest(self) -> str:
        """The fingerprint of the rows so far."""
        if self._kind is None:
            raise ValueError("There are no rows to take the fingerprint of.")
        n_classes, name = self._kind
        header = f"{(self._n_rows, n_classes)} {name}\n".encode()
        whole: str = _hasher(0, 1).update(header + self._proba.digest() + self._labels.digest()).hexdigest()
        return whole


def _hasher(n_bytes: int, threads: int | None) -> Any:
    from blake3 import blake3

    if threads is None:
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # A number of threads, never blake3.AUTO: its threads, shared by the process, are missing after a fork,
    # and a child would wait for them for ever.
    return blake3(max_threads=max(1, min(threads, n_bytes // BYTES_WORTH_A_THREAD)))


def _feed(hasher: Any, array: NDArray[Any]) -> None:
    """The array's bytes in row-major order, the lowest first."""
    little = array.dtype.newbyteorder("<")
    in_place = array.flags.c_contiguous and array.dtype == little
    rows_at_once = max(len(array), 1) if in_place else ROWS_AT_ONCE
    for start in range(0, len(array), rows_at_once):
        block = array[start : start + rows_at_once]
        hasher.update(np.ascontiguousarray(block, dtype=little).reshape(-1).view(np.uint8).data)
