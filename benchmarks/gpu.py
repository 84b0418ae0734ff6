"""Time on a GPU as a share of what a device-to-device copy of the same array reaches, in one run.

Needs torch, triton, numpy and ordinalrisk, nothing else, so that it runs where only those are::

    PYTHONPATH=src python3 benchmarks/gpu.py --out results

A call counts with the bytes it can't avoid: the probabilities and labels it reads, the intervals it writes.
A copy counts with the bytes it reads and writes. Both are timed with CUDA events, in turns. So are the parts
of a calibration: what is left of it is the check of the labels and the time of Python.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ALPHA = 0.1
CLASSES = (5, 10, 20, 100)
ROWS = 100_000_000
ROWS_AT_ONCE = 1_000_000
BYTES_A_ROW_BESIDE = 64  # labels, intervals and what a calibration keeps
SHARE_OF_FREE_MEMORY = 0.9
NO_GPU = "no GPU found"
PARTS = ("steps", "threshold", "fingerprint")


def why_not() -> str | None:
    """What this section lacks; None if it can run."""
    try:
        import torch
    except ImportError:
        return f"{NO_GPU} (torch is not installed)"
    return None if torch.cuda.is_available() else NO_GPU


def measure_gpu(
    rows: int = ROWS, classes: tuple[int, ...] = CLASSES, repeats: int = 7
) -> Iterator[dict[str, Any]]:
    """One finding for each number of classes, with as many rows as fit if ``rows`` do not."""
    import torch

    for K in classes:
        yield _measure(min(rows, _rows_that_fit(K)), K, repeats)
        torch.cuda.empty_cache()


def _rows_that_fit(K: int) -> int:
    """How many rows fit with the copy that the bandwidth is measured by."""
    import torch

    free, _ = torch.cuda.mem_get_info()
    return int(SHARE_OF_FREE_MEMORY * free / (2 * K * 4 + BYTES_A_ROW_BESIDE))


def _measure(n: int, K: int, repeats: int) -> dict[str, Any]:
    import torch

    from ordinalrisk import RiskController

    proba, y = _ordinal_scores(n, K)
    copy = torch.empty_like(proba)
    controller = RiskController(loss="coverage", alpha=ALPHA).calibrate(proba, y)
    sets = controller.predict_set(proba)
    _require_coverage(sets, y)
    result_bytes = sum(_nbytes(ends) for ends in (sets.lower_index, sets.upper_index))
    del sets
    jobs = {
        "copy": lambda: copy.copy_(proba),
        "predict": lambda: controller.predict_set(proba),
        "calibrate": lambda: RiskController(loss="coverage", alpha=ALPHA).calibrate(proba, y),
        **_parts_of_calibrate(proba, y),
    }
    moved = {
        "copy": 2 * _nbytes(proba),
        "predict": _nbytes(proba) + result_bytes,
        "calibrate": _nbytes(proba) + _nbytes(y),
    }
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(repeats):
        for name, job in jobs.items():
            best[name] = min(best[name], _event_seconds(job))
    bandwidth = {name: moved[name] / best[name] for name in moved}
    found = {
        "device": torch.cuda.get_device_name(),
        "n": n,
        "K": K,
        "seconds": best,
        "bytes": moved,
        "share_of_copy": {step: bandwidth[step] / bandwidth["copy"] for step in ("predict", "calibrate")},
        "bytes_a_row": {step: _device_peak(jobs[step]) / n for step in ("predict", "calibrate")},
    }
    return found


def _parts_of_calibrate(proba: Any, y: Any) -> dict[str, Callable[[], Any]]:
    """What a calibration does, each by itself."""
    from dataclasses import replace

    from ordinalrisk import FrontierGrowth
    from ordinalrisk.calibration.fingerprint import Fingerprint
    from ordinalrisk.losses.cost_table import CostTable
    from ordinalrisk.losses.kinds import as_loss

    n, K = proba.shape
    rule, costs = FrontierGrowth(), CostTable.of(as_loss("coverage"), K)
    known: Any = rule.steps(proba, y, costs, None)

    def fingerprint() -> str:
        running = Fingerprint()
        running.update(proba, y)
        return running.hexdigest()

    return {
        "steps": lambda: rule.steps(proba, y, costs, None),
        "threshold": lambda: replace(known, was_queried=False).first_level_above(int(ALPHA * n)),
        "fingerprint": fingerprint,
    }


def _ordinal_scores(n: int, K: int) -> tuple[Any, Any]:
    """A peak of width 1 around a latent position, with noise; labels drawn from it. Made on the device."""
    import torch

    torch.manual_seed(0)
    proba = torch.empty((n, K), device="cuda")
    y = torch.empty(n, dtype=torch.int64, device="cuda")
    label = torch.arange(K, device="cuda")
    for start in range(0, n, ROWS_AT_ONCE):
        part = proba[start : start + ROWS_AT_ONCE]
        latent = torch.rand((len(part), 1), device="cuda") * K - 0.5
        part.copy_(torch.softmax(0.3 * torch.randn_like(part) - (label - latent) ** 2 / 2, dim=1))
        passed = part.cumsum(1)[:, :-1] < torch.rand((len(part), 1), device="cuda")
        y[start : start + ROWS_AT_ONCE] = passed.sum(1)
    return proba, y


def _require_coverage(sets: Any, y: Any) -> None:
    """Refuse to time sets that do not hold about ``1 - ALPHA`` of the labels."""
    import torch

    lower, upper = (torch.as_tensor(ends, device=y.device) for ends in (sets.lower_index, sets.upper_index))
    coverage = ((lower <= y) & (y <= upper)).double().mean().item()
    if abs(coverage - (1 - ALPHA)) > 0.01:
        raise RuntimeError(f"The sets cover {coverage:.3f}, asked for {1 - ALPHA}; their time means nothing.")


def _nbytes(array: Any) -> int:
    return int(array.nbytes)


def _event_seconds(job: Callable[[], Any]) -> float:
    """From before the call to after all it started on the device, by the device's clock."""
    import torch

    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    kept = job()
    end.record()
    end.synchronize()
    del kept
    return start.elapsed_time(end) / 1e3


