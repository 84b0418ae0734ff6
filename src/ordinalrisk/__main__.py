"""``python -m ordinalrisk`` and the installed command: signals are handled before commands are imported."""

from ordinalrisk.files.interrupting import end_when_asked


def run() -> None:
    """Run the command line."""
    end_when_asked()
    from ordinalrisk import cli

    cli.run()


if __name__ == "__main__":
    run()
