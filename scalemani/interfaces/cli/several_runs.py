"""The commands on runs that share points: how two embeddings lie to each other, and more points into a run."""

import sys
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from scalemani.interfaces.cli.options import (
    Debug,
    Memory,
    Points,
    Quiet,
    RunFolder,
    Scheduler,
    Tls,
    Wait,
    Workers,
    executor_of,
    refuse_output_in_input,
    taking_options,
)
from scalemani.interfaces.cli.output import say

OtherRun = Annotated[str, typer.Argument(help="the run that is the reference", metavar="OTHER")]
SharedIds = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--ids",
        metavar="FILE FILE",
        help="an identifier for each row of each run: .npy, .npz::member or text; default: rows at the same position",
    ),
]
Freeze = Annotated[bool, typer.Option("--freeze", help="a descent keeps the earlier points exactly where they are")]


@dataclass(frozen=True)
class Growing:
    """What `append` is given."""

    run: RunFolder
    new_points: Points
    freeze: Freeze = False
    scheduler: Scheduler = "threads"
    workers: Workers = None
    memory: Memory = None
    tls: Tls = None
    wait: Wait = 0.0
    quiet: Quiet = False
    debug: Debug = False

    def executor(self, progress: Any) -> Any:
        """Return where tasks run, how many at once and in how much memory."""
        return executor_of(self, progress, wait=self.wait)


def align(
    run: RunFolder,
    other: OtherRun,
    ids: SharedIds = None,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
    debug: Debug = False,
) -> None:
    """Print the Procrustes transform of the embedding of RUN onto that of OTHER, by the points that both have.

    Positions x of RUN go to scale x rotation + translation: a rotation or reflection, one scale, a translation.
    """
    from scalemani.interfaces.cli.summaries import show_alignment
    from scalemani.runs.several.aligning import align as align_runs

    show_alignment(align_runs(run, other, ids), as_json)


@taking_options
def append(options: Growing) -> None:
    """Append points to a finished run: the search costs what they cost, and the embedding goes on from where it was.

    The earlier run stays the one in the folder until the new one is complete. The same command goes on where it
    stopped, and does nothing where the run ends with these points. Results of the earlier run stay in the folder:
    `scalemani runs RUN --prune` removes them.
    """
    from scalemani.engine.memory.glibc import limit_arenas
    from scalemani.engine.progress import progress_for
    from scalemani.interfaces.cli.summaries import show_records
    from scalemani.runs.opened import open_run
    from scalemani.runs.several.appending import append_points

    refuse_output_in_input(options.run, options.new_points)
    with progress_for(sys.stderr, quiet=options.quiet) as progress:
        executor = options.executor(progress)
        if executor.memory is not None:
            limit_arenas(executor.memory)
        grown = append_points(open_run(options.run), options.new_points, executor, options.freeze)
    if options.quiet:
        return
    show_records(grown.run)
    if grown.moved is not None:
        say(f"appended {grown.appended} points; the others moved by {grown.moved:.4f} of their spread")
