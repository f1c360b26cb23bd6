"""The commands: each is a check or two and one call into the library. Heavy imports wait until a command runs."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from scalemani.errors import ConfigError, nearest_name
from scalemani.interfaces.cli import inspecting, landmarks, several_runs, tuning
from scalemani.interfaces.cli.options import (
    Debug,
    EscapeFormulas,
    MapLabels,
    MapNeighbors,
    Options,
    Output,
    Picture,
    Placing,
    ReportLabels,
    ReportOutput,
    RunFolder,
    What,
    refuse_output_in_input,
    taking_options,
)
from scalemani.interfaces.cli.output import say

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def show_version(asked: bool) -> None:
    """Print the version and end."""
    if asked:
        from importlib.metadata import version

        say(version("scalemani"))
        raise typer.Exit


@app.callback()
def every(
    shown: Annotated[bool, typer.Option("--version", help="show the version", callback=show_version)] = False,
) -> None:
    """Manifold learning on millions of points, out of core."""


@app.command()
@taking_options
def embed(options: Options) -> None:
    """Embed points into a run; running it again goes on where it stopped."""
    compute(options)


@app.command()
@taking_options
def stage(name: Annotated[str, typer.Argument(help="a stage of the plan", metavar="NAME")], options: Options) -> None:
    """Run one stage whose inputs are complete: the unit that a scheduler such as Airflow runs."""
    from scalemani.config.routes import CLASSES, DUPLICATES, LANDMARK_COVARIANCES, ROUTES, WEIGHTS
    from scalemani.config.routing import route

    params = options.parameters()
    names = [known.name for known in ROUTES[options.method]]
    if name not in names:
        raise ConfigError(f"{options.method} has no stage {name!r}: {nearest_name(name, names)}")
    if name not in [known.name for known in params.route(options.method, options.weights is not None)]:
        target_weight = "symmetric_affinities.target_weight"
        without = {WEIGHTS.name: "--weights", DUPLICATES.name: "--deduplicate", CLASSES.name: target_weight}
        if params.landmark_graph.kind != "bhattacharyya":
            without[LANDMARK_COVARIANCES.name] = "landmark_graph.kind=bhattacharyya"
        solver = params.embedding.solver
        needed = route(options.method, solver, params.points.metric)
        by_solver = name not in [known.name for known in needed]
        other = "neighbors.method 'window'" if params.neighbors.by_window else f"layout.init {params.layout.init!r}"
        reason = f"embedding.solver {solver!r}" if by_solver else other
        reason = f"a run without {without[name]}" if name in without else reason
        say(f"{name}: nothing to do, {reason} does not need it")
        return
    compute(options, name)


def compute(options: Options, only: str | None = None) -> None:
    """Run all stages or one, then say what was found."""
    params = options.parameters()  # before the imports that take a second
    from scalemani.engine.memory.glibc import limit_arenas
    from scalemani.engine.progress import progress_for
    from scalemani.interfaces.cli.summaries import next_steps, show_label_accuracy, show_records
    from scalemani.io.sources import open_labels
    from scalemani.runs.walk import run

    source = options.source(params)
    with progress_for(sys.stderr, options.log, options.quiet) as progress:
        executor = options.executor(progress)
        if executor.memory is not None:
            limit_arenas(executor.memory)
        finished = run(source, options.run, options.method, params, executor, options.block_rows, only)
        if only is None:
            progress.note(next_steps(finished))
    if options.quiet:
        return
    show_records(finished)
    if options.labels is not None and only is None and finished.embeds:
        show_label_accuracy(finished, finished.of_points(open_labels(options.labels, source.shape[0])))


@app.command()
@taking_options
def plan(
    options: Options,
    explain: Annotated[str | None, typer.Option(metavar="STAGE", help="list what a stage holds and writes")] = None,
    graph: Annotated[
        Path | None, typer.Option(metavar="OUT.svg", help="draw stages and blocks; .dot needs no Graphviz")
    ] = None,
) -> None:
    """Show stages, keys, missing blocks, projected memory and time, then whether the run fits; run nothing."""
    params = options.parameters()  # before the imports that take a second
    from scalemani.engine.progress import Silent
    from scalemani.interfaces.cli.graphs import check_graph_file, write_graph
    from scalemani.interfaces.cli.needs import show_needs
    from scalemani.interfaces.cli.summaries import earlier_seconds, show_plan
    from scalemani.runs.walk import plan_run
    from scalemani.store.run_store import RunStore

    if graph is not None:
        check_graph_file(graph)
    source, executor = options.source(params), options.executor(Silent())
    there = RunStore(options.run).is_marked
    seconds = earlier_seconds(RunStore.open(options.run), source.shape[0]) if there else {}
    planned = plan_run(source, options.run, options.method, params, executor, options.block_rows)
    if explain is not None:
        show_needs(planned, explain)
    else:
        show_plan(planned, seconds)
    if graph is not None:
        write_graph(planned, graph)
        say(f"the graph of its tasks: {graph}")
    planned.check()  # what does not fit is shown too: the table says where the bytes are


@app.command()
def info(
    run: RunFolder,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
    debug: Debug = False,
) -> None:
    """Show parameters, stages, seconds, peak memory and certificates of a run, and which of these fall short."""
    from importlib.metadata import version

    from scalemani.interfaces.cli.summaries import show_records, show_verdicts
    from scalemani.interfaces.report.certificates import judged_certificates
    from scalemani.runs.opened import open_run

    opened = open_run(run)
    if as_json:
        summary = {"method": opened.method, "params": opened.params.as_dict(), "stages": opened.records()}
        verdicts = {f"{one.stage}.{one.name}": one.judged.verdict for one in judged_certificates(opened)}
        sizes = {"dimensions": vars(opened.dimensions), "input_points": opened.n_input_points}
        say(json.dumps({"scalemani": version("scalemani"), **summary, **sizes, "verdicts": verdicts}, indent=1))
        return
    say(f"{opened.method} of {opened.dimensions.n_points} points of {opened.dimensions.n_features} features")
    say(f"seed {opened.params.seed}")
    for name in opened.keys:
        values = opened.params.of_stage(name)
        if values:
            say(f"{name}: " + ", ".join(f"{key} {value}" for key, value in values.items()))
    show_records(opened)
    show_verdicts(opened)


@app.command()
def measure(
    run: RunFolder,
    labels: Annotated[
        str | None,
        typer.Option(help="the class of each point, in a file: .npy, .npz::member, text, or a column of a table"),
    ] = None,
    neighbors: Annotated[int | None, typer.Option(help="neighbours a point to look at; default: 15")] = None,
    sampled: Annotated[int, typer.Option(help="points to look at; ten times as many for labels")] = 1000,
    seed: Annotated[int, typer.Option(help="of the sample")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
    debug: Debug = False,
) -> None:
    """Measure how good a finished run is, with standard errors: its graph, its embedding, and both against labels."""
    from scalemani.interfaces.cli.summaries import show_measures
    from scalemani.interfaces.functions.run_measures import measure_run
    from scalemani.runs.opened import open_run

    found = measure_run(open_run(run), labels, n_neighbors=neighbors, n_sampled=sampled, random_state=seed)
    show_measures(found, as_json)


@app.command()
@taking_options
def transform(options: Placing) -> None:
    """Embed new points with a finished run; OUT ends in .npy, .parquet or .zarr; a file that is there is replaced.

    The same command goes on where it stopped: finished blocks are kept in OUT.transform until all are done. The
    clusters of new points in a run of spectral clustering go beside OUT: OUT.labels.npy.
    """
    from scalemani.engine.memory.glibc import limit_arenas
    from scalemani.engine.progress import progress_for
    from scalemani.interfaces.cli.summaries import certificate_text
    from scalemani.kernels.rows.metrics import EUCLIDEAN, METRICS
    from scalemani.runs.new_points.transforming import transform_points
    from scalemani.runs.opened import open_run

    refuse_output_in_input(options.out, options.new_points, options.run)
    in_a_log = options.log == "text" and not sys.stderr.isatty()  # seconds of work need no lines of progress there
    with progress_for(sys.stderr, options.log, options.quiet or in_a_log) as progress:
        executor = options.executor(progress)
        if executor.memory is not None:
            limit_arenas(executor.memory)
        opened = open_run(options.run)
        placed = transform_points(opened, options.new_points, options.out, executor)
        for message, kind in placed.warnings:
            progress.warn(message, kind)
    if options.quiet:
        return
    if opened.metric != EUCLIDEAN:
        say(f"new points are compared as those of the run are: {opened.metric}, {METRICS[opened.metric].geometry}")
    if placed.certificates:
        say(f"placed: {certificate_text(placed.certificates)}")
    if placed.labels is not None:
        say(f"clusters: {placed.labels}")


@app.command()
@taking_options
def plot(options: Picture) -> None:
    """Draw the embedding of a run as .png, .svg or .pdf: readable at ten million points and at hundreds of classes."""
    from scalemani.io.figures import checked_look, checked_suffix, embedding_picture
    from scalemani.runs.opened import open_run
    from scalemani.runs.poor_points import poor_points

    look = checked_look(options.size, options.title, options.legend, options.theme, options.point_size)
    checked_suffix(Path(options.out))
    refuse_output_in_input(options.out, options.run, *options.files)
    opened = open_run(options.run)
    marked = poor_points(opened) if options.poor else None
    embedding_picture(opened.embedding, options.out, options.columns(opened), look, marked)


@app.command()
def report(
    run: RunFolder,
    out: ReportOutput = None,
    labels: ReportLabels = None,
    sampled: Annotated[int | None, typer.Option(help="points by which quality is measured; 0: none")] = None,
    debug: Debug = False,
) -> None:
    """Write one self-contained HTML page about a run: its map, certificates, timings, distributions, parameters."""
    from scalemani.interfaces.report.opened import open_run

    if out is not None:
        refuse_output_in_input(out, run, *(labels or []))
    say(open_run(run).report(out, labels or (), n_sampled=sampled))


@app.command()
def export(
    run: RunFolder,
    out: Output,
    what: What = None,
    labels: MapLabels = None,
    neighbors: MapNeighbors = False,
    escape_formulas: EscapeFormulas = False,
    debug: Debug = False,
) -> None:
    """Write the embedding of a run, or what else it has computed, rows in input order.

    OUT ends in .npy, .parquet or .zarr for an embedding, labels and eigenvalues; in .csv too for an embedding and
    labels, with the input row of each; in .png too for the clusters of an image or video; in .npz (SciPy's CSR),
    .parquet or .zarr for a graph; in .npz (SciPy's CSR) or .zarr for affinities; in .npz, .parquet or .zarr for
    landmarks and a curve; in .npz or .zarr for snapshots. Where components were left out, the input rows that the
    results have go beside it: OUT.input_rows.npy; a .csv has them. A file that is there is replaced; a .zarr
    is not, and one that holds the same already is left as it is.

    An .h5ad is an AnnData, and so may be a .zarr: obsm X_tsne and its like, obsp distances and connectivities, as
    scanpy reads them. They are added to an AnnData that is there, of which everything else stays.

    With --labels or --neighbors, OUT.parquet is a map: columns x and y, those of the labels, and `neighbors`, as
    embedding-atlas, datamapplot and jupyter-scatter take them. OUT.csv is one without neighbours; spreadsheets run its
    texts that begin with =, +, - or @ as formulas: give --escape-formulas where others have written the labels.
    """
    from scalemani.interfaces.cli.summaries import left_out
    from scalemani.io.export import beside, write_rows
    from scalemani.runs.exporting import ANNDATA, CSV, export_map, export_result
    from scalemani.runs.opened import open_run

    refuse_output_in_input(out, run, *(labels or ()))
    if escape_formulas and not (labels and out.lower().endswith(CSV)):
        raise ConfigError("--escape-formulas is for the texts of a .csv with --labels: leave it out")
    opened = open_run(run)
    if labels or neighbors:
        if what is not None:
            raise ConfigError(f"--what {what} is no map: leave out --labels and --neighbors, or --what")
        export_map(opened, out, labels or (), neighbors, escape_formulas)
        return
    rows = opened.input_rows
    if export_result(opened, out, what) != ANNDATA and rows is not None and not out.lower().endswith(CSV):
        write_rows(lambda start, stop: rows[start:stop], rows.shape, rows.dtype, beside(out, "input_rows"))
        say(f"{left_out(opened)}; the input rows of the others are in {beside(out, 'input_rows')}", err=True)


@app.command()
def generate(
    name: Annotated[
        str,
        typer.Argument(
            help="swiss-roll, fish-bowl, spiral, blobs, deformed-digits, infinite-digits or walking-figure",
            metavar="NAME",
        ),
    ],
    out: Output,
    n_points: Annotated[int | None, typer.Option(help="how many points")] = None,
    seed: Annotated[int, typer.Option(help="of every random draw")] = 0,
    source: Annotated[Path | None, typer.Option(help="file the points are made from, where there is one")] = None,
    debug: Debug = False,
) -> None:
    """Write a data set as .npy, .parquet or .zarr, and its labels beside it, block by block.

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


for command in (
    landmarks.landmarks,
    several_runs.align,
    several_runs.append,
    tuning.tune,
    inspecting.params,
    inspecting.runs,
    inspecting.doctor,
):
    app.command()(command)
