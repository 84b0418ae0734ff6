"""Build the C kernels: a hook of hatchling, and ``python hatch_build.py`` for the library in place.

Every source is compiled once for each variant of the processor and all of them are linked into one shared
library, which ``ordinalrisk.growth.kernels.library`` loads with ctypes. It is no extension module, so one
wheel for each platform serves every version of Python. The compiler is the system's if one works (``CC``,
clang, cc, gcc), else zig's from the package ``ziglang``, which can also build for other platforms.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ModuleNotFoundError:  # `python hatch_build.py` needs a compiler and nothing else
    BuildHookInterface = object

PLACE = "src/ordinalrisk/growth/kernels/native"
WANTED_PLATFORM = "ORDINALRISK_PLATFORM"
"""The environment variable that names another platform to build a wheel for; see ``make wheels``."""

ALWAYS = [
    *("-std=c11", "-O3", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-psabi"),
    *("-ffp-contract=off", "-fno-fast-math"),  # every rounding is the reference's
    *("-fno-math-errno", "-fno-trapping-math"),  # flags that nobody reads
]
VARIANTS = {
    "x86_64": {
        # no -mfma: nothing can be fused. native/dispatch.c asks the processor for what is named here.
        "baseline": [],
        "avx2": ["-mavx2", "-mbmi", "-mbmi2"],
        "avx512": [
            *("-mavx2", "-mbmi", "-mbmi2", "-mprefer-vector-width=512"),
            *("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512cd"),
        ],
    }
}
ONE_VARIANT: dict[str, list[str]] = {"baseline": []}  # the vectors of aarch64 belong to its baseline
COMPILED_ONCE = "dispatch.c"
SAMPLE = """
#if defined(__MINGW32__) && !defined(__clang__)
#error "GCC for Windows puts vectors on the stack where they are not aligned (bug 54412)"
#endif
#if __FLT_EVAL_METHOD__ != 0
#error "numbers have more digits in registers than in memory"
#endif
#include <math.h>
#include <stdint.h>
#include <string.h>
#define JOINED_(name, variant) name##_##variant
#define JOINED(name, variant) JOINED_(name, variant)
typedef float narrow __attribute__((vector_size(16)));
typedef double wide __attribute__((vector_size(32)));
typedef int64_t whole __attribute__((vector_size(32)));
void JOINED(sample, VARIANT)(const float *p, double *found) {
    narrow four;
    memcpy(&four, p, sizeof four);
    wide x = __builtin_convertvector(four, wide);
    whole above = x > 0.5;
    x = (wide)((whole)x & above) + log(found[0]);
    memcpy(found, &x, sizeof x);
}
"""
"""What the kernels ask of a compiler: vectors, and the headers of the C library."""
TRIAL = """
import ctypes, sys
ctypes.CDLL(sys.argv[1])
sys.exit("denormals are flushed to zero" if float("1e-310") / 2 == 0 else 0)
"""
"""Load the sample: it is for this processor, and has none of what -ffast-math does to a whole process."""


class BuildError(Exception):
    """The library could not be built; the message says why."""


class Platform(NamedTuple):  # hatchling's way to load this file is not enough for a dataclass
    """A platform that a library is for."""

    system: str
    processor: str
    tag: str
    zig_target: str

    @property
    def library(self) -> str:
        """The file name of the library."""
        return "_kernels" + {"macos": ".dylib", "windows": ".dll"}.get(self.system, ".so")

    @property
    def variants(self) -> dict[str, list[str]]:
        """The compiler's flags for each variant."""
        return VARIANTS.get(self.processor, ONE_VARIANT)


OLDEST_MACOS = "11.0"
WHEELS = [
    Platform("linux", "x86_64", "manylinux_2_17_x86_64.manylinux2014_x86_64", "x86_64-linux-gnu.2.17"),
    Platform("linux", "aarch64", "manylinux_2_17_aarch64.manylinux2014_aarch64", "aarch64-linux-gnu.2.17"),
    Platform("macos", "aarch64", "macosx_11_0_arm64", f"aarch64-macos.{OLDEST_MACOS}"),
    Platform("macos", "x86_64", "macosx_11_0_x86_64", f"x86_64-macos.{OLDEST_MACOS}"),
    Platform("windows", "x86_64", "win_amd64", "x86_64-windows-gnu"),
]
"""What ``make wheels`` builds, from any machine."""


def this_platform() -> Platform:
    """Return the platform of the running Python."""
    system = {"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")
    machine = platform.machine().lower()
    processor = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    same = [known for known in WHEELS if (known.system, known.processor) == (system, processor)]
    tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if system == "macos" and same:
        tag = same[0].tag  # of one processor, also where Python itself is for two
    has_zig = bool(same) and (system != "linux" or platform.libc_ver()[0] == "glibc")
    return Platform(system, processor, tag, same[0].zig_target if has_zig else "")


def wanted_platform() -> Platform:
    """Return the platform that the environment asks for, else this one."""
    target = os.environ.get(WANTED_PLATFORM)
    if not target:
        return this_platform()
    for known in WHEELS:
        if known.zig_target == target:
            return known
    raise BuildError(f"{WANTED_PLATFORM}={target!r} is not one of {[known.zig_target for known in WHEELS]}")


def system_compilers() -> Iterator[list[str]]:
    """Yield the compilers of this machine that can build the kernels, the one that ``CC`` names first.

    clang is before GCC: it compiles choices between vectors to single instructions.
    """
    for command in dict.fromkeys([os.environ.get("CC", ""), "clang", "cc", "gcc"]):
        try:
            compiler = shlex.split(command, posix=os.name != "nt")
        except ValueError:  # a quotation without an end
            continue
        if compiler and shutil.which(compiler[0]) and _can_build(compiler):
            yield compiler


