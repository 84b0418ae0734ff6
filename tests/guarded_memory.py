"""Arrays next to pages that nobody may read: the system ends a kernel that reads past the end of an array."""

import ctypes
import mmap

import numpy as np

_PAGE = mmap.PAGESIZE
_NO_ACCESS, _READ_AND_WRITE = 0, 3


def guarded(array, *, at_end):
    """A copy of the array that begins right after such a page, or ends right before one."""
    array = np.ascontiguousarray(array)
    n_pages = -(-max(array.nbytes, 1) // _PAGE)
    memory = mmap.mmap(-1, (n_pages + 2) * _PAGE)
    offset = (n_pages + 1) * _PAGE - array.nbytes if at_end else _PAGE
    copy = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
    copy[...] = array
    first = np.frombuffer(memory, np.uint8).ctypes.data
    for page in (0, n_pages + 1):
        _protect(first + page * _PAGE, _NO_ACCESS)
    return copy


def _protect(page, access):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(_PAGE), access):
        raise OSError(ctypes.get_errno(), "mprotect")
