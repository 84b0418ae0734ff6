"""``python -m ordinalrisk``."""

from ordinalrisk.cli import run

if __name__ == "__main__":
    run()
