"""Packages are imported only if they are needed: each script runs in a new process without heavy packages."""

import os
import subprocess
import sys

import pytest
from pages import ROOT

DRAWN = """
import numpy as np
import ordinalrisk as orisk
proba = np.random.default_rng(0).dirichlet(np.ones(4), 200)
y = np.random.default_rng(1).integers(0, 4, 200)
"""
PREDICTED = """
import numpy as np, os, sys, pyarrow as pa, pyarrow.parquet as pq
import ordinalrisk as orisk
from ordinalrisk.__main__ import run

proba = np.full((20, 2), 0.5)
controller = orisk.RiskController(alpha=0.2, classes=["low", "high"])
controller.calibrate(proba, ["low", "high"] * 10).save("cal.json")
schema = pa.schema([("low", pa.float64()), ("high", pa.float64())])
columns = [pa.Array.from_buffers(pa.float64(), 20, [None, pa.py_buffer(proba[:, 0].copy())])] * 2
pq.write_table(pa.Table.from_arrays(columns, schema=schema), "rows.parquet")
sys.argv = ["ordinalrisk", "predict", "cal.json", "rows.parquet", "-o", "sets.parquet"]
try:
    run()
except SystemExit as end:
    assert not end.code
assert os.path.exists("sets.parquet") and "pyarrow" in sys.modules
"""
HOLDERS = "pandas polars pyarrow torch matplotlib dask distributed fsspec"
SCRIPTS = {
    "the package": ("import ordinalrisk", f"numpy msgspec sklearn scipy typer {HOLDERS}"),
    "a controller": ("from ordinalrisk import RiskController", f"triton jinja2 plotly {HOLDERS}"),
    "the plots": ("import ordinalrisk; ordinalrisk.plots", "matplotlib"),
    "the datasets": ("from ordinalrisk import datasets", "PIL"),
    "the report": ("import ordinalrisk.report", "numpy jinja2 plotly"),
    "the command line": ("import ordinalrisk.cli", "PIL matplotlib numpy pandas rich sklearn torch"),
    "what Dask is for": (
        "import ordinalrisk.jobs, ordinalrisk.controller, ordinalrisk.metrics",
        "dask distributed",
    ),
    "arrays of numpy": (
        f"{DRAWN}controller = orisk.RiskController(alpha=0.2).calibrate(proba, y)\n"
        "sets = controller.predict_set(proba)\n"
        "orisk.metrics.risk(y, sets), repr(sets), controller.guarantee()",
        HOLDERS,
    ),
    "a small file": (PREDICTED, "pandas"),  # which takes longer to import than the rest takes
    "a plot on given axes": (
        "from matplotlib.figure import Figure\n"
        "from ordinalrisk import IntervalSet, plots\n"
        "plots.plot_set_sizes(IntervalSet([0], [1], classes=range(3)), ax=Figure().subplots())",
        "matplotlib.pyplot",
    ),
    "a notebook": (
        "from ordinalrisk import IntervalSet, RiskController\n"
        "RiskController()._repr_html_(), IntervalSet([0, 1], [2, 1], classes=range(3))._repr_html_()",
        "matplotlib pandas plotly jinja2 sklearn",
    ),
    "a table in a notebook": (
        "from ordinalrisk import IntervalSet, metrics\n"
        "metrics.by_class([0, 1], IntervalSet([0, 0], [1, 1], classes=[0, 1]))._repr_html_()",
        "pandas polars jinja2 plotly",
    ),
    "the figures of the reproduction": (
        "import reproduction.rule_figures, reproduction.experiment_figures",
        "matplotlib",
    ),
    "the networks of the reproduction": (
        "from reproduction import faces, held_out, resnet",
        "sklearn scipy typer rich matplotlib pandas torchvision",
    ),
}


@pytest.mark.parametrize(("script", "heavy"), SCRIPTS.values(), ids=SCRIPTS)
def test_what_is_heavy_is_not_imported(script, heavy, here):
    there = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", f"{script}\nimport sys; print(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=there)
    assert {*heavy.split()} & {*done.stdout.split()} == set()


def test_the_package_by_itself_imports_none_of_its_modules():
    code = "import sys, ordinalrisk; print(*[name for name in sys.modules if name.startswith('ordinalrisk')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "ordinalrisk\n"