def _device_peak(job: Callable[[], Any]) -> int:
    """The most device memory the call held at once, its result included."""
    import torch

    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    kept = job()
    torch.cuda.synchronize()
    del kept
    return torch.cuda.max_memory_allocated() - before


def table(findings: list[dict[str, Any]]) -> str:
    """The findings in at most 80 columns."""
    first = findings[0]
    lines = [
        f"GPU: {first['device']}, float32, coverage loss, alpha = {ALPHA}, frontier",
        f"{'K':>4} {'rows':>12} {'copy':>10} {'predict':>18} {'calibrate':>18} {'memory':>12}",
        f"{'':>4} {'':>12} {'GB/s':>10} {'ms':>9} {'of copy':>8} {'ms':>9} {'of copy':>8} {'B a row':>12}",
    ]
    for found in findings:
        steps = " ".join(
            f"{found['seconds'][step] * 1e3:9.2f} {found['share_of_copy'][step]:8.0%}"
            for step in ("predict", "calibrate")
        )
        copy = found["bytes"]["copy"] / found["seconds"]["copy"] / 1e9
        memory = "/".join(f"{found['bytes_a_row'][step]:.0f}" for step in ("predict", "calibrate"))
        lines.append(f"{found['K']:>4} {found['n']:>12,} {copy:>10,.0f} {steps} {memory:>12}")
    lines.append("memory: peak on the device in addition to the input, predict/calibrate")
    if all("fingerprint" in found["seconds"] for found in findings):
        lines.append("parts of calibrate, ms:")
        for found in findings:
            parts = (f"{part} {found['seconds'][part] * 1e3:.2f}" for part in PARTS)
            lines.append(f"{found['K']:>4} {', '.join(parts)}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--classes", type=int, nargs="+", default=CLASSES)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path, help="folder for gpu.json")
    arguments = parser.parse_args()
    reason = why_not()
    if reason:
        print(reason)
        return
    findings = list(measure_gpu(arguments.rows, tuple(arguments.classes), arguments.repeats))
    print(table(findings))
    if arguments.out:
        from ordinalrisk.files.atomic import replacing

        arguments.out.mkdir(parents=True, exist_ok=True)
        with replacing(arguments.out / "gpu.json") as file:
            file.write_text(json.dumps(findings, indent=2) + "\n")


if __name__ == "__main__":
    main()
