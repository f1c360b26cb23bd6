"""The commands: each is a check or two and one call into the library. Heavy imports wait until a command runs."""

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scalemani.errors import ConfigError, check_known, refuse_output_in_input, warn
from scalemani.interfaces.cli import local, tuning
from scalemani.interfaces.cli.options import (
    AppendOptions,
    AsJson,
    LandmarkOptions,
    MixOptions,
    Options,
    Output,
    PlanOptions,
    PlotOptions,
    Quiet,
    ReportOptions,
    RunFolder,
    TransformOptions,
    What,
    points_and_metric,
    without_columns,
)
from scalemani.interfaces.cli.output import parameter_tables, say, say_json, show_parameters
from scalemani.interfaces.cli.parsing import Command, Commands, taking

if TYPE_CHECKING:
    from scalemani.config.params import Parameters

DEBUG = Annotated[bool, typer.Option("--debug", help="show the traceback of an error")]  # of every command
app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False)
EXAMPLES = """Examples: a map of a table by t-SNE, and clusters of it in at most 4 GB.

scalemani embed points.npy run --method t-sne --set affinities.perplexity=50

scalemani embed cells.parquet run --method spectral-clustering --set clustering.n_clusters=8 --memory 4GB"""


def show_version(requested: bool) -> None:
    """Print the version and end."""
    if requested:
        from importlib.metadata import version

        say(version("scalemani"))
        raise typer.Exit


@app.callback()
def every(
    shown: Annotated[bool, typer.Option("--version", help="show the version", callback=show_version)] = False,
) -> None:
    """Manifold learning on millions of points, out of core."""


def command(epilog: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return what registers a command with its parameters and --debug, which `process.report` looks for itself.

    Parameters
    ----------
    epilog : below its help
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def call(debug: bool = False, **values: Any) -> None:
            function(**values)

        declared = inspect.signature(function).parameters.values()
        last = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=DEBUG)
        call.__signature__ = inspect.Signature([*declared, last])  # type: ignore[attr-defined]
        call.__annotations__ = {**function.__annotations__, "debug": DEBUG}
        app.command(cls=Command, epilog=epilog)(call)
        return function

    return register


@command(epilog=EXAMPLES)
@taking(Options)
def embed(**values: Any) -> None:
    """Embed points into a run; the same command resumes it after an interruption."""
    options = Options(**values)
    params = options.parameters()  # before the imports that take a second
    from scalemani.interfaces.cli.printing import next_steps, show_label_accuracy, show_records
    from scalemani.runs.clusters import labels_or_clusters
    from scalemani.runs.walk import run

    source = options.source(params)
    with options.running() as executor:
        finished = run(source, options.run, options.method, params, executor, options.block_rows)
        executor.progress.note(next_steps(finished))
    if not options.quiet:
        show_records(finished)
    if options.labels is not None and finished.embeds:
        labels = finished.of_points(labels_or_clusters(options.labels, source.shape[0]))
        show_label_accuracy(finished, labels, partial=params.follows_classes and not options.learns_from_labels)


@command()
@taking(Options)
def stage(name: Annotated[str, typer.Argument(help="a stage of the plan", metavar="NAME")], **values: Any) -> None:
    """Run one stage whose inputs are complete: the unit that a scheduler such as Airflow runs."""
    options = Options(**values)
    params = options.parameters()
    if not may_run(name, options, params):
        say(f"{name}: nothing to do, a run with these parameters does not need it")
        return
    from scalemani.interfaces.cli.printing import show_records
    from scalemani.runs.walk import run

    source = options.source(params)
    with options.running() as executor:
        finished = run(source, options.run, options.method, params, executor, options.block_rows, name)
    if not options.quiet:
        show_records(finished)


def may_run(name: str, options: Options, params: "Parameters") -> bool:
    """Return whether a stage of the method may be part of a run with these parameters."""
    from scalemani.config.routes import ROUTES
    from scalemani.config.stages import AUTO, LLL

    names = [known.name for known in ROUTES[options.method]]
    check_known(name, names, f"{options.method} has no stage {name!r}")
    weighted = options.weights is not None
    route = params.route(options.method, weighted)
    if params.embedding.solver == AUTO:
        route += params.with_values({"embedding.solver": LLL}).route(options.method, weighted)
    return name in [known.name for known in route]


