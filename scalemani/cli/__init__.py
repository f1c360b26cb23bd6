"""The command line: `scalemani COMMAND ...`."""

from scalemani.cli.process import main

__all__ = ["main"]
