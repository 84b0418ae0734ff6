"""What ``make dist`` has built, looked at and tried: ``python tests/dist_check.py dist``.

The wheel is installed into a new environment without extras and used there, away from the sources; then the
source archive is built, must give the same files, and is tested in the same way.
"""

import re
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from email.parser import BytesParser
from pathlib import Path

ROOT = Path(__file__).parents[1]
SMOKE = Path(__file__).with_name("dist_smoke.py")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
BESIDE_THE_PACKAGE = {
    *("README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE"),
    *("pyproject.toml", "hatch_build.py", ".gitignore"),
}
LIBRARY = "ordinalrisk/growth/kernels/native/_kernels"
"""What the C sources of the package become in a wheel, without its suffix."""


def package_files():
    """All that belongs to the package: its modules, and what they read or are built from."""
    package = ROOT / "src" / "ordinalrisk"
    found = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    names = {f"ordinalrisk/{path.relative_to(package).as_posix()}" for path in found}
    return {name for name in names if not name.startswith(LIBRARY)}


def contents(wheel):
    """``{name: bytes}`` of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def check_wheel(wheel):
    """It has the package with all its data, and nothing else; its version and metadata."""
    files = contents(wheel)
    (metadata_file,) = (name for name in files if name.endswith(".dist-info/METADATA"))
    info = metadata_file.rpartition("/")[0]
    in_package = {name for name in files if not name.startswith(f"{info}/")}
    (library,) = (name for name in in_package if name.startswith(LIBRARY))
    assert in_package - {library} == {name for name in package_files() if not name.endswith((".c", ".h"))}
    assert b"Root-Is-Purelib: false" in files[f"{info}/WHEEL"]
    assert f"{info}/licenses/LICENSE" in files
    assert b"ordinalrisk = ordinalrisk.__main__:run" in files[f"{info}/entry_points.txt"]
    metadata = BytesParser().parsebytes(files[metadata_file])
    assert metadata["Description-Content-Type"] == "text/markdown"
    readme = metadata.get_payload()
    assert readme.startswith("# ordinalrisk")
    assert readme.count("\n") > 80
    assert not re.findall(r"\]\((?!https?:|#)([^)]+)\)", readme)  # files that a package index has not
    print(f"{wheel.name}: {len(files)} files")
    return metadata["Version"]


def check_source(source):
    """It has the package and the files of the root folder; the tests stay in the repository."""
    with tarfile.open(source) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    assert {name.removeprefix("src/") for name in names if name.startswith("src/")} == package_files()
    beside = {name for name in names if not name.startswith("src/")}
    assert beside == BESIDE_THE_PACKAGE | {"PKG-INFO"}, beside
    print(f"{source.name}: {len(names)} files")


def try_it(environment, wheel, version, *, fresh):
    """Install it and use it; dependencies are needed only once."""
    python = environment / "bin" / "python"
    rest = ["--constraint", ROOT / "constraints.txt"] if fresh else ["--no-deps", "--force-reinstall"]
    subprocess.run([*PIP, "--python", python, "install", *rest, wheel], check=True)
    with tempfile.TemporaryDirectory() as elsewhere:
        subprocess.run([python, "-I", SMOKE, version], check=True, cwd=elsewhere)


def main(folder):
    """All of it, with the seconds that each part takes."""
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    version = check_wheel(wheel)
    check_source(source)
    assert wheel.name.split("-")[1] == source.name.removesuffix(".tar.gz").split("-")[1] == version
    with tempfile.TemporaryDirectory() as scratch:
        start = time.monotonic()
        venv.create(Path(scratch) / "environment", with_pip=False)
        try_it(Path(scratch) / "environment", wheel, version, fresh=True)
        print(f"the wheel works ({time.monotonic() - start:.0f} s)")
        start = time.monotonic()
        subprocess.run(
            [*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", scratch, source], check=True
        )
        again = Path(scratch) / wheel.name
        assert contents(again) == contents(wheel), "the source archive gives another wheel"
        try_it(Path(scratch) / "environment", again, version, fresh=False)
        print(f"the source archive works ({time.monotonic() - start:.0f} s)")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
