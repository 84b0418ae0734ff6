"""Data that many test files draw on, and how kernels for a GPU run where there is none."""

import os
import secrets
import sys
from functools import cache
from itertools import count

import hypothesis
import numpy as np
import pytest
import torch
import typer.testing

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is defined, so before any is imported

# On a loaded machine a deadline would say nothing about the code.
hypothesis.settings.register_profile("laws", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("laws")

# Else a runner builds all commands before it runs one, which takes longer than most of them do.
typer.testing._get_command = cache(typer.testing._get_command)


def draw_rows(n_rows=300, n_classes=5, seed=0):
    """Rows of class probabilities, and labels drawn from them."""
    from strategies import labels_drawn

    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), size=n_rows)
    return proba, labels_drawn(proba, rng)


@pytest.fixture(scope="session")
def draw():
    """``draw(n_rows, n_classes, seed)`` gives probabilities and labels drawn from them."""
    return draw_rows


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def cluster(running):
    """The address of the cluster of a test module."""
    return running.scheduler_address


@pytest.fixture(scope="module")
def client():
    """A cluster of one process, used only by tests that name it."""
    from distributed import Client
    from worker_processes import local_cluster

    with local_cluster(1) as cluster, Client(cluster.scheduler_address, set_as_default=False) as client:
        yield client


@pytest.fixture(autouse=True)
def same_seeds(monkeypatch):
    """Seeds that a calibration draws for itself are 0, 1, 2, ... in every test."""
    numbers = count()
    monkeypatch.setattr(secrets, "randbits", lambda bits: next(numbers))


@pytest.fixture
def few_stops(monkeypatch):
    """Both sides of an identity between reports have the same risks, and have them sooner."""
    import sizes

    sizes.few_stops(monkeypatch.setattr)


@pytest.fixture
def usual_stops(few_stops, monkeypatch):
    """For tests of which risks there are."""
    import sizes

    sizes.usual_stops(monkeypatch.setattr)


@pytest.fixture(scope="session")
def interpreter():
    """Triton's interpreter, with loop bounds that numpy accepts: it makes arrays of one element of them."""
    from triton.runtime import interpreter

    patch_tensor = interpreter._patch_lang_tensor
    patch_lang, execute = interpreter._patch_lang, interpreter.GridExecutor.__call__
    patched = set()  # for the kernel that runs

    def patch(tensor, scope):
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    @cache
    def languages_of(fn):
        return frozenset(map(id, fn.__globals__.values())) & {id(interpreter.tl), id(interpreter.tl.core)}

    def patch_once(fn):
        """Otherwise a kernel patches the whole language again whenever it calls a function."""
        languages = languages_of(fn)
        if languages in patched:
            return interpreter._LangPatchScope()
        patched.add(languages)
        return patch_lang(fn)

    def execute_kernel(executor, *args, **kwargs):
        patched.clear()  # it was restored after the last kernel
        trace = sys.gettrace()
        if not interpreter.measured:
            sys.settrace(None)
        try:
            return execute(executor, *args, **kwargs)
        finally:
            sys.settrace(trace)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(interpreter, "measured", False, raising=False)
        monkeypatch.setattr(interpreter, "_patch_lang_tensor", patch)
        monkeypatch.setattr(interpreter, "_patch_lang", patch_once)
        monkeypatch.setattr(interpreter.GridExecutor, "__call__", execute_kernel)
        options = interpreter.InterpreterOptions(sanitize_overflow=False)  # twice as fast
        monkeypatch.setattr(interpreter.interpreter_builder, "options", options)
        yield interpreter


@pytest.fixture
def measured(interpreter, monkeypatch):
    """Kernels count for coverage in tests that ask for it: their interpreter then takes thrice as long."""
    monkeypatch.setattr(interpreter, "measured", True)


@pytest.fixture
def on_a_device(monkeypatch):
    """Tensors on ``devices.DEVICE`` are those of a GPU, whether there is one or not."""
    import devices

    devices.take_for_a_device(monkeypatch)
