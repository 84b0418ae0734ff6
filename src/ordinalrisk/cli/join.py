"""``ordinalrisk join``: several calibrations as one, which keeps the guarantee of each."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated

import typer

from ordinalrisk.cli import options, terminal


def join(
    calibrations: Annotated[
        list[str], typer.Argument(metavar="CALIBRATION...", help="Calibrations, as written by calibrate.")
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The joint calibration, as JSON.")],
    verify: options.Verify = None,
    sign: options.Sign = None,
) -> None:
    """Join several calibrations into one, which keeps the guarantee of each.

    The sets of the joint calibration reach as far as each guarantee needs. The calibrations can have
    different losses, different sides or different columns of groups, and can be made on the same rows or on
    others. Each guarantee has the name of its file. predict and evaluate take the joint calibration.

    \b
    Examples:
      ordinalrisk join worse.json milder.json -o joint.json
      ordinalrisk join by_hospital.json by_sex.json -o joint.json
    """  # noqa: D301
    places, written = [options.place(each) for each in calibrations], options.place(out)
    if out == "-":
        terminal.fail("--out: name a file.")
    terminal.require_writable_file(written, "--out", *places)
    if sign is not None:
        options.require_private_key(sign, written)

    from ordinalrisk.joint_controller import JointController

    names = [PurePosixPath(str(each).replace("\\", "/")).stem for each in places]
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        terminal.fail(f"two files are called {twice[0]!r}; rename one: guarantees are named by their files.")
    console = terminal.printer()
    with terminal.noting_warnings(console), terminal.bad_data_is_one_line():
        loaded = [options.loaded(each, verify, None, needs_seed=False) for each in places]
        joint = JointController.join(dict(zip(names, loaded, strict=True)))
    with terminal.writing_to(written):
        joint.save(written, key=sign)
    console.print(str(joint.guarantee()))
    signature = "" if sign is None else f" and its signature {written}.sig"
    console.print(f"Wrote {written}{signature}")
