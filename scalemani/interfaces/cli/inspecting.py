"""The commands that look around: at this machine, at the parameters there are, at the results that a store holds."""

import json
from pathlib import Path
from typing import Annotated

import typer

from scalemani.interfaces.cli.options import Debug, RunFolder
from scalemani.interfaces.cli.output import say

AsJson = Annotated[bool, typer.Option("--json", help="machine-readable")]


def doctor(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="where runs are to be written")] = Path(),
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show versions, processors, memory and disk, and what is slow on this machine and why."""
    from scalemani.interfaces.cli.doctor import examine, show_examination

    found = examine(folder)
    if as_json:
        say(json.dumps(found, indent=1))
    else:
        show_examination(found)


def params(
    stage: Annotated[
        str | None, typer.Argument(metavar="STAGE", help="one stage, with what its parameters mean")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show every parameter that --set takes, its default, and its name in Python."""
    from scalemani.interfaces.cli.parameter_lists import parameter_tables, show_parameters

    tables = parameter_tables(stage)
    if as_json:
        say(json.dumps(tables, indent=1))
    else:
        show_parameters(tables, with_text=stage is not None)


def runs(
    run: RunFolder,
    prune: Annotated[bool, typer.Option("--prune", help="remove what the last run does not use")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List all results in the folder of a run, with their parameters: those of earlier commands are kept there."""
    import dataclasses

    from scalemani.interfaces.cli.summaries import show_results
    from scalemani.runs.opened import open_run
    from scalemani.runs.results import list_results, remove_unused

    opened = open_run(run)
    results = remove_unused(opened) if prune else list_results(opened)
    if as_json:
        say(json.dumps([dataclasses.asdict(result) for result in results], indent=1))
    else:
        show_results(results, removed=prune)
