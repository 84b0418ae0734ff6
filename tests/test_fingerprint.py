"""Equal calibration data have one fingerprint, whatever their layout and device; any other data another."""

import importlib
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
from ordinalrisk.calibration.fingerprint import fingerprint

pytest.importorskip("triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"

from ordinalrisk.growth.kernels import blake3_gpu  # noqa: E402 - its kernels read the variable when they are defined

if DEVICE == "cpu":  # defined without it if another module came first
    importlib.reload(blake3_gpu)

pytestmark = pytest.mark.usefixtures("interpreter")
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


def random_bytes(n, seed=0):
    return torch.frombuffer(bytearray(np.random.default_rng(seed).bytes(n) or b"x"), dtype=torch.uint8)[:n]


def as_tensor(array):
    if array.dtype == BFLOAT16:
        return torch.tensor(array["bfloat16"].copy()).view(torch.bfloat16).to(DEVICE)
    return torch.tensor(array.copy()).to(DEVICE)


@pytest.mark.parametrize(
    ("n_bytes", "number_type"),
    [
        (0, "uint8"),
        (1, "bool"),
        (3, "uint8"),
        (4, "float16"),
        (63, "int8"),
        (64, "complex128"),
        (65, "uint8"),
        (128, "int64"),
        (1024, "float64"),
        (1025, "uint8"),
        (2048, "bfloat16"),
        (12 * 1024 + 1020, "float32"),
    ],
)
def test_the_kernel_computes_blake3(n_bytes, number_type):
    data = random_bytes(n_bytes)
    tensor = data.view(getattr(torch, number_type)).to(DEVICE)
    assert blake3_gpu.digest(tensor) == blake3(data.numpy()).digest()


@pytest.mark.parametrize(
    ("n_bytes", "lanes", "span", "pairs"), [(5 * 1024 + 7, 4, 4, 1), (6 * 1024 + 7, 8, 2, 1)]
)
def test_the_kernel_computes_blake3_in_many_programs(monkeypatch, n_bytes, lanes, span, pairs):
    """Of six nodes two are left after the first launch, and of seven after the second."""
    monkeypatch.setattr(blake3_gpu, "LANES", lanes)
    monkeypatch.setattr(blake3_gpu, "SPAN", span)
    monkeypatch.setattr(blake3_gpu, "PAIRS", pairs)
    data = random_bytes(n_bytes)
    assert blake3_gpu.digest(data.to(DEVICE)) == blake3(data.numpy()).digest()


def test_the_counter_of_a_chunk_has_64_bits():
    first, data = (7 << 32) + 5, random_bytes(1024)
    words = data.view(torch.uint32).to(DEVICE)
    node = torch.zeros((1, 8), dtype=torch.uint32, device=DEVICE)
    blake3_gpu._chunks[(1,)](words, words, node, first, 0, 64, 2, 128)
    assert node[0].tolist() == compress(
        struct.unpack("<16I", data[:64].numpy().tobytes()), first, 64, flags=3
    )


def compress(block, counter, length, flags):
    """The first compression of a chunk, in the words of the paper."""
    iv = [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19]
    v = [*iv, *iv[:4], counter & 0xFFFFFFFF, counter >> 32, length, flags]
    columns = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)]
    diagonals = [(0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]
    for _ in range(7):
        for i, (a, b, c, d) in enumerate(columns + diagonals):
            for word, (one, other) in zip(block[2 * i : 2 * i + 2], [(16, 12), (8, 7)], strict=True):
                v[a] = (v[a] + v[b] + word) % 2**32
                v[d] = rotated(v[d] ^ v[a], one)
                v[c] = (v[c] + v[d]) % 2**32
                v[b] = rotated(v[b] ^ v[c], other)
        block = [block[i] for i in (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)]
    return [v[i] ^ v[i + 8] for i in range(8)]


def rotated(word, bits):
    return (word >> bits | word << 32 - bits) % 2**32


TENSORS = {
    "transposed": lambda t: t[:60].view(torch.float32).reshape(3, 5).T,
    "every second column": lambda t: t[:64].view(torch.float16).reshape(8, 4)[:, ::2],
    "backwards": lambda t: t[:64].view(torch.float64).flip(0),
    "begins between words": lambda t: t[1:60],
    "one number between words": lambda t: t.view(torch.float16)[3],
    "repeated": lambda t: t[:8].view(torch.float32).expand(3, 2),
    "no rows": lambda t: t.view(torch.float16)[5:5],
}


@pytest.mark.parametrize("view", TENSORS.values(), ids=TENSORS)
def test_the_kernel_reads_tensors_of_any_layout(view, measured):
    tensor = view(random_bytes(64).to(DEVICE))
    assert blake3_gpu.digest(tensor) == blake3(tensor.cpu().numpy().tobytes()).digest()


def test_the_kernel_copies_blocks_of_rows(monkeypatch, measured):
    monkeypatch.setattr(blake3_gpu, "COPIED_BYTES", 1)
    column = random_bytes(2 * 1100).reshape(1100, 2)[:, 1]
    assert blake3_gpu.digest(column.to(DEVICE)) == blake3(column.numpy().tobytes()).digest()


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


@pytest.mark.parametrize(
    ("number_type", "n_rows", "n_classes"),
    [*((number_type, 5, 3) for number_type in NUMBER_TYPES), ("float16", 1, 257), ("float64", 0, 4)],
)
def test_host_and_device_agree(monkeypatch, number_type, n_rows, n_classes):
    proba, labels = rows(n_rows, n_classes, NUMBER_TYPES[number_type])
    expected = fingerprint(proba, labels)
    monkeypatch.setitem(sys.modules, "blake3", None)  # a device needs no such package
    assert fingerprint(as_tensor(proba), as_tensor(labels)) == expected


def test_a_device_tensor_of_another_layout_has_the_same_fingerprint():
    proba, labels = rows(5, 3, np.float32)
    turned = as_tensor(proba.T).T
    assert not turned.is_contiguous()
    assert fingerprint(turned, as_tensor(np.repeat(labels, 2))[::2]) == fingerprint(proba, labels)


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
