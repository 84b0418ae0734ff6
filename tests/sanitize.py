"""The kernels' tests with kernels that stop at bad reads and undefined behaviour: ``make sanitize``.

The package is copied and its library is built with the sanitizers there. They fence whatever numpy allocates.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import hatch_build  # noqa: E402 - it stands beside the package

FLAGS = [
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"),
    *("-g", "-O1", "-Werror"),
]
TESTS = "tests/test_kernels.py"
NOT_HERE = "not memory and not forked"  # the sanitizer's own memory is neither little, nor for two processes


def main():
    """Build, and run the tests; without a compiler that has the sanitizers, say so and fail."""
    target = hatch_build.this_platform()
    compiler = next(hatch_build.system_compilers(), None)
    if compiler is None or target.system != "linux":
        sys.exit("The sanitizers need Linux and gcc or clang: apt-get install gcc libc6-dev.")
    runtime = subprocess.run([*compiler, "-print-file-name=libasan.so"], capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch)
        leave_out = shutil.ignore_patterns("__pycache__", "_kernels.*")
        shutil.copytree(ROOT / "src", copy / "src", ignore=leave_out)
        os.environ["CC"] = " ".join(compiler)
        hatch_build.build(target, copy, copy / hatch_build.PLACE, FLAGS)
        sanitized = {
            "PYTHONPATH": str(copy / "src"),
            "PYTHONMALLOC": "malloc",
            "LD_PRELOAD": runtime.stdout.strip(),
            "ASAN_OPTIONS": "detect_leaks=0",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        }
        # pytest leaves the sanitizers' own output alone: it would be lost with the process that they end
        pytest = [sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "--capture=sys"]
        done = subprocess.run([*pytest, "-k", NOT_HERE, TESTS], cwd=ROOT, env=os.environ | sanitized)
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
