"""Tensors on a GPU: where what is done with them differs from arrays on the host.

torch is imported by what gets a tensor, and so is there already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch


DEVICE_TYPES = {"cuda"}
"""What torch calls the devices that :mod:`ordinalrisk.growth.kernels.gpu` has kernels for."""


def on_device(values: Any) -> bool:
    """Whether ``values`` is a tensor on a GPU."""
    return type(values).__module__.partition(".")[0] == "torch" and values.device.type in DEVICE_TYPES


def to_host(values: Any) -> Any:
    """An array on the host, if ``values`` is a tensor on a GPU; else ``values`` itself."""
    return values.cpu().numpy() if on_device(values) else values


def beside(proba: Any, indices: Any, name: str) -> Any:
    """``indices`` where ``proba`` is; from the host to a device, never back in silence."""
    if on_device(proba):
        import torch

        if on_device(indices):
            return indices.to(proba.device)
        return torch.tensor(indices, device=proba.device)
    if on_device(indices):
        raise ValueError(
            f"{name} is on device {indices.device}, the rows are not; move it with {name}.cpu()."
        )
    return indices


def class_indices(y: torch.Tensor, classes: NDArray[Any]) -> torch.Tensor:
    """The position of each label in ``classes``, -1 for one that is not there."""
    import torch

    if classes.dtype.kind not in "biuf" or y.is_complex():
        return torch.full(y.shape, -1, device=y.device)
    order = np.argsort(classes)
    whole = classes.dtype.kind in "biu" and not y.is_floating_point()
    known = torch.tensor(classes[order].astype(np.int64 if whole else np.float64), device=y.device)
    wanted = y.long() if whole else y.double()
    place = torch.searchsorted(known, wanted).clamp_(max=len(classes) - 1)
    found = torch.tensor(order, device=y.device)[place]
    return torch.where(known[place] == wanted, found, -1)


def labels_at(indices: torch.Tensor, classes: NDArray[Any]) -> Any:
    """The labels at ``indices``: a tensor if they are numbers, else an array on the host."""
    if classes.dtype.kind not in "biuf":
        return classes[to_host(indices)]
    import torch

    return torch.tensor(classes, device=indices.device)[indices.long()]
