"""The command line: `scalemani COMMAND ...`."""

from scalemani.interfaces.cli.process import main

__all__ = ["main"]
