"""The C kernels: the shared library that ``hatch_build.py`` builds, and its variant for this processor.

The library is loaded with ctypes, which releases the interpreter lock during each call.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import warnings
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ordinalrisk import __version__

FORCED = "ORDINALRISK_KERNELS"
"""The environment variable that names the kernels to take instead of the best: a variant, or ``numpy``."""

VARIANTS = ("baseline", "avx2", "avx512")
"""In the order in which ``best_variant`` of ``native/dispatch.c`` numbers them."""

_SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
PATH = Path(__file__).parent / "native" / f"_kernels{_SUFFIX}"

address, whole, real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "room_for": (whole, [whole]),
    "point_labels": (whole, [address, address, whole, address, address]),
    "levels": (whole, [address, address, whole, whole, address, address]),
    "intervals": (whole, [address, address, whole, whole, real, address, address, address, address]),
    "steps": (
        whole,
        [address, address, whole, whole, address, *4 * [address], whole, address, address],
    ),
    "sets_by_quick_test": (whole, [address, address, whole, address, address, address, address]),
    "copy_rows": (None, [address, whole, whole, address, whole, whole]),
    "count_uncertainty": (None, [address, whole, whole, whole, address]),
    "bets_reach_goal": (whole, [address, whole, address, whole, real, real, real]),
}
"""What each function of the library returns and takes."""

_ELF_OF_64_BITS = b"\x7fELF\x02\x01"
_WHERE_IT_ENDS = struct.Struct("<6s34xQ10xHH2x")
"""Its first bytes: a mark, where the last table begins, and the size and number of the table's entries."""


@cache
def functions() -> Any:
    """Return the functions of the variant in use; None if numpy is used instead."""
    forced = os.environ.get(FORCED)
    if forced == "numpy":
        return None
    try:
        runnable = variants()
    except OSError as failure:
        if forced:
            raise
        warnings.warn(
            f"The C kernels of ordinalrisk can't be loaded ({failure}), so numpy does their work. Results "
            "are the same, but take 10 to 100 times as long. To have the kernels, install a wheel for this "
            "platform, or a C compiler and then ordinalrisk again.",
            stacklevel=2,
        )
        return None
    if forced and forced not in runnable:
        raise ValueError(f"{FORCED}={forced!r} is not one of {[*runnable, 'numpy']} on this machine.")
    return functions_of(forced or runnable[-1])


def variants() -> tuple[str, ...]:
    """Return the variants that this processor can run, the fastest last."""
    return VARIANTS[: _library().best_variant() + 1]


@cache
def functions_of(variant: str) -> SimpleNamespace:
    """Return the functions of a variant by their names, typed."""
    found = SimpleNamespace()
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(_library(), f"{name}_{variant}")
        function.restype, function.argtypes = result, arguments
        setattr(found, name, function)
    return found


@cache
def _library() -> ctypes.CDLL:
    _require_whole(PATH)
    library = ctypes.CDLL(str(PATH))
    sources = getattr(library, "sources", None)
    if sources is None:
        raise OSError(f"{PATH} is not the library of this package")
    sources.restype = ctypes.c_char_p
    version, _, built_from = sources().decode().partition(" ")
    if here := _sources(PATH.parent):
        if built_from != here:
            raise OSError(f"{PATH} was built from other sources than those in its folder")
    elif version != __version__:
        raise OSError(f"{PATH} belongs to version {version}, and this is {__version__}")
    return library


def _require_whole(path: Path) -> None:
    """Refuse a file that was cut: the system would end the process that loads it."""
    if path.is_file():
        with path.open("rb") as file:
            head = file.read(_WHERE_IT_ENDS.size)
        if len(head) == _WHERE_IT_ENDS.size:
            mark, start, size, count = _WHERE_IT_ENDS.unpack(head)
            if mark == _ELF_OF_64_BITS and start + size * count > path.stat().st_size:
                raise OSError(f"{path} is cut short")


def _sources(folder: Path) -> str:
    """Return the fingerprint of the C sources, as ``hatch_build.py`` takes it; only a clone has them."""
    files = sorted(folder.glob("*.[ch]"))
    return blake2b(b"".join(file.read_bytes() for file in files)).hexdigest() if files else ""
