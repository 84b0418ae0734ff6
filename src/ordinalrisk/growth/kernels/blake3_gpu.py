"""BLAKE3 in Triton: the digest of a tensor's bytes, computed where the tensor is.

One lane hashes one chunk of 1,024 bytes; then neighbours are paired, level by level, until one node is left,
the root. A node without a neighbour moves up as it is. Lanes read far from each other, a chunk apart, so each
reads 16 bytes at a time and the rest of a cache line soon after.

References
----------
O'Connor, Aumasson, Neves, Wilcox-O'Hearn. BLAKE3: one function, fast everywhere. 2020.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import triton
import triton.language as tl

CHUNK_BYTES = 1024
LANES = 128
"""How many chunks one program hashes."""
SPAN, PAIRS = 2048, 128
"""How many nodes one program of the tree reduces to one, and how many pairs of them at a time."""
COPIED_BYTES = 1 << 26
"""About how many bytes of a tensor that can't be read in place are copied at a time."""

START, END, PARENT, ROOT = (tl.constexpr(flag) for flag in (1, 2, 4, 8))
WRAPS = tl.constexpr(False)  # whether a sum that wraps is an error
# The initial chaining value: the fractional parts of the square roots of the first eight primes.
IV0, IV1, IV2, IV3 = (tl.constexpr(word) for word in (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A))
IV4, IV5, IV6, IV7 = (tl.constexpr(word) for word in (0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19))


def digest(tensor: torch.Tensor) -> bytes:
    """The BLAKE3 digest, 32 bytes, of a tensor's bytes in row-major order."""
    return bytes(device_digest(tensor).tolist())


def device_digest(tensor: torch.Tensor) -> torch.Tensor:
    """As :func:`digest`, but a tensor of 32 bytes on the same device, without waiting for it.

    A contiguous tensor that begins at a multiple of 16 bytes is read in place; of any other, blocks of rows
    are copied, one after the other.
    """
    n_chunks = max(1, triton.cdiv(tensor.numel() * tensor.element_size(), CHUNK_BYTES))
    last = END.value if n_chunks > 1 else END.value + ROOT.value
    with torch.cuda.device_of(tensor):
        nodes = torch.empty((n_chunks, 8), dtype=torch.uint32, device=tensor.device)
        first = 0
        for data in _blocks_of_bytes(tensor):
            n_whole, n_tail = divmod(len(data), CHUNK_BYTES)
            n_programs = triton.cdiv(n_whole, LANES)
            tail = whole = data[: n_whole * CHUNK_BYTES].view(torch.uint32)
            if n_tail or not n_whole:
                padded = torch.zeros(CHUNK_BYTES, dtype=torch.uint8, device=tensor.device)
                padded[:n_tail] = data[n_whole * CHUNK_BYTES :]
                tail = padded.view(torch.uint32)
                n_programs += 1
            _chunks[(n_programs,)](whole, tail, nodes[first:], first, n_whole, n_tail, last, LANES)
            first += n_whole
        n_nodes, stride = n_chunks, 1
        while n_nodes > 1:
            n_programs = triton.cdiv(n_nodes, SPAN)
            _tree[(n_programs,)](nodes, n_nodes, stride, SPAN, PAIRS)
            n_nodes, stride = n_programs, stride * SPAN
    return nodes[0].view(torch.uint8)


