"""Options that several commands share, and the objects that the library makes of them."""

import contextlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scalemani.config.metrics import METRIC_NAMES
from scalemani.config.routes import ROUTES, takes_labels
from scalemani.config.stages import COMPUTED_REFERENCES, COMPUTED_STARTS, INPUT_LANDMARKS, INPUT_LISTS, INPUT_START
from scalemani.errors import ConfigError, comparable_place, refuse_output_in_input

if TYPE_CHECKING:
    from scalemani.engine.progress import Progress
    from scalemani.engine.workers.executor import Executor

Points = Annotated[
    str,
    typer.Argument(
        help=".npy, .npz::member, zarr, Parquet, .csv, AnnData, sparse .npz; with neighbors.method=window an image or "
        "video",
        metavar="POINTS",
    ),
]
RunFolder = Annotated[str, typer.Argument(help="folder of the run, or s3://bucket/name", metavar="RUN")]
Positions = Annotated[
    str | None,
    typer.Option(metavar="FILE::X,Y", help="where points are drawn, in place of the embedding: files as of points"),
]
Output = Annotated[str, typer.Argument(metavar="OUT", help="where to write; its suffix chooses the format")]


def methods(incomplete: str) -> list[str]:
    """Return the methods whose names begin as a shell has them so far."""
    return [name for name in ROUTES if name.startswith(incomplete)]