@command()
@taking(PlanOptions)
def plan(
    explain: Annotated[str | None, typer.Option(metavar="STAGE", help="list what a stage holds and writes")] = None,
    graph: Annotated[
        Path | None, typer.Option(metavar="OUT.svg", help="draw the graphs of tasks; .dot needs no extra")
    ] = None,
    as_json: AsJson = False,
    **values: Any,
) -> None:
    """Show stages, keys, missing blocks, projected memory and time, then whether the run fits; run nothing."""
    if as_json and explain is not None:
        raise ConfigError("--json shows all stages, and --explain lists what one holds: leave out one of the two")
    options = PlanOptions(**values)
    params = options.parameters()  # before the imports that take a second
    from scalemani.engine.progress import Progress
    from scalemani.interfaces.cli.printing import (
        check_graph_file,
        earlier_seconds,
        plan_facts,
        show_needs,
        show_plan,
        write_graph,
    )
    from scalemani.runs.walk import plan_run, planned_graphs
    from scalemani.store.run_store import RunStore

    if graph is not None:
        check_graph_file(graph)
    source, executor = options.source(params), options.executor(Progress())
    if source.remark:
        warn(source.remark)
    there = RunStore(options.run).is_marked
    seconds = earlier_seconds(RunStore.open(options.run), source.shape[0]) if there else {}
    planned = plan_run(source, options.run, options.method, params, executor, options.block_rows)
    if explain is not None:
        show_needs(planned, explain)
    elif as_json:
        say_json(plan_facts(planned, seconds))
    else:
        show_plan(planned, seconds)
    if graph is not None:
        with executor.started() if executor.on_cluster else contextlib.nullcontext():
            graphs = planned_graphs(planned, executor)
        write_graph(planned, graphs, graph)
        say(f"the graph of its tasks: {graph}", err=as_json)
    planned.check()  # what does not fit is shown too: the table says where the bytes are


@command()
def info(
    run: RunFolder,
    as_json: AsJson = False,
) -> None:
    """Show parameters, stages, seconds, peak memory and certificates of a run, and which of these fall short."""
    from importlib.metadata import version

    from scalemani.interfaces.cli.printing import show_records, show_verdicts
    from scalemani.interfaces.report.certificates import judged_certificates
    from scalemani.runs.opened import open_run

    opened = open_run(run)
    if as_json:
        summary = {
            "scalemani": version("scalemani"),
            "method": opened.method,
            "params": opened.params.as_dict(),
            "stages": opened.records(),
            "next_stage": opened.next_stage or None,
            "dimensions": vars(opened.dimensions),
            "input_points": opened.n_input_points,
            "verdicts": {f"{one.stage}.{one.name}": one.judged.verdict for one in judged_certificates(opened)},
        }
        say_json(summary)
        return
    say(f"{opened.method} of {opened.dimensions.n_points} points of {opened.dimensions.n_features} features")
    say(f"seed {opened.params.seed}")
    for name in opened.keys:
        values = opened.params.of_stage(name)
        if values:
            say(f"{name}: " + ", ".join(f"{key} {value}" for key, value in values.items()))
    show_records(opened)
    show_verdicts(opened)


@command()
def measure(
    run: RunFolder,
    labels: Annotated[
        str | None,
        typer.Option(
            help="the class of each point: .npy, .npz::member, text, a column of a table, or the folder of a run: its "
            "clusters"
        ),
    ] = None,
    neighbors: Annotated[int | None, typer.Option(help="neighbours a point to look at; default: 15")] = None,
    sampled: Annotated[int, typer.Option(help="points to look at; ten times as many for labels")] = 1000,
    seed: Annotated[int, typer.Option(help="of the sample")] = 0,
    as_json: AsJson = False,
) -> None:
    """Measure how good a finished run is, with standard errors: its graph, its embedding, and both against labels."""
    from scalemani.interfaces.cli.printing import show_measures
    from scalemani.interfaces.functions.run_measures import measure_run
    from scalemani.runs.opened import open_run

    measures = measure_run(open_run(run), labels, n_neighbors=neighbors, n_sampled=sampled, random_state=seed)
    show_measures(measures, as_json)