def _blocks_of_bytes(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The bytes in row-major order, in blocks of whole chunks but for the last."""
    offset = int(tensor.storage_offset()) * tensor.element_size()
    if tensor.numel() == 0:
        yield tensor.new_empty(0, dtype=torch.uint8)
    elif tensor.is_contiguous() and (tensor.data_ptr() | offset) % 16 == 0:
        yield tensor.reshape(-1).view(torch.uint8)
    else:
        rows = tensor.reshape(-1) if tensor.is_contiguous() else tensor
        row_bytes = rows[0].numel() * rows.element_size()
        for block in rows.split(CHUNK_BYTES * max(1, COPIED_BYTES // (CHUNK_BYTES * row_bytes))):
            yield block.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)


@triton.jit(do_not_specialize=["first", "n_whole", "n_tail", "last"])
def _chunks(whole, tail, nodes, first, n_whole, n_tail, last, LANES: tl.constexpr):
    """The chaining values of whole chunks, and, by the program after theirs, of the padded tail."""
    begin = tl.program_id(0).to(tl.int64) * LANES
    is_tail = begin >= n_whole
    begin = tl.where(is_tail, n_whole, begin)
    n_bytes = tl.where(is_tail, n_tail, 1024)
    lane = tl.arange(0, LANES)
    valid = lane < tl.where(is_tail, 1, n_whole - begin)
    at = tl.where(is_tail, tail, whole + begin * 256) + lane * 256
    counter = first + begin + lane
    low, high = counter.to(tl.uint32), (counter >> 32).to(tl.uint32)
    zero = tl.full((LANES,), 0, tl.uint32)
    h = (zero + IV0, zero + IV1, zero + IV2, zero + IV3, zero + IV4, zero + IV5, zero + IV6, zero + IV7)
    n_blocks = tl.maximum((n_bytes + 63) // 64, 1)
    block = 0
    while block < n_blocks:
        flags = tl.where(block == 0, START, 0) + tl.where(block == n_blocks - 1, last, 0)
        length = tl.minimum(n_bytes - block * 64, 64)
        m = _eight(at + block * 16, valid) + _eight(at + block * 16 + 8, valid)
        h = _compress(h, m, low, high, zero + length, zero + flags)
        block += 1
    _store(nodes + (begin + lane) * 8, h, valid)


@triton.jit(do_not_specialize=["n_nodes", "stride"])
def _tree(nodes, n_nodes, stride, SPAN: tl.constexpr, PAIRS: tl.constexpr):
    """Reduce SPAN nodes, ``stride`` apart, to the first of them, in place."""
    begin = tl.program_id(0).to(tl.int64) * SPAN
    nodes += begin * stride * 8
    count = tl.minimum(n_nodes - begin, SPAN)
    zero = tl.full((PAIRS,), 0, tl.uint32)
    h = (zero + IV0, zero + IV1, zero + IV2, zero + IV3, zero + IV4, zero + IV5, zero + IV6, zero + IV7)
    while count > 1:
        flags = tl.where((n_nodes <= SPAN) & (count == 2), PARENT + ROOT, PARENT)
        start = 0
        while start < count:
            left = start + 2 * tl.arange(0, PAIRS).to(tl.int64)
            at = nodes + left * stride * 8
            m = _eight(at, left < count) + _eight(at + stride * 8, left + 1 < count)
            tl.debug_barrier()  # all have read before any writes where another reads
            to = nodes + left // 2 * stride * 8
            _store(to, _compress(h, m, zero, zero, zero + 64, zero + flags), left + 1 < count)
            _store(to, m, left + 1 == count)
            start += 2 * PAIRS
        tl.debug_barrier()
        count = (count + 1) // 2


@triton.jit
def _compress(h, m, low, high, length, flags):
    """The chaining value after one block of 16 words: seven rounds, each of columns, then diagonals."""
    a0, a1, a2, a3, b0, b1, b2, b3 = h
    zero = tl.full(a0.shape, 0, tl.uint32)
    c0, c1, c2, c3 = zero + IV0, zero + IV1, zero + IV2, zero + IV3
    d0, d1, d2, d3 = low, high, length, flags
    for _ in tl.static_range(7):
        a0, b0, c0, d0 = _mix(a0, b0, c0, d0, m[0], m[1])
        a1, b1, c1, d1 = _mix(a1, b1, c1, d1, m[2], m[3])
        a2, b2, c2, d2 = _mix(a2, b2, c2, d2, m[4], m[5])
        a3, b3, c3, d3 = _mix(a3, b3, c3, d3, m[6], m[7])
        a0, b1, c2, d3 = _mix(a0, b1, c2, d3, m[8], m[9])
        a1, b2, c3, d0 = _mix(a1, b2, c3, d0, m[10], m[11])
        a2, b3, c0, d1 = _mix(a2, b3, c0, d1, m[12], m[13])
        a3, b0, c1, d2 = _mix(a3, b0, c1, d2, m[14], m[15])
        front = m[2], m[6], m[3], m[10], m[7], m[0], m[4], m[13]
        back = m[1], m[11], m[12], m[5], m[9], m[14], m[15], m[8]
        m = front + back
    return a0 ^ c0, a1 ^ c1, a2 ^ c2, a3 ^ c3, b0 ^ d0, b1 ^ d1, b2 ^ d2, b3 ^ d3


@triton.jit
def _mix(a, b, c, d, x, y):
    """Sums that wrap, and rotations by 16, 12, 8 and 7 bits."""
    a = tl.add(tl.add(a, b, WRAPS), x, WRAPS)
    d ^= a
    d = (d >> 16) | (d << 16)
    c = tl.add(c, d, WRAPS)
    b ^= c
    b = (b >> 12) | (b << 20)
    a = tl.add(tl.add(a, b, WRAPS), y, WRAPS)
    d ^= a
    d = (d >> 8) | (d << 24)
    c = tl.add(c, d, WRAPS)
    b ^= c
    b = (b >> 7) | (b << 25)
    return a, b, c, d


@triton.jit
def _eight(at, valid):
    """Eight words in a row for each lane: two reads of 16 bytes."""
    return _four(at, valid) + _four(at + 4, valid)


@triton.jit
def _four(at, valid):
    words = tl.load(at[:, None] + tl.arange(0, 4)[None, :], mask=valid[:, None], other=0)
    even, odd = tl.split(tl.reshape(words, (at.shape[0], 2, 2)))
    w0, w2 = tl.split(even)
    w1, w3 = tl.split(odd)
    return w0, w1, w2, w3


@triton.jit
def _store(at, h, valid):
    for i in tl.static_range(8):
        tl.store(at + i, h[i], mask=valid)
