"""Equal calibration data have one fingerprint, whatever their layout and device; any other data another.

The fingerprint follows its definition: a BLAKE3 digest of a header and of two digests.
"""

import os
import struct
import subprocess
import sys

import numpy as np
import pytest
import torch
from blake3 import blake3
from devices import DEVICE, HAS_GPU, copy_few_bytes_at_once, use_wide_blocks
from effort import PATIENCE, in_little_memory
from fingerprints import fingerprint

from ordinalrisk import RiskController

MANY = 700_000
"""Rows of three labels that several threads hash, and that are copied in blocks where they must be copied."""
LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "every second row and column": lambda p: np.repeat(np.repeat(p, 2, axis=0), 2, axis=1)[::2, ::2],
    "backwards": lambda p: np.ascontiguousarray(p[::-1, ::-1])[::-1, ::-1],
    "read only": lambda p: np.frombuffer(p.tobytes(), p.dtype).reshape(p.shape),
    "not aligned": lambda p: np.frombuffer(b"x" + p.tobytes(), p.dtype, offset=1).reshape(p.shape),
}


def rows(n_rows, n_classes=3, number_type=np.float64):
    """Probabilities that every number type holds exactly, and labels that are never missed."""
    rng = np.random.default_rng(n_rows)
    proba = rng.multinomial(16, np.full(n_classes, 1 / n_classes), n_rows) / 16
    return proba.astype(number_type), proba.argmax(axis=1)


def defined(proba, labels, name=None, label_type="B"):
    """The fingerprint by its definition; of bfloat16 numpy has the bits only, so its name is given."""
    header = f"{proba.shape} {name or proba.dtype.name}\n".encode()
    parts = (proba.tobytes(), struct.pack(f"<{len(labels)}{label_type}", *labels.tolist()))
    return blake3(header + b"".join(blake3(part).digest() for part in parts)).hexdigest()


def test_the_fingerprint_of_two_rows():
    proba, labels = np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 1])
    expected = "505a5717c1b42f1d297232627a761497479dd7394db880f517120198c6df7898"
    assert fingerprint(proba, labels) == defined(proba, labels) == expected


@pytest.mark.parametrize(("n_classes", "smallest"), [(256, "B"), (257, "H")])
def test_labels_are_hashed_in_the_smallest_type(n_classes, smallest):
    proba, labels = np.eye(n_classes)[-5:], np.arange(n_classes)[-5:]
    assert fingerprint(proba, labels) == defined(proba, labels, label_type=smallest)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize(
    ("number_type", "n_rows"), [(np.float16, 50), (np.float32, 50), (np.float64, 50), (np.float64, MANY)]
)
def test_the_layout_does_not_matter(number_type, layout, n_rows):
    proba, labels = rows(n_rows, number_type=number_type)
    assert fingerprint(layout(proba), np.repeat(labels, 2)[::2]) == defined(proba, labels)


def test_the_byte_order_does_not_matter():
    proba, labels = rows(50)
    assert fingerprint(proba.astype(">f8"), labels) == defined(proba, labels)


def test_any_change_changes_the_fingerprint():
    proba, labels = rows(70_000, 4, np.float32)
    assert (proba[0] > 0).sum() > 1
    seen = {fingerprint(proba, labels)}
    for row in (0, 65_536, 69_999):
        other = proba.copy()
        other[row] = np.nextafter(proba[row], np.float32(1))
        seen |= {fingerprint(other, labels), fingerprint(np.asfortranarray(other), labels)}
        other = labels.copy()
        other[row] ^= 1
        seen.add(fingerprint(proba, other))
    seen.add(fingerprint(proba[:-1], labels[:-1]))
    seen.add(fingerprint(proba[::-1], labels[::-1]))
    seen.add(fingerprint(proba[:, ::-1], 3 - labels))
    assert len(seen) == 1 + 3 + 3 + 3


def test_rows_are_not_copied_or_in_blocks_only():
    proba, labels = rows(200_000, 20)
    for array in (proba, np.asfortranarray(proba)):
        with in_little_memory(proba.nbytes / 2):
            RiskController(alpha=0.2).calibrate(array, labels)


# tensors

TENSORS = {
    "C": lambda t: t,
    "transposed": lambda t: t.T.contiguous().T,
    "every second row and column": lambda t: t.repeat_interleave(2, 0).repeat_interleave(2, 1)[::2, ::2],
    "begins between words": lambda t: torch.cat([t.new_zeros(1), t.reshape(-1)])[1:].reshape(t.shape),
    "repeated": lambda t: t[:1].expand(len(t), -1),
}


@pytest.fixture
def on_device(monkeypatch, interpreter, on_a_device):
    if not HAS_GPU:
        use_wide_blocks(monkeypatch)
    return lambda array, dtype=None: torch.tensor(array, dtype=dtype, device=DEVICE)


@pytest.mark.parametrize("bytes_at_once", [1, 100, None], ids=["a row", "some rows", "all rows"])
@pytest.mark.parametrize("layout", TENSORS)
def test_host_and_device_agree(on_device, monkeypatch, layout, bytes_at_once):
    """Even if rows are copied to the host one by one, or in blocks and the last block is not full."""
    proba, labels = rows(9)
    if bytes_at_once:
        copy_few_bytes_at_once(monkeypatch, bytes_at_once)
    tensor, of_rows = TENSORS[layout](on_device(proba)), on_device(np.repeat(labels, 2))[::2]
    assert fingerprint(tensor, of_rows) == defined(tensor.cpu().numpy(), labels)


@pytest.mark.parametrize("number_type", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_every_number_type_has_its_own(on_device, number_type):
    proba, labels = rows(9)
    tensor = on_device(proba, number_type)
    bits = tensor.cpu().view({2: torch.int16, 4: torch.int32}[tensor.element_size()]).numpy()
    name = str(number_type).removeprefix("torch.")
    assert fingerprint(tensor, on_device(labels)) == defined(bits, labels, name)


def test_a_bfloat16_tensor_on_the_host():
    proba, labels = rows(9)
    tensor = torch.tensor(proba).bfloat16()
    assert fingerprint(tensor, labels) == defined(tensor.view(torch.int16).numpy(), labels, "bfloat16")


def test_a_tensor_that_changes_after_the_calibration_does_not_change_the_fingerprint(on_device):
    proba, labels = rows(9)
    tensor = on_device(proba)
    controller = RiskController(alpha=0.2).calibrate(tensor, on_device(labels))
    tensor.zero_()
    assert controller.data_blake3_ == defined(proba, labels)


# processes

FORKED = f"""
import os, sys
import numpy as np
from ordinalrisk import RiskController
print({{"blake3", "torch", "triton"}} & {{*sys.modules}})
data = np.eye(2)[np.zeros({MANY}, int)], np.zeros({MANY}, int)
before = RiskController(alpha=0.2).calibrate(*data).data_blake3_
child = os.fork()
after = RiskController(alpha=0.2).calibrate(*data).data_blake3_
if not child:
    os._exit(after != before)
print(os.waitpid(child, 0)[1], after == before)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_can_hash_too():
    """And what hashes is not imported before it is needed."""
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert done.stdout.split() == ["set()", "0", "True"]
