"""An installed package, used as someone would who has nothing else: run by ``dist_check.py``."""

import importlib.metadata
import subprocess
import sys
import warnings
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

HERE = Path(sys.executable).parent


def command(*arguments):
    """The command that was installed with it."""
    return subprocess.run([HERE / "ordinalrisk", *arguments], capture_output=True, text=True)


def main(expected_version):
    """Import it, use it, and ask for what is not installed."""
    import numpy as np

    import ordinalrisk as orisk

    warnings.simplefilter("error")  # there is one where the C kernels can't be loaded

    assert Path(orisk.__file__).is_relative_to(sys.prefix), orisk.__file__
    assert orisk.__version__ == importlib.metadata.version("ordinalrisk") == expected_version
    extras = [
        name for name in ("pyarrow", "matplotlib", "jinja2", "plotly", "dask", "torch") if find_spec(name)
    ]
    assert extras == [], f"not a clean environment: {extras}"

    data = files("ordinalrisk")
    for name in ("py.typed", "report/page.html.j2", "report/page.css", "report/page.js", "report/charts.js"):
        assert data.joinpath(name).is_file(), name

    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(5), 200)
    y = (proba.cumsum(axis=1)[:, :-1] < rng.random((200, 1))).sum(axis=1)
    controller = orisk.RiskController(alpha=0.1).calibrate(proba[:100], y[:100])
    sets = controller.predict_set(proba[100:])
    controller.save("cal.json")
    assert orisk.RiskController.load("cal.json").predict_set(proba[100:]) == sets
    assert 0 < orisk.metrics.risk(y[100:], sets, controller.loss) < 0.25

    assert command("--version").stdout == f"ordinalrisk {expected_version}\n"
    assert "calibrate" in command("--help").stdout
    Path("new.csv").write_text("p0,p1,p2,p3,p4\n0.2,0.2,0.2,0.2,0.2\n")
    refused = command("predict", "cal.json", "new.csv", "-o", "sets.csv")
    assert refused.returncode == 1
    assert 'pip install "ordinalrisk[files]"' in refused.stderr, refused.stderr
    assert not Path("sets.csv").exists()


if __name__ == "__main__":
    main(*sys.argv[1:])
