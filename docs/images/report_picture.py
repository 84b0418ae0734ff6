"""Draw report.png: the first screen of the report of examples/retina_grader.sh, in Chromium.

python docs/images/report_picture.py        needs make test's .venv and Chromium
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
SCRIPTS = str(Path(sys.executable).parent)

with tempfile.TemporaryDirectory() as folder:
    subprocess.run(
        ["bash", HERE.parents[1] / "examples" / "retina_grader.sh", folder],
        env={**os.environ, "PATH": SCRIPTS + os.pathsep + os.environ["PATH"]},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1100, "height": 1590})
        page.goto((Path(folder) / "report.html").as_uri())
        page.wait_for_timeout(2_000)
        page.screenshot(path=HERE / "report.png")
        browser.close()
