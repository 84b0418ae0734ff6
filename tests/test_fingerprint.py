"""Equal calibration data have one fingerprint, whatever their layout and device; any other data another."""

import os
import struct
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import torch
from blake3 import blake3

from ordinalrisk.calibration import fingerprint as on_host
from ordinalrisk.calibration.fingerprint import Fingerprint, fingerprint

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BFLOAT16 = np.dtype([("bfloat16", np.uint16)])
NUMBER_TYPES = {"float16": np.float16, "float32": np.float32, "float64": np.float64, "bfloat16": BFLOAT16}
LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "every second row and column": lambda p: np.repeat(np.repeat(p, 2, axis=0), 2, axis=1)[::2, ::2],
    "backwards": lambda p: np.ascontiguousarray(p[::-1, ::-1])[::-1, ::-1],
    "read only": lambda p: np.frombuffer(p.tobytes(), p.dtype).reshape(p.shape),
    "not aligned": lambda p: np.frombuffer(b"x" + p.tobytes(), p.dtype, offset=1).reshape(p.shape),
}


def rows(n_rows, n_classes, number_type=np.float64, seed=0):
    """Values of any bits, and labels."""
    rng = np.random.default_rng(seed)
    number_type = np.dtype(number_type)
    values = np.frombuffer(rng.bytes(n_rows * n_classes * number_type.itemsize), number_type)
    return values.reshape(n_rows, n_classes), rng.integers(0, n_classes, n_rows)


def as_tensor(array):
    if array.dtype == BFLOAT16:
        return torch.tensor(array["bfloat16"].copy()).view(torch.bfloat16).to(DEVICE)
    return torch.tensor(array.copy()).to(DEVICE)


def test_a_fingerprint_is_the_digest_of_a_header_and_two_digests():
    header, proba, labels = b"(2, 2) float64\n", struct.pack("<4d", 0.5, 0.5, 0.25, 0.75), bytes([0, 1])
    expected = blake3(header + blake3(proba).digest() + blake3(labels).digest()).hexdigest()
    assert expected == "505a5717c1b42f1d297232627a761497479dd7394db880f517120198c6df7898"
    assert fingerprint(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 1])) == expected


@pytest.mark.parametrize(("n_classes", "small"), [(256, "B"), (257, "<H"), (65_536, "<H"), (65_537, "<I")])
def test_labels_are_hashed_in_the_smallest_type(n_classes, small):
    label = n_classes - 1
    digests = blake3(bytes(2 * n_classes)).digest() + blake3(struct.pack(small, label)).digest()
    expected = blake3(f"(1, {n_classes}) float16\n".encode() + digests).hexdigest()
    assert fingerprint(np.zeros((1, n_classes), np.float16), np.array([label])) == expected


@pytest.mark.parametrize("n_rows", [50, 70_000])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("number_type", NUMBER_TYPES.values(), ids=NUMBER_TYPES)
def test_the_layout_does_not_matter(number_type, layout, n_rows):
    proba, labels = rows(n_rows, 3, number_type)
    moved = layout(proba)
    assert moved.tobytes() == proba.tobytes()
    assert fingerprint(moved, np.repeat(labels, 2)[::2]) == fingerprint(proba, labels)


@pytest.mark.parametrize("number_type", [np.float16, np.float32, np.float64])
def test_the_byte_order_does_not_matter(number_type):
    proba, labels = rows(50, 3, number_type)
    swapped = proba.astype(proba.dtype.newbyteorder(">"))
    assert fingerprint(swapped, labels) == fingerprint(proba, labels)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_number_of_threads_does_not_matter(monkeypatch, threads):
    monkeypatch.setattr(on_host, "BYTES_WORTH_A_THREAD", 1000)
    proba, labels = rows(70_000, 3)
    assert fingerprint(proba, labels, threads=threads) == fingerprint(proba, labels)


TENSORS = {
    "C": lambda t: t,
    "transposed": lambda t: t.T.contiguous().T,
    "every second row and column": lambda t: t.repeat_interleave(2, 0).repeat_interleave(2, 1)[::2, ::2],
    "begins between words": lambda t: torch.cat([t.new_zeros(1), t.reshape(-1)])[1:].reshape(t.shape),
}


