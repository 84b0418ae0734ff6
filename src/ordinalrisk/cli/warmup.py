"""``ordinalrisk warmup``: compile ahead of the first call, for container images and serverless functions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import product
from typing import TYPE_CHECKING

from ordinalrisk.cli import terminal

if TYPE_CHECKING:
    from rich.console import Console

GPU_CASES = [
    *product(
        ("float32", "float64", "float16", "bfloat16"), ("coverage", "divergence"), ("frontier", "adaptive")
    )
]


def warmup() -> None:
    """Compile the kernels now and keep them, so that the first call of a new process need not wait.

    Compiled code is kept beside the package or, where that can't be written, in the user's cache folder;
    NUMBA_CACHE_DIR names another place. It serves processors of the kind it was compiled on. Where there
    is a GPU, its common kernels are compiled too, and kept where Triton keeps them.

    \b
    Examples:
      ordinalrisk warmup
      NUMBA_CACHE_DIR=/opt/compiled ordinalrisk warmup
    """  # noqa: D301
    from ordinalrisk.growth.kernels import cpu

    console = terminal.printer()
    _run(console, "Processor", cpu.compile_ahead(), cpu.N_COMPILED)
    folder = cpu.cache_folder()
    console.print(f"Kept in {folder}" if folder else "Not kept: no folder could be written; see --help.")
    if _has_gpu():
        _run(console, "GPU", _compile_for_gpu(), len(GPU_CASES))
    else:
        console.print("GPU: none found.")


def _run(console: Console, where: str, work: Iterator[object], total: int) -> None:
    start = time.perf_counter()
    for _ in terminal.track(work, total, f"{where}: compiling"):
        pass
    console.print(f"{where}: ready after {time.perf_counter() - start:.1f} s.")


def _has_gpu() -> bool:
    if find_spec("torch") is None or find_spec("triton") is None:
        return False
    import torch

    return torch.cuda.is_available()


def _compile_for_gpu() -> Iterator[object]:
    """Small calls: what they need is compiled on the way."""
    import torch

    from ordinalrisk.controller import RiskController

    for number_type, loss, growth in GPU_CASES:
        proba = torch.full((1_000, 4), 0.25, dtype=getattr(torch, number_type), device="cuda")
        y = torch.arange(1_000, device="cuda") % 4
        yield RiskController(loss, alpha=0.2, growth=growth).calibrate(proba, y).predict_set(proba)