def _can_build(compiler: list[str]) -> bool:
    """Try it: there are compilers without headers, for other processors, and with options of their own."""
    with tempfile.TemporaryDirectory() as scratch:
        source, library = Path(scratch, "sample.c"), Path(scratch, "sample.so")
        source.write_text(SAMPLE)
        try:
            _build([source], this_platform(), library, compiler)
            _run([sys.executable, "-I", "-c", TRIAL, str(library)], library.parent)
        except BuildError:
            return False
    return True


def compilers(target: Platform) -> Iterator[list[str]]:
    """Yield what can build for ``target``, the best first."""
    if not os.environ.get(WANTED_PLATFORM):
        yield from system_compilers()
    if target.zig_target and find_spec("ziglang"):
        yield [sys.executable, "-m", "ziglang", "cc", "-target", target.zig_target]


def needs(target: Platform) -> list[str]:
    """Return the packages that a build needs in addition to the machine's own compilers."""
    own = () if os.environ.get(WANTED_PLATFORM) else system_compilers()
    return ["ziglang"] if target.zig_target and not any(own) else []


def build(target: Platform, root: Path, folder: Path, more: Sequence[str] = ()) -> Path:
    """Build the library into ``folder`` with the first compiler that can; return its path."""
    if sys.maxsize < 2**32 or sys.byteorder == "big":
        raise BuildError("the kernels need a little-endian processor of 64 bits")
    sources = sorted((root / PLACE).glob("*.c"))
    failures = []
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch, target.library)
        for compiler in compilers(target):
            try:
                _build(sources, target, made, compiler, more)
            except BuildError as failure:
                failures.append(str(failure))
                continue
            folder.mkdir(parents=True, exist_ok=True)
            beside = folder / f"{target.library}.{os.getpid()}"
            shutil.copyfile(made, beside)
            return beside.replace(folder / target.library)  # whoever has the last one open keeps it
    raise BuildError(
        "\n".join(failures) or "no C compiler works (tried CC, clang, cc, gcc), and ziglang is not installed"
    )


def _build(
    sources: Sequence[Path], target: Platform, library: Path, compiler: list[str], more: Sequence[str] = ()
) -> None:
    """Compile every source for every variant, and link all of them."""
    always = [*ALWAYS, *more, *(["-fPIC"] if target.system != "windows" else [])]
    system = [f"-mmacosx-version-min={OLDEST_MACOS}"] if target.system == "macos" else []
    files = sorted(sources[0].parent.glob("*.[ch]"))
    fingerprint = blake2b(b"".join(file.read_bytes() for file in files)).hexdigest()
    made, commands = [], []
    for source in sources:
        for variant, flags in target.variants.items():
            if source.name != COMPILED_ONCE or variant == "baseline":
                made.append(str(library.parent / f"{source.stem}-{variant}.o"))
                names = [f"-DVARIANT={variant}", f'-DSOURCES="{_version()} {fingerprint}"']
                how = [*always, *system, *flags, *names, "-c", str(source), "-o", made[-1]]
                commands.append([*compiler, *how])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(_run, commands, repeat(library.parent)):
            pass
    strip = ["-Wl,-s"] if target.system == "linux" and not more else []
    mathematics = ["-lm"] if target.system == "linux" else []
    linking = [*compiler, "-O3", "-shared", *system, *more, *strip]  # else zig compiles its checks for it
    _run([*linking, *made, *mathematics, "-o", str(library)], library.parent)


def _version() -> str:
    text = Path(__file__).with_name("src").joinpath("ordinalrisk", "__init__.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)[0]


def _run(command: list[str], scratch: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=_environment(scratch))
    if done.returncode:
        raise BuildError(f"{shlex.join(command)}\n{done.stderr.strip()}")


def _environment(scratch: Path) -> dict[str, str]:
    """Return the environment of a compiler. Zig keeps a cache in the home folder, if it may write there."""
    has_home = os.name == "nt" or os.access(os.environ.get("HOME", ""), os.W_OK)
    return ({} if has_home else {"ZIG_GLOBAL_CACHE_DIR": str(scratch / "zig")}) | os.environ


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg,misc]
    """Put the library into a wheel, or next to the sources for an editable installation."""

    def dependencies(self) -> list[str]:
        """Ask for ziglang if the machine has no suitable compiler."""
        return needs(wanted_platform())

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the library.

        Where nothing can build it, the wheel is made without: the package gives the same results with numpy,
        only slower, and says so when it is used. A wheel for a platform that was asked for is not.
        """
        target, root = wanted_platform(), Path(self.root)
        self.scratch = tempfile.TemporaryDirectory()
        folder = root / PLACE if version == "editable" else Path(self.scratch.name)
        try:
            library = build(target, root, folder)
        except BuildError as failure:
            if os.environ.get(WANTED_PLATFORM):
                raise
            self.app.display_warning(f"ordinalrisk is built without its C kernels: {failure}")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{target.tag}"
        if version != "editable":
            build_data["force_include"][str(library)] = f"{PLACE.removeprefix('src/')}/{library.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was built for the wheel."""
        self.scratch.cleanup()


def main() -> None:
    """Build the library next to its sources."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--strict", action="store_true", help="take warnings for errors")
    parser.add_argument("--needs", action="store_true", help="print the package that a build needs, if any")
    given = parser.parse_args()
    root = Path(__file__).parent
    try:
        if given.needs:
            print(*needs(wanted_platform()))
        else:
            print(build(wanted_platform(), root, root / PLACE, ["-Werror"] if given.strict else []))
    except BuildError as failure:
        sys.exit(f"The kernels could not be built: {failure}")


if __name__ == "__main__":
    main()