Metric = Annotated[
    str | None,
    typer.Option(
        help=f"how points are compared: {', '.join(METRIC_NAMES)}; default: {METRIC_NAMES[0]}; hamming and jaccard are "
        "of bits; minkowski:P has a power P; module:function or path.py::function names a function of two rows that "
        "numba compiles; precomputed: POINTS are neighbour lists or distances (for affinities: --set "
        "affinities.kind=precomputed); the same as --set points.metric=METRIC"
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(
        metavar="refuse|leave-out",
        help="rows with a gap: refuse them (default), or leave them out, with NaN in results; the same as --set "
        "points.missing=leave-out",
    ),
]
Exclude = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN,...",
        help="columns of a table that are no coordinates, * for any letters; the same as POINTS::!COLUMN,...",
    ),
]
Config = Annotated[Path | None, typer.Option(help="TOML file with one table of parameters for each stage")]
Assignments = Annotated[
    list[str] | None, typer.Option("--set", metavar="STAGE.PARAM=VALUE", help="one parameter; may be repeated")
]
Workers = Annotated[
    int | None,
    typer.Option(
        help="threads or processes, default: one for each core; with the address of a scheduler: threads of this "
        "process, for the steps that it computes itself"
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        help="budget for all memory of the run, such as 4GB; with the address of a scheduler, workers have limits of "
        "their own: dask worker --memory-limit"
    ),
]
What = Annotated[
    str | None,
    typer.Option(
        help="embedding, labels, graph, affinities, landmarks, curve, snapshots, doubt or eigenvalues; map: a table of "
        "coordinates, clusters and measured doubt; anndata: all that scanpy reads; default: anndata for an .h5ad and a "
        ".zarr that is one, else the embedding, or the graph of a run without one"
    ),
]
Wait = Annotated[float, typer.Option(help="seconds to wait for a run that another command works on")]
Log = Annotated[
    str,
    typer.Option(
        help="how progress is shown on standard error: text (bars on a terminal), or json: one object in each line"
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", help="no progress and no summary of stages: results, warnings and errors alone")
]
AsJson = Annotated[bool, typer.Option("--json", help="machine-readable")]


EQUAL = 0.0  # the tolerance of --deduplicate without --set duplicates.tolerance


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Options of the commands that run tasks on workers."""

    scheduler: Annotated[str, typer.Option(help="threads, processes, or the address of a Dask scheduler")] = "threads"
    workers: Workers = None
    memory: Memory = None
    tls: Annotated[
        str | None,
        typer.Option(
            envvar="SCALEMANI_TLS", help="folder of ca.pem, certificate.pem and key.pem, for a scheduler at tls://"
        ),
    ] = None
    quiet: Quiet = False

    def executor(self, progress: "Progress") -> "Executor":
        """Return where tasks run, how many at once and in how much memory."""
        from scalemani.engine.workers.executor import Executor

        options = {name: getattr(self, name) for name in ("wait", "keep") if hasattr(self, name)}
        return Executor.from_options(self.scheduler, self.workers, self.memory, progress, tls=self.tls, **options)

    @contextlib.contextmanager
    def running(self) -> Iterator["Executor"]:
        """Yield the executor of a command, which shows its progress on standard error."""
        from scalemani.engine.memory.process import limit_arenas
        from scalemani.engine.progress import progress_for

        with progress_for(sys.stderr, getattr(self, "log", "text"), self.quiet) as progress:
            executor = self.executor(progress)
            if executor.memory is not None:
                limit_arenas(executor.memory)
            yield executor


def neighbor_lists(*flags: str) -> Any:
    """Return the option, by its names, of neighbour lists that accompany the points."""
    return typer.Option(
        *flags,
        metavar="FILE",
        help="neighbour lists of another library for these points, a zarr group or .npz of indices and distances: they "
        "replace the search, and their recall is certified",
    )


@dataclass(frozen=True)
class Options(Resources):
    """Options of `embed`, `stage` and `plan`."""

    points: Points
    run: RunFolder
    method: Annotated[
        str,
        typer.Option(help=", ".join(ROUTES), autocompletion=methods),
    ] = "laplacian-eigenmaps"
    metric: Metric = None
    missing: Missing = None
    exclude: Exclude = None
    config: Config = None
    assignments: Assignments = None
    labels: Annotated[
        str | None,
        typer.Option(
            help="the class of each point: .npy, .npz::member, text, a column of a table as in about.parquet::kind, or "
            "the folder of another run: its clusters. `embed` says how often a point and its nearest neighbour in the "
            "embedding agree; lda learns from them, and so does a map with "
            "symmetric_affinities.target_weight above 0; no other embedding depends on them"
        ),
    ] = None
    weights: Annotated[
        str | None,
        typer.Option(
            help="how many equal points each point stands for, a number of at least one a point: .npy, .npz::member or "
            "text; affinities.perplexity then counts copies, neighbors.n_neighbors distinct points"
        ),
    ] = None
    precomputed_lists: Annotated[str | None, neighbor_lists("--graph", "--lists")] = None
    deduplicate: Annotated[
        bool,
        typer.Option(
            "--deduplicate",
            help="equal rows are one point, whose weight is their number or the sum of --weights; results have all "
            "rows. Rows within a distance: --set duplicates.tolerance=DISTANCE",
        ),
    ] = False
    init: Annotated[
        str | None,
        typer.Option(
            metavar="RUN|FILE",
            help="where a descent starts: at the coordinates of another run or of a file, rows at the same position "
            "being the same points; or spectral, pca or random, the same as --set layout.init=NAME",
        ),
    ] = None
    global_reference: Annotated[
        str | None,
        typer.Option(
            metavar="RUN|FILE",
            help="the map that layout.global_weight pulls points to, as --init names one, rows at the same position; "
            "or pca or spectral, the same as --set layout.reference=NAME",
        ),
    ] = None
    ids: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="FILE FILE",
            help="an identifier for each row of the points, and of what --init names: .npy, .npz::member or text",
        ),
    ] = None
    landmarks: Annotated[
        str | None,
        typer.Option(
            help="your landmarks, a row each, in a format of POINTS: data points or others; the same columns. Or "
            "integers in one column: rows of POINTS"
        ),
    ] = None
    block_rows: Annotated[
        int | None, typer.Option(help="rows in each block, a multiple of 1024; fixed when points are ingested")
    ] = None
    wait: Wait = 0.0
    keep: Annotated[
        bool, typer.Option("--keep", help="keep all rounds of the search for neighbours, not the last alone")
    ] = False
    log: Log = "text"

    def parameters(self) -> Any:
        """Return the parameters of the configuration and of --set, in this order."""
        from scalemani.config.params import Parameters, parse_assignments
        from scalemani.config.params.parsing import with_configuration

        params = Parameters()
        if self.config is not None:
            params = with_configuration(params, self.config)
        params = params.with_values(parse_assignments(self.assignments or []) | self.implied)
        if self.deduplicate and not params.merges_duplicates:
            params = params.with_values({"duplicates.tolerance": EQUAL})
        params.route(self.method, self.weights is not None)  # refuses a method before anything is read
        return params

    @property
    def implied(self) -> dict[str, str]:
        """The parameters that other options than --set stand for, by name."""
        if self.ids is not None and self.init in (None, *COMPUTED_STARTS):
            raise ConfigError(
                "--ids says which points are rows of what --init names: give --init RUN or --init FILE too"
            )
        named = {"points.metric": self.metric, "points.missing": self.missing}
        values = {name: value for name, value in named.items() if value is not None}
        if self.init is not None:
            values["layout.init"] = self.init if self.init in COMPUTED_STARTS else INPUT_START
        if self.global_reference is not None:
            values["layout.reference"] = (
                self.global_reference if self.global_reference in COMPUTED_REFERENCES else INPUT_START
            )
        if self.precomputed_lists is not None:
            values["neighbors.method"] = INPUT_LISTS
        return values if self.landmarks is None else {**values, "landmarks.method": INPUT_LANDMARKS}

    @property
    def learns_from_labels(self) -> bool:
        """Whether the method takes the labels."""
        return takes_labels(self.method)

    def source(self, params: Any) -> Any:
        """Return the points, after a look at what can be refused before they are read."""
        from scalemani.io.sources import open_pixels, open_points, opener_instead
        from scalemani.io.sources.side_data import with_labels, with_landmarks, with_lists, with_weights
        from scalemani.runs.aligning import with_start
        from scalemani.runs.clusters import labels_or_clusters

        refuse_output_in_input(self.run, self.points)
        location = without_columns(self.points, self.exclude)
        opener = opener_instead(params.points.metric, params.points.distances, params.affinities.kind)
        if opener or params.takes_image:
            source = (opener or open_pixels)(location)
        else:
            source = open_points(location, params.leaves_out_gaps)
        if self.init not in (None, *COMPUTED_STARTS):
            refuse_output_in_input(self.run, self.init, *(self.ids or ()))
            source = with_start(source, self.init, self.ids)
        if self.global_reference not in (None, *COMPUTED_REFERENCES):
            refuse_output_in_input(self.run, self.global_reference)
            source = with_start(source, self.global_reference, part="reference")
        if self.landmarks is not None:
            source = with_landmarks(source, self.landmarks, params.points.metric)
        if self.weights is not None:
            source = with_weights(source, self.weights)
        if self.precomputed_lists is not None:
            source = with_lists(source, self.precomputed_lists)
        if self.labels is None:
            return source
        if comparable_place(self.labels) == comparable_place(self.run):
            raise ConfigError(f"--labels {self.labels} is the run that this command writes: give labels of another one")
        labels = labels_or_clusters(self.labels, source.shape[0])
        if self.learns_from_labels or params.follows_classes:
            return with_labels(source, labels, partial=not self.learns_from_labels)
        return source


@dataclass(frozen=True)
class PlanOptions(Options):
    """Options of `plan`, whose --graph is a drawing: of the two names that lists have it takes --lists."""

    precomputed_lists: Annotated[str | None, neighbor_lists("--lists")] = None


@dataclass(frozen=True)
class TransformOptions(Resources):
    """Options of `transform`."""

    run: RunFolder
    new_points: Points
    out: Output
    exclude: Exclude = None
    log: Log = "text"


@dataclass(frozen=True)
class AppendOptions(Resources):
    """Options of `append`."""

    run: RunFolder
    new_points: Points
    exclude: Exclude = None
    freeze: Annotated[
        bool, typer.Option("--freeze", help="a descent keeps the earlier points exactly where they are")
    ] = False
    wait: Wait = 0.0


@dataclass(frozen=True)
class MixOptions:
    """Options of `mix`, by the names of the arguments of `mixed_affinities`."""

    out: Annotated[str, typer.Argument(metavar="OUT", help="an .npz, in which it is SciPy's CSR matrix")]
    groups: Annotated[
        list[str],
        typer.Option(
            "--group",
            metavar="POINTS[=METRIC]",
            help="points as `embed` takes them, and euclidean, cosine, correlation, hellinger or hamming, which takes "
            "categories too: table.parquet::job,city=hamming; once for each group",
        ),
    ]
    combine: Annotated[str, typer.Option("--how", help="mean or union: near in any group; product: near in all")] = (
        "mean"
    )
    weights: Annotated[
        list[float] | None, typer.Option("--weight", help="how often each group counts, in their order; default: once")
    ] = None
    perplexity: Annotated[float | None, typer.Option(help="in each group; default: 30")] = None
    n_neighbors: Annotated[
        int | None, typer.Option("--neighbors", help="in each group; default: three times the perplexity")
    ] = None
    random_state: Annotated[int, typer.Option("--seed", help="of the searches")] = 0
    workers: Workers = None
    memory: Memory = None


@dataclass(frozen=True)
class LandmarkOptions:
    """Options of `landmarks`, by the names of the arguments of `compare_landmarks`."""

    points: Annotated[str, typer.Argument(help="a run, or points as `embed` takes them", metavar="RUN|POINTS")]
    methods: Annotated[str, typer.Option(help="names of landmarks.method, with commas")] = (
        "random,spread,kmeans,kmeans++,minmax,dpp"
    )
    n_landmarks: Annotated[
        int | None, typer.Option("--landmarks", help="how many; default: as many as the run has, or 1,000")
    ] = None
    seeds: Annotated[list[int] | None, typer.Option("--seed", help="of the draws; may be repeated; default: 0")] = None
    n_sampled: Annotated[int, typer.Option("--sampled", help="points to look at; 0: all")] = 10_000
    sigma: Annotated[float | None, typer.Option(help="of the kernel that Nystrom's formula approximates")] = None
    metric: Metric = None
    assignments: Assignments = None
    workers: Workers = None
    memory: Memory = None
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable: every method and seed")] = False


@dataclass(frozen=True)
class PlotOptions:
    """Options of `plot`."""

    run: RunFolder
    out: Output
    labels: Annotated[
        list[str] | None,
        typer.Option(
            "--labels",
            metavar="FILE",
            help="labels or values to colour by, as `report` takes them, a panel each: file.csv::y is one column; may "
            "be repeated",
        ),
    ] = None
    size: Annotated[
        str,
        typer.Option(metavar="SIZE", help="paper (7.2 in), slide (1920x1080), WxH in pixels, or the height of a panel"),
    ] = "1200"
    title: Annotated[str, typer.Option(help="above the picture")] = ""
    legend: Annotated[
        str,
        typer.Option(
            help="names of classes next to the panel, on their clusters in the map, or auto: by how many they are"
        ),
    ] = "auto"
    theme: Annotated[str, typer.Option(metavar="THEME", help="light or dark paper")] = "light"
    point_size: Annotated[
        float,
        typer.Option(metavar="FACTOR", help="how many times as large points are as usual, where they are not dense"),
    ] = 1.0
    poor: Annotated[
        bool, typer.Option("--poor", help="ring the points whose affinities miss the requested perplexity")
    ] = False
    doubtful: Annotated[
        bool, typer.Option("--doubtful", help="ring the points that could as well lie elsewhere (scalemani doubt RUN)")
    ] = False
    palette: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|CLASS=COLOUR",
            help="colours of classes: default, colour-blind, a list of Matplotlib such as tab10; or that of one class, "
            "and may be repeated",
        ),
    ] = None
    cmap: Annotated[
        str | None, typer.Option(metavar="NAME", help="colours of values: a colour map of Matplotlib; default: viridis")
    ] = None
    vmin: Annotated[float | None, typer.Option(help="the lowest value of the colours; default: a percentile")] = None
    vmax: Annotated[float | None, typer.Option(help="the highest value of the colours; default: a percentile")] = None
    groups: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="CLASS", help="a class that has a colour, others are pale; may be repeated"),
    ] = None
    panels: Annotated[
        str | None, typer.Option(metavar="FILE", help="labels of classes: a panel for each, others in it are pale")
    ] = None
    positions: Positions = None
    stretch: Annotated[
        bool, typer.Option("--stretch", help="ellipses that the map makes of circles of one size in the data")
    ] = False

    def columns(self, opened: Any) -> dict[str, Any] | None:
        """Return the labels to colour by, by their names; None where there are none."""
        from scalemani.io.sources import named_labels
        from scalemani.runs.clusters import with_clusters

        labels = named_labels(with_clusters(self.labels or [], opened), opened.n_input_points)
        return labels or None

    @property
    def files(self) -> list[str]:
        """The files that are read."""
        return [*(self.labels or []), *filter(None, (self.panels, self.positions))]

    @property
    def colours(self) -> Any:
        """The palette: a name, or colours by class."""
        if not self.palette:
            return None
        parts = [text.rpartition("=") for text in self.palette]
        if len(parts) == 1 and not parts[0][1]:
            return self.palette[0]
        if not all(equals for _, equals, _ in parts):
            raise ConfigError(f"--palette takes one NAME, or CLASS=COLOUR again and again, got {self.palette}")
        return {name: colour for name, _, colour in parts}


@dataclass(frozen=True)
class ReportOptions:
    """Options of `report`."""

    run: RunFolder
    out: Annotated[str | None, typer.Argument(metavar="OUT", help="an .html file; default: report.html in RUN")] = None
    labels: Annotated[
        list[str] | None,
        typer.Option(
            "--labels",
            metavar="FILE",
            help="labels or values to colour by: .npy, .npz::member, text, .csv, Parquet, cells.h5ad::obs, "
            "cells.h5ad::X/GENE; the folder of a run, or `run` for this one: its clusters; may be repeated",
        ),
    ] = None
    title: Annotated[str, typer.Option(help="of the page; default: the method and the number of points")] = ""
    note: Annotated[str, typer.Option(help="a text below the title")] = ""
    positions: Positions = None
    stretch: Annotated[bool, typer.Option("--stretch", help="colours by how the map stretches at each point")] = False
    sampled: Annotated[int | None, typer.Option(help="points by which quality is measured; 0: none")] = None
    tiles: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="write static tiles of the map, with all points, and no page"),
    ] = None
    axes: Annotated[
        tuple[int, int], typer.Option(metavar="ACROSS UP", help="of tiles: two columns of the embedding, from 1")
    ] = (1, 2)


def without_columns(points: str, exclude: str | None) -> str:
    """Return the location of points in a table without the columns of --exclude."""
    if exclude is None:
        return points
    names = ",".join(f"!{name.strip()}" for name in exclude.split(","))
    return f"{points}{',' if '::' in points else '::'}{names}"


def points_and_metric(group: str) -> tuple[str, str]:
    """Return the points of a group and their metric, which stands behind the last = where that is no part of a path."""
    points, _, metric = group.rpartition("=")
    return (points, metric) if points and re.fullmatch(r"[a-z][a-z0-9-]*", metric) else (group, "euclidean")
