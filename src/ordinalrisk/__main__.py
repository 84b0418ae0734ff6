"""``python -m ordinalrisk``."""

from ordinalrisk.cli import app

if __name__ == "__main__":
    app(prog_name="ordinalrisk")
