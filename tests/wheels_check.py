"""A wheel for each platform, built and looked at here: ``python tests/wheels_check.py dist/wheels``.

The one for this machine is installed into a new environment and used there. Of the others it is read from
the library in them that it is for their processor, offers every function of the kernels in every variant, and
loads nothing but what each system of that kind has.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from binaries import read_library
from dist_check import LIBRARY, ROOT, check_wheel, contents, try_it

sys.path.insert(0, str(ROOT))

import hatch_build

OF_THE_SYSTEM = {
    "linux": r"lib[cm]\.so\.6|ld-linux-.*",
    "macos": r"/usr/lib/libSystem\.B\.dylib",
    "windows": r"KERNEL32\.dll|ntdll\.dll|api-ms-win-crt-.*\.dll",
}
OF_THE_LINKER = {"__dso_handle", "_mh_dylib_header"}
OLDEST = {"linux": "GLIBC_2.17", "macos": "11.0"}


def kernels():
    """The functions that the C sources offer to Python."""
    sources = (ROOT / hatch_build.PLACE).glob("*.[ch]")
    return {name for path in sources for name in re.findall(r"EXPORT\((?!name)(\w+)\)", path.read_text())}


def version(text):
    """``GLIBC_2.17`` as numbers."""
    return [int(part) for part in re.findall(r"\d+", text)]


def build(target, folder):
    """The wheel for a platform."""
    there = os.environ | {hatch_build.WANTED_PLATFORM: target.zig_target}
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, env=there, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob(f"*-py3-none-{target.tag}.whl")
    return wheel


def look_at(wheel, target):
    """Its library: the processor, what it offers, and what it asks of the system."""
    check_wheel(wheel)
    (data,) = (data for name, data in contents(wheel).items() if name.startswith(LIBRARY))
    library = read_library(data)
    assert library.processor == target.processor, library
    expected = {f"{name}_{variant}" for name in kernels() for variant in target.variants} | {
        "best_variant",
        "sources",
    }
    assert library.exports - OF_THE_LINKER == expected, library.exports ^ expected
    foreign = {name for name in library.needed if not re.fullmatch(OF_THE_SYSTEM[target.system], name)}
    assert foreign == set(), foreign
    for needed in library.versions:
        assert version(needed) <= version(OLDEST[target.system]), needed
    print(f"  {len(expected)} functions in {len(data) >> 10} KiB; loads {sorted(library.needed)}")


def main(folder):
    """All of them."""
    shutil.rmtree(folder, ignore_errors=True)
    for target in hatch_build.WHEELS:
        wheel = build(target, folder)
        look_at(wheel, target)
        here = hatch_build.this_platform()
        if (here.system, here.processor) == (target.system, target.processor):
            with tempfile.TemporaryDirectory() as scratch:
                venv.create(Path(scratch), with_pip=False)
                try_it(Path(scratch), wheel, check_wheel(wheel), fresh=True)
            print("  works on this machine")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
