"""Operations on tensors on a GPU that differ from those on numpy arrays.

Functions that receive a tensor import torch inside, where it is already loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.arrays import library_of

if TYPE_CHECKING:
    import torch


DEVICE_TYPES = {"cuda"}
"""The device types, by their torch names, that :mod:`ordinalrisk.growth.kernels.gpu` has kernels for."""


def on_device(values: Any) -> bool:
    return library_of(values) == "torch" and values.device.type in DEVICE_TYPES


def to_host(values: Any) -> Any:
    """Copy a tensor on a GPU to a numpy array; return anything else unchanged."""
    return values.cpu().numpy() if on_device(values) else values


def to_device_of(proba: Any, indices: Any, name: str) -> Any:
    """Move ``indices`` to the device of ``proba``; raise an error instead of moving them to the host."""
    if on_device(proba):
        import torch

        if on_device(indices):
            return indices.to(proba.device)
        return torch.tensor(indices, device=proba.device)
    if on_device(indices):
        raise ValueError(
            f"{name} is on device {indices.device}, but proba is not; move it with {name}.cpu()."
        )
    return indices


def tensor_class_indices(y: torch.Tensor, classes: NDArray[Any]) -> torch.Tensor:
    """Return the position of each label in ``classes``, or -1 for an unknown label."""
    import torch

    if classes.dtype.kind not in "biuf" or y.is_complex():
        return torch.full(y.shape, -1, device=y.device)
    order = np.argsort(classes)
    whole = classes.dtype.kind in "biu" and not y.is_floating_point()
    if whole and np.array_equal(classes, np.arange(len(classes))) and _are_below(len(classes), y.long()):
        return y.long()
    known = torch.tensor(classes[order].astype(np.int64 if whole else np.float64), device=y.device)
    wanted = y.long() if whole else y.double()
    place = torch.searchsorted(known, wanted.contiguous()).clamp_(max=len(classes) - 1)
    indices = torch.tensor(order, device=y.device)[place]
    return torch.where(known[place] == wanted, indices, -1)


def _are_below(end: int, numbers: torch.Tensor) -> bool:
    """Return whether all numbers are in ``0 .. end - 1``, in one pass."""
    if not len(numbers):
        return True
    least, largest = numbers.aminmax()
    return int(least) >= 0 and int(largest) < end


def labels_at(indices: torch.Tensor, classes: NDArray[Any]) -> Any:
    """Return the labels at ``indices``: a tensor if the labels are numbers, else an array on the host."""
    if classes.dtype.kind not in "biuf":
        return classes[to_host(indices)]
    import torch

    return torch.tensor(classes, device=indices.device)[indices.long()]
