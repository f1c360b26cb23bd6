"""python -m scalemani: the command line."""

from scalemani.interfaces.cli import main

main()
