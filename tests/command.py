"""The command ``ordinalrisk``: run in this process, or as users run it."""

import os
import subprocess
import sys
from pathlib import Path

import typer
from sizes import TIDY_UP_PATIENTLY
from typer.testing import CliRunner

from ordinalrisk.cli import app

INSTALLED = Path(sys.executable).with_name("ordinalrisk")
PATIENT = [sys.executable, "-c", f"{TIDY_UP_PATIENTLY}\nfrom ordinalrisk.__main__ import run\nrun()"]
"""The command, which takes as long to tidy up as it needs, however busy the machine is."""
NOT_A_TERMINAL = {"COLUMNS": "80", "FORCE_COLOR": None, "TTY_COMPATIBLE": None}
APP = typer.main.get_command(app)
COMMANDS = APP.commands
"""Each command by its name."""


def run(*arguments, app=app, env=NOT_A_TERMINAL, **options):
    """Run the command in this process; an error that it does not handle is raised here."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env=env, **options)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def succeeds(*arguments, **options):
    """Run the command, which must end with code 0."""
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.stderr
    return result


def refusal(code, *arguments):
    """Run a command that must be refused, and return the one line of its error after any notes."""
    result = run(*arguments)
    *notes, line = result.stderr.splitlines()
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert all(note.startswith("Note: ") for note in notes)
    assert line.startswith("Error: ")
    return line.removeprefix("Error: ")


def run_installed(*arguments, **options):
    """Run the installed command in a process of its own."""
    environment = {**os.environ, "COLUMNS": "80"}
    return subprocess.run(
        [INSTALLED, *map(str, arguments)], capture_output=True, check=False, env=environment, **options
    )


def require_whole_small_pngs(folder, names):
    """These pictures are in a folder, each to its end, and few bytes."""
    for name in names:
        picture = (folder / name).read_bytes()
        assert picture.startswith(b"\x89PNG\r\n\x1a\n")
        assert picture.endswith(b"IEND\xaeB`\x82")
        assert len(picture) < 300_000
