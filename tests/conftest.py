"""Data that many test files draw on, and how kernels for a GPU run where there is none."""

import os

import hypothesis
import numpy as np
import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is defined, so before any is imported

# Compiling a kernel for the first time takes seconds, so a deadline would say nothing about the code.
hypothesis.settings.register_profile("laws", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("laws")


def draw_rows(n_rows=300, n_classes=5, seed=0):
    """Rows of class probabilities, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), size=n_rows)
    labels = (proba.cumsum(axis=1)[:, :-1] < rng.random((n_rows, 1))).sum(axis=1)
    return proba, labels


@pytest.fixture(scope="session")
def draw():
    """``draw(n_rows, n_classes, seed)`` gives probabilities and labels drawn from them."""
    return draw_rows


@pytest.fixture(scope="session")
def interpreter():
    """Triton's interpreter, with loop bounds that numpy accepts: it makes arrays of one element of them."""
    from triton.runtime import interpreter

    patch_tensor = interpreter._patch_lang_tensor

    def patch(tensor, scope):
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(interpreter, "_patch_lang_tensor", patch)
        options = interpreter.InterpreterOptions(sanitize_overflow=False)  # twice as fast
        monkeypatch.setattr(interpreter.interpreter_builder, "options", options)
        yield interpreter
