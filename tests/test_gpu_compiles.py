"""The GPU kernels compile for a GPU, with every operation rounded on its own; no GPU is needed for that."""

import json
import os
import subprocess
import sys

import pytest

COMPILE = """
import json, re, sys
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from ordinalrisk.growth.kernels import RULES, gpu_quick_sets, gpu_levels

def ptx(kernel, types, constants, **options):
    types = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    constants = {name: constants[name] for name, kind in types.items() if kind == "constexpr"}
    source = ASTSource(kernel, types, constexprs=constants)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]

rows = {"proba": "*fp32", "row_stride": "i64", "column_stride": "i32", "n": "i64"}
exact = rows | {
    "found": "*i64", "K": "i32", "n_listed": "*i64", "listed_rows": "*i32", "given": "*i64", "left": "*fp64",
    "right": "*fp64", "mode_weights": "*fp64", "rank": "*i32", "bound": "*fp64", "workspace": "*fp64",
    "points": "*i64", "out": "*fp64", "lower": "*i32", "upper": "*i32", "threshold": "fp64",
    "labels": "*i64", "at": "*fp64", "before": "*i32", "after": "*i32",
}
clear = rows | {
    "weights": "*fp32", "lower": "*i32", "upper": "*i32", "n_unclear": "*i64", "unclear_rows": "*i32",
    "n_rows": "*i64", "rows_left": "*i32", "threshold": "fp64", "margin": "fp64", "gap": "fp64",
    "safe_tolerance": "fp64",
}
how = {"TOLERANCE": 1e-5, "RULE": 1, "POINT": 0, "SHAPE": 0, "WEIGHTED": True, "BLOCK": 32, "LISTED": True}
glance = {
    "K": 10, "CHUNK": 16, "WEIGHTED": True, "EQUAL_WEIGHTS": True, "MODE_MATTERS": True, "IN_ORDER": True,
    "COMPUTED_IN": tl.float32, "BLOCK": 32, "STAGES": 3,
}
exactly = {"num_warps": 1, "num_stages": 1, "enable_fp_fusion": False}
code = {}
for rule in RULES.values():
    for shape in (0, 2):
        kind = how | {"RULE": rule, "SHAPE": shape, "WEIGHTED": shape == 0}
        code[f"intervals {rule} {shape}"] = ptx(gpu_levels.intervals_kernel, exact, kind, **exactly)
code["steps"] = ptx(gpu_levels.steps_kernel, exact, how, **exactly)
code["missed rows"] = ptx(gpu_levels.missed_rows_kernel, exact, how, **exactly)
code["levels"] = ptx(gpu_levels.levels_kernel, exact, how | {"SHAPE": 1, "WEIGHTED": False}, **exactly)
code["points"] = ptx(gpu_levels.point_labels_kernel, exact, how | {"POINT": 1, "SHAPE": 2}, **exactly)
found = {
    name: [len(re.findall(r"fma[.]rn[.]f64", text)), len(re.findall(r"[.]ftz", text)),
           sorted(set(re.findall(r"div[.]\\w+[.]f64", text)))]
    for name, text in code.items()
}
unequal = {"EQUAL_WEIGHTS": False, "MODE_MATTERS": False}
for kind in ({}, unequal, {"WEIGHTED": False}, {"K": 100, "CHUNK": 32}):
    assert ".ftz" not in ptx(gpu_quick_sets.clear_intervals_kernel, clear, glance | kind, num_warps=1)
ptx(gpu_quick_sets.cheapest_intervals_kernel, clear, glance | {"BLOCK": 128}, num_warps=4)
print(json.dumps(found))
"""


def test_kernels_compile_and_nothing_is_fused():
    pytest.importorskip("triton")
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 12
    for name, (fused, flushed, divisions) in found.items():
        assert (fused, flushed) == (0, 0), name
        assert set(divisions) <= {"div.rn.f64"}, name
    assert found["intervals 1 0"][2] == ["div.rn.f64"]  # pooled means
