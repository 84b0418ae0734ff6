"""The device of the tests: a GPU, or else the host, which the library then takes for one."""

import sys

import torch

from ordinalrisk.calibration import fingerprint
from ordinalrisk.curves import device_steps
from ordinalrisk.growth import kernels
from ordinalrisk.growth.kernels import gpu
from ordinalrisk.inputs import device

HAS_GPU = torch.cuda.is_available()
DEVICE = "cuda" if HAS_GPU else "cpu"


def take_for_a_device(monkeypatch):
    """Treat tensors on ``DEVICE`` as those of a GPU."""
    monkeypatch.setattr(device, "DEVICE_TYPES", {DEVICE})


def use_wide_blocks(monkeypatch, width=256):
    """Work on many rows at a time: Triton's interpreter takes as long for many as for few."""
    for name in ("BLOCK", "CLEAR_BLOCK", "CHEAPEST_BLOCK", "STEPS_BLOCK"):
        monkeypatch.setattr(gpu, name, width)


def hide_the_kernels(monkeypatch):
    """As if Triton were not installed."""
    monkeypatch.setitem(sys.modules, gpu.__name__, None)
    monkeypatch.delattr(kernels, "gpu")


def fingerprint_instead(monkeypatch, proba, y):
    """Let fingerprints of tensors be those of the same rows on the host."""
    monkeypatch.setattr(
        fingerprint.Fingerprint, "_update_from_tensors", lambda found, *_: found.update(proba, y)
    )


def copy_few_bytes_at_once(monkeypatch, n_bytes):
    """Copy rows from the device to the host in blocks of so many bytes, or of one row."""
    monkeypatch.setattr(fingerprint, "BYTES_AT_ONCE", n_bytes)


def sort_few_at_once(monkeypatch, few, near):
    """Select among more than ``few`` steps on the device, by samples of as many."""
    monkeypatch.setattr(device_steps.DeviceSteps, "few", few)
    monkeypatch.setattr(device_steps.DeviceSteps, "near", near)