@command()
def verify(
    run: RunFolder,
    rows: Annotated[int, typer.Option(help="rows to draw, at least 10")] = 1000,
    memory: Annotated[str, typer.Option(help="budget, such as 4GB")] = "4GB",
    seed: Annotated[int | None, typer.Option(help="of the rows; default: one that nobody knew before")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Audit a run: independent code recomputes what it claims; status 1 where a claim does not hold.

    The result is written to RUN/verification.json and RUN/verification.txt; `report` then shows it.
    """
    from scalemani.runs.opened import open_run

    verification = open_run(run).verify(rows, memory, seed, verbose=not quiet)
    if as_json:
        say_json(verification.as_dict())
    else:
        say(str(verification))
    if not verification.ok:
        raise typer.Exit(1)


@command()
@taking(TransformOptions)
def transform(**values: Any) -> None:
    """Embed new points with a finished run; OUT ends in .npy, .parquet or .zarr; a file that is there is replaced.

    The same command resumes: finished blocks are in OUT.transform until all are done. The
    clusters of new points in a run of spectral clustering are written to OUT.labels.npy.
    """
    options = TransformOptions(**values)
    from scalemani.interfaces.cli.printing import certificate_text
    from scalemani.kernels.rows.metrics import EUCLIDEAN, METRICS
    from scalemani.runs.new_points.transforming import transform_points
    from scalemani.runs.opened import open_run

    refuse_output_in_input(options.out, options.new_points, options.run)
    in_a_log = options.log == "text" and not sys.stderr.isatty()  # seconds of work need no lines of progress there
    with replace(options, quiet=options.quiet or in_a_log).running() as executor:
        opened = open_run(options.run)
        new_points = without_columns(options.new_points, options.exclude)
        placed = transform_points(opened, new_points, options.out, executor)
        for message, kind in placed.warnings:
            executor.progress.warn(message, kind)
    if options.quiet:
        return
    if opened.metric != EUCLIDEAN:
        say(f"new points are compared as those of the run are: {opened.metric}, {METRICS[opened.metric].geometry}")
    if placed.certificates:
        say(f"placed: {certificate_text(placed.certificates)}")
    if placed.labels is not None:
        say(f"clusters: {placed.labels}")


# Options of `plot` that the method of a run has under the same names.
DRAWN_OPTIONS = (
    *("size", "title", "legend", "poor", "doubtful", "theme", "point_size"),
    *("cmap", "vmin", "vmax", "groups", "positions", "stretch"),
)


@command()
@taking(PlotOptions)
def plot(**values: Any) -> None:
    """Draw the embedding of a run as .png, .svg or .pdf: readable at ten million points and at hundreds of classes."""
    options = PlotOptions(**values)
    from scalemani.interfaces.report.opened import open_run
    from scalemani.io.figures import checked_colours, checked_look, checked_suffix

    checked_look(options.size, options.title, options.legend, options.theme, options.point_size)
    checked_colours(options.colours, options.cmap, options.vmin, options.vmax, options.groups)
    checked_suffix(Path(options.out))
    refuse_output_in_input(options.out, options.run, *options.files)
    opened: Any = open_run(options.run)
    opened.plot(
        options.columns(opened),
        path=options.out,
        palette=options.colours,
        panels=options.panels,
        **{name: getattr(options, name) for name in DRAWN_OPTIONS},
    )


@command()
@taking(ReportOptions)
def report(**values: Any) -> None:
    """Write one self-contained HTML page about a run: its map, certificates, timings, distributions, parameters.

    With --tiles, write a folder that shows every point of a map of any size: counts by pixel where points are many, and
    the points where one zooms in. Any file server shows it, such as `python -m http.server` in the folder.
    """
    options = ReportOptions(**values)
    from scalemani.interfaces.report.opened import open_run

    out, tiles, labels, axes = options.out, options.tiles, options.labels or (), options.axes
    if tiles is not None:
        of_page = (options.title, options.note, options.stretch)
        if any(one is not None for one in (out, options.sampled, options.positions)) or any(of_page):
            raise ConfigError(
                "--tiles writes the map alone: leave out OUT, --title, --note, --positions, --stretch and --sampled, "
                "or leave out --tiles"
            )
        refuse_output_in_input(tiles, *labels)
        say(open_run(options.run).tiles(tiles, labels, axes=axes))
        return
    if axes != (1, 2):
        raise ConfigError("--axes is for --tiles: the page has a choice of columns")
    if out is not None:
        refuse_output_in_input(out, options.run, *labels, *filter(None, [options.positions]))
    say(
        open_run(options.run).report(
            out,
            labels,
            title=options.title,
            note=options.note,
            positions=options.positions,
            stretch=options.stretch,
            n_sampled=options.sampled,
        )
    )


@command()
def export(
    run: RunFolder,
    out: Output,
    what: What = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            "--labels",
            metavar="FILE",
            help="a map with these columns: .npy, .npz::member, text, .csv, Parquet, obs of AnnData, or the folder of "
            "a run: its clusters; may be repeated",
        ),
    ] = None,
    neighbors: Annotated[bool, typer.Option("--neighbors", help="a map with the neighbours of each point")] = False,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas", help="an apostrophe before texts of a .csv that spreadsheets would run as formulas"
        ),
    ] = False,
) -> None:
    """Write the embedding of a run, or what else it has computed, rows in input order.

    OUT ends in .npy, .parquet or .zarr for an embedding, labels and eigenvalues; in .csv too for an embedding and
    labels, with the input row of each; in .png too for the clusters of an image or video; in .npz (SciPy's CSR),
    .parquet or .zarr for a graph; in .npz (SciPy's CSR) or .zarr for affinities; in .npz, .parquet or .zarr for
    landmarks, a curve and doubt; in .npz or .zarr for snapshots. Rows with gaps that were left out (--missing) have
    NaN, cluster -1 and no neighbours. Where components were left out, the input rows of the results are written to
    OUT.input_rows.npy; a .csv has them. A file that is there is replaced; a .zarr
    is not, and one that holds the same already is left as it is.

    An .h5ad is an AnnData, and so may be a .zarr: obsm X_tsne and its like, obsp distances and connectivities, as
    scanpy reads them. They are added to an AnnData that is there, of which everything else stays.

    With --what map, --labels or --neighbors, OUT.parquet is a map: columns x and y (component_1 ... where they are
    neither two nor three), those of the labels (`run`: the clusters of this run), and `neighbors`, as embedding-atlas,
    datamapplot and jupyter-scatter take them. OUT.csv is one without neighbours; spreadsheets run its texts that begin
    with =, +, - or @ as formulas: give --escape-formulas where others have written the labels.
    """
    from scalemani.interfaces.cli.printing import left_out
    from scalemani.runs.exporting import export_run
    from scalemani.runs.opened import open_run

    refuse_output_in_input(out, run, *labels or ())
    opened = open_run(run)
    input_rows = export_run(opened, out, what, labels or (), neighbors, escape_formulas)
    if input_rows is not None:
        say(f"{left_out(opened)}; the input rows of the others are in {input_rows}", err=True)


@command()
def generate(
    name: Annotated[
        str,
        typer.Argument(
            help="swiss-roll, fish-bowl, spiral, blobs, planet-pixels, deformed-digits or infinite-digits",
            metavar="NAME",
        ),
    ],
    out: Output,
    n_points: Annotated[int | None, typer.Option(help="how many points")] = None,
    seed: Annotated[int, typer.Option(help="of every random draw")] = 0,
    source: Annotated[Path | None, typer.Option(help="file the points are made from, where there is one")] = None,
) -> None:
    """Write a data set as .npy, .parquet or .zarr, and its labels next to it, block by block.

    The labels of OUT.npy are OUT.labels.npy; a file that is there by either name is replaced.
    """
    from scalemani.datasets import generator, write
    from scalemani.engine.progress import progress_for

    if source is not None:
        refuse_output_in_input(out, source)
    data = generator(name, n_points, seed, source)
    with progress_for(sys.stderr) as progress:
        progress.start(name, data.n_points, "point")
        write(data, out, progress.advance)


@command()
@taking(LandmarkOptions)
def landmarks(**arguments: Any) -> None:
    """Compare landmark methods at equal numbers of landmarks: errors, coverage, condition, time and memory.

    The share of a Gaussian kernel that Nystrom's formula loses; the distance of points to their nearest landmark; the
    condition of the systems that give points their weights; with a run whose embedding is refined, the error of the
    locally linear embedding against it; seconds and memory of the choice. Each method and seed has a line.
    """
    from scalemani.config.params import parse_assignments
    from scalemani.engine.progress import progress_for
    from scalemani.interfaces.cli.printing import show_qualities
    from scalemani.interfaces.tuning.landmarks import compare_landmarks

    metric, assignments, as_json = (arguments.pop(name) for name in ("metric", "assignments", "as_json"))
    settings = parse_assignments(assignments or []) | ({} if metric is None else {"points.metric": metric})
    arguments |= {"methods": arguments["methods"].split(","), "seeds": arguments["seeds"] or [0]}
    arguments["n_sampled"] = arguments["n_sampled"] or None
    with progress_for(sys.stderr) as progress:
        show_qualities(compare_landmarks(**arguments, settings=settings, progress=progress), as_json)


@command()
def align(
    run: RunFolder,
    other: Annotated[str, typer.Argument(help="the run that is the reference", metavar="OTHER")],
    ids: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--ids",
            metavar="FILE FILE",
            help="an identifier for each row of each run: .npy, .npz::member or text; default: rows at the same "
            "position",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the Procrustes transform of the embedding of RUN onto that of OTHER, by the points that both have.

    Positions x of RUN go to scale x rotation + translation: a rotation or reflection, one scale, a translation.
    """
    from scalemani.interfaces.cli.printing import show_alignment
    from scalemani.runs.aligning import align as align_runs

    show_alignment(align_runs(run, other, ids), as_json)


@command()
@taking(MixOptions)
def mix(**arguments: Any) -> None:
    """Write one W of several groups of columns of the same points, each with its metric.

    `embed OUT RUN --set affinities.kind=precomputed` embeds it by any method.
    """
    from scalemani.interfaces.functions.mixed import write_mixed_affinities

    out, groups = (arguments.pop(name) for name in ("out", "groups"))
    pairs = [points_and_metric(group) for group in groups]
    refuse_output_in_input(out, *(points for points, _ in pairs))
    write_mixed_affinities(out, pairs, **arguments)


@command()
@taking(AppendOptions)
def append(**values: Any) -> None:
    """Append points to a finished run: the search costs what they cost, and the embedding resumes.

    The earlier run stays the one in the folder until the new one is complete. The same command resumes after
    an interruption, and does nothing where the run ends with these points. Results of the earlier run stay in the
    folder: `scalemani runs RUN --prune` removes them.
    """
    options = AppendOptions(**values)
    from scalemani.interfaces.cli.printing import show_records
    from scalemani.runs.appending import append_points
    from scalemani.runs.opened import open_run

    refuse_output_in_input(options.run, options.new_points)
    with options.running() as executor:
        new_points = without_columns(options.new_points, options.exclude)
        grown = append_points(open_run(options.run), new_points, executor, options.freeze)
    if options.quiet:
        return
    show_records(grown.run)
    if grown.moved is not None:
        say(f"appended {grown.appended} points; the others moved by {grown.moved:.4f} of their spread")


command()(tuning.tune)
command()(local.doubt)
command()(local.stretch)
command()(local.features)


@command()
def params(
    stage: Annotated[
        str | None, typer.Argument(metavar="STAGE", help="one stage, with what its parameters mean")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show every parameter that --set takes, its default, and its name in Python."""
    tables = parameter_tables(stage)
    if as_json:
        say_json(tables)
    else:
        show_parameters(tables, with_text=stage is not None)


@command()
def runs(
    run: RunFolder,
    prune: Annotated[bool, typer.Option("--prune", help="remove what the last run does not use")] = False,
    as_json: AsJson = False,
) -> None:
    """List all results in the folder of a run, with their parameters: those of earlier commands stay there."""
    from scalemani.interfaces.cli.printing import show_results
    from scalemani.runs.opened import open_run
    from scalemani.runs.stored_results import list_results, remove_unused

    opened = open_run(run)
    results = remove_unused(opened) if prune else list_results(opened)
    if as_json:
        say_json([asdict(result) for result in results])
    else:
        show_results(results, removed=prune)


@command()
def doctor(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="where runs are to be written")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Show versions, processors, memory and disk, and what is slow on this machine and why."""
    from scalemani.interfaces.cli.doctor import examine, show_examination

    examination = examine(folder)
    if as_json:
        say_json(examination)
    else:
        show_examination(examination)
