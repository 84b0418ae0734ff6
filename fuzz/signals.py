"""A command that is interrupted at any moment leaves complete files or none, and no temporary files."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import ordinalrisk as orisk
from fuzz.checking import WrongError, rows

CASES_A_ROUND = 2
_ENDS = {0, 130, 143, -signal.SIGINT, -signal.SIGTERM}  # by the signal itself before Python can handle it


def cases() -> st.SearchStrategy[dict[str, Any]]:
    """Which signal, and after how many thousandths of a second."""
    return st.fixed_dictionaries(
        {"signal": st.sampled_from(["SIGINT", "SIGTERM"]), "after_ms": st.integers(0, 3000)}
    )


def check(case: dict[str, Any]) -> None:
    """The command ends, says so in a line, and leaves a whole calibration or none."""
    proba, y = rows(20_000, 4, 0)
    lines = (",".join(map(repr, row)) + f",{label}\n" for row, label in zip(proba.tolist(), y, strict=True))
    Path("rows.csv").write_text("p0,p1,p2,p3,label\n" + "".join(lines))
    command = [
        sys.executable,
        "-m",
        "ordinalrisk",
        "calibrate",
        "rows.csv",
        "--alpha",
        "0.1",
        "-o",
        "cal.json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(case["after_ms"] / 1000)
        process.send_signal(getattr(signal, case["signal"]))
        try:
            _, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise WrongError("hang: the command went on for 60 s after the signal") from None
    if "init_import_site" in errors:
        return  # Python itself was starting, and not one line of the library had run
    if process.returncode not in _ENDS or "Traceback" in errors:
        raise WrongError(f"unclean end: {process.returncode}, {errors[-2000:]}")
    if left := {path.name for path in Path().iterdir()} - {"rows.csv", "cal.json"}:
        raise WrongError(f"files left: {left}")
    if Path("cal.json").exists():
        orisk.RiskController.load("cal.json")


def warm_up() -> None:
    """Processes in the background may ignore interrupts, and so would those that they start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
