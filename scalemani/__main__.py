"""python -m scalemani: the command line."""

from scalemani.cli import main

main()
