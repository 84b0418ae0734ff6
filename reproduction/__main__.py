"""``python -m reproduction``: signals are handled before the command is imported."""

from ordinalrisk.files.interrupting import end_when_asked

if __name__ == "__main__":
    end_when_asked()
    from ordinalrisk.cli import terminal
    from reproduction.command import app

    terminal.run(app, "python -m reproduction")
