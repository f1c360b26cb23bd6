"""The command that compares ways to choose landmarks."""

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from scalemani.interfaces.cli.options import Assignments, Debug, Memory, Metric, Workers, taking_options

Compared = Annotated[str, typer.Argument(help="a run, or points as `embed` takes them", metavar="RUN|POINTS")]
Methods = Annotated[
    str | None,
    typer.Option(help="names of landmarks.method, with commas; default: random,spread,kmeans,kmeans++,minmax,dpp"),
]
Number = Annotated[int | None, typer.Option("--landmarks", help="how many; default: as many as the run has, or 1,000")]
Seeds = Annotated[list[int] | None, typer.Option(help="of the draws; may be repeated; default: 0")]
Sampled = Annotated[int, typer.Option(help="points to look at; 0: all")]
Sigma = Annotated[float | None, typer.Option(help="of the kernel that Nystrom's formula approximates")]
AsJson = Annotated[bool, typer.Option("--json", help="machine-readable: every method and seed")]


@dataclass(frozen=True)
class Comparing:
    """What `landmarks` is given."""

    points: Compared
    methods: Methods = None
    number: Number = None
    seed: Seeds = None
    sampled: Sampled = 10_000
    sigma: Sigma = None
    metric: Metric = None
    assignments: Assignments = None
    workers: Workers = None
    memory: Memory = None
    as_json: AsJson = False
    debug: Debug = False


@taking_options
def landmarks(options: Comparing) -> None:
    """Compare landmark methods at equal numbers of landmarks: errors, coverage, condition, time and memory.

    The share of a Gaussian kernel that Nystrom's formula loses; the distance of points to their nearest landmark; the
    condition of the systems that give points their weights; with a run whose embedding is refined, the error of the
    locally linear embedding against it; seconds and memory of the choice. Numbers are means over seeds, with standard
    errors; of the seconds the least is shown, of the memory the most.
    """
    from scalemani.config.params import parse_assignments
    from scalemani.engine.progress import progress_for
    from scalemani.interfaces.cli.tables import show_qualities
    from scalemani.interfaces.functions.landmark_comparison import COMPARED, compare_landmarks

    metric = [] if options.metric is None else [f"points.metric={options.metric}"]
    with progress_for(sys.stderr) as progress:
        found = compare_landmarks(
            options.points,
            options.number,
            COMPARED if options.methods is None else options.methods.split(","),
            options.seed or (0,),
            sigma=options.sigma,
            n_sampled=options.sampled or None,
            settings=parse_assignments([*(options.assignments or []), *metric]),
            workers=options.workers,
            memory=options.memory,
            progress=progress,
        )
    show_qualities(found, options.as_json)