@pytest.mark.parametrize("bytes_at_once", [1, 100, on_host.BYTES_AT_ONCE])
@pytest.mark.parametrize("layout", TENSORS.values(), ids=TENSORS)
@pytest.mark.parametrize(
    ("number_type", "n_rows", "n_classes"),
    [*((number_type, 50, 3) for number_type in NUMBER_TYPES), ("float16", 1, 257), ("float64", 0, 4)],
)
def test_host_and_device_agree(monkeypatch, number_type, n_rows, n_classes, layout, bytes_at_once):
    """Also where rows come to the host one by one, or in blocks the last of which is not full."""
    proba, labels = rows(n_rows, n_classes, NUMBER_TYPES[number_type])
    monkeypatch.setattr(on_host, "BYTES_AT_ONCE", bytes_at_once)
    tensor, of_rows = layout(as_tensor(proba)), as_tensor(np.repeat(labels, 2))[::2]
    assert fingerprint(tensor, of_rows) == fingerprint(proba, labels)


def test_a_repeated_row_is_hashed_as_often_as_it_stands_there():
    row, labels = np.array([[0.25, 0.75]]), np.array([0, 1, 1])
    assert fingerprint(as_tensor(row).expand(3, 2), as_tensor(labels)) == fingerprint(
        row.repeat(3, axis=0), labels
    )


def test_batches_may_be_arrays_and_tensors():
    proba, labels = rows(50, 3, np.float32)
    mixed = (
        Fingerprint().update(proba[:20], labels[:20]).update(as_tensor(proba[20:]), as_tensor(labels[20:]))
    )
    assert mixed.hexdigest() == fingerprint(proba, labels)


@pytest.mark.parametrize("other", [rows(5, 3)[0], as_tensor(rows(5, 3)[0])], ids=["array", "tensor"])
def test_batches_of_another_kind_are_refused(other):
    started = Fingerprint().update(*rows(5, 2, np.float32))
    message = r"^This batch has 3 columns of float64; the batches before it had 2 columns of float32\.$"
    with pytest.raises(ValueError, match=message):
        started.update(other, other[:, 0])


def test_a_tensor_that_changes_after_the_calibration_does_not_change_the_fingerprint():
    proba, labels = rows(5, 3)
    tensor = as_tensor(proba)
    started = Fingerprint().update(tensor, as_tensor(labels))
    tensor.zero_()
    assert started.hexdigest() == fingerprint(proba, labels)


def test_any_change_changes_the_fingerprint():
    proba, labels = rows(70_000, 4, np.float32)
    bits = np.unpackbits(proba.view(np.uint8).reshape(-1))
    seen = {fingerprint(proba, labels)}
    for bit in (0, 12_345, bits.size - 1):
        flipped = bits.copy()
        flipped[bit] ^= 1
        flipped = np.packbits(flipped).view(np.float32).reshape(proba.shape)
        seen |= {fingerprint(flipped, labels), fingerprint(np.asfortranarray(flipped), labels)}
    for row in (0, 65_536, 69_999):
        other = labels.copy()
        other[row] ^= 1
        seen.add(fingerprint(proba, other))
    seen.add(fingerprint(proba[:-1], labels[:-1]))
    seen.add(fingerprint(proba[::-1], labels[::-1]))
    seen.add(fingerprint(proba[:, ::-1], labels))
    assert len(seen) == 1 + 3 + 3 + 3


def test_the_same_bytes_in_another_shape_or_type_have_another_fingerprint():
    values, _ = rows(6, 2, np.float16)
    labels = np.zeros(6, np.int64)
    data = [
        values,
        values.reshape(4, 3),
        values.reshape(3, 4),
        values.view(BFLOAT16),
        values.view(np.float32),
    ]
    assert len({fingerprint(proba, labels) for proba in data}) == 5


def test_a_contiguous_array_is_not_copied_and_another_in_blocks_only():
    proba, labels = rows(200_000, 5)
    others = [np.asfortranarray(proba), proba.astype(">f8")]
    for array, limit in [(proba, 1 << 20), *((other, proba.nbytes // 2) for other in others)]:
        tracemalloc.start()
        fingerprint(array, labels)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < limit


def in_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_the_import_is_light():
    code = (
        "import sys, ordinalrisk.calibration.fingerprint; "
        "print({'blake3', 'torch', 'triton', 'numba'} & {*sys.modules})"
    )
    assert in_python(code).stdout.strip() == "set()"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_can_hash_too():
    code = """
import os, signal
import numpy as np
from ordinalrisk.calibration.fingerprint import BYTES_WORTH_A_THREAD, fingerprint
data = np.zeros((BYTES_WORTH_A_THREAD // 2, 1)), np.zeros(BYTES_WORTH_A_THREAD // 2, int)
fingerprint(*data)
child = os.fork()
signal.alarm(20)
fingerprint(*data)
if child:
    print(os.waitpid(child, 0)[1])
else:
    os._exit(0)
"""
    assert in_python(code).stdout.strip() == "0"
