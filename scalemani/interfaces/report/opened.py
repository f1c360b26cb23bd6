"""What users open: a run that also writes a page about itself."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack, overload

import numpy as np

from scalemani.config.choices import Legend, ThemeName
from scalemani.config.stages import DOUBT
from scalemani.errors import ConfigError, DataError, warn
from scalemani.interfaces.wording import names_arguments
from scalemani.io.export import checked_target
from scalemani.io.export.atomic import replaced_file
from scalemani.io.figures import (
    Palette,
    Size,
    checked_colours,
    checked_look,
    draw_on,
    drawn_embedding,
    embedding_figure,
    embedding_picture,
)
from scalemani.io.sources import open_points
from scalemani.io.sources.label_values import is_absent
from scalemani.io.sources.labels import chosen_labels, named_labels
from scalemani.kernels.stretch import BY_POINT
from scalemani.runs.clusters import labels_or_clusters, with_clusters
from scalemani.runs.new_points.neighbors import KnnGraph
from scalemani.runs.opened import Run, poor_points
from scalemani.runs.stretching import ellipses_of
from scalemani.stages.arrays.embeddings import StoredClustering
from scalemani.stages.arrays.graph import StoredNeighbors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from PIL.Image import Image

    from scalemani.interfaces.functions.run_features import Features
    from scalemani.interfaces.report.page import LiveMap

NAME = "report.html"
CLUSTERS = "clusters of the run"
SUFFIXES = (".html", ".htm")


class DrawnEmbedding(NamedTuple):
    """The rows of an embedding that are drawn, and how to select those of labels of all points.

    Attributes
    ----------
    positions : (M, d), an array or one that is read by blocks
    n_points : N, all points
    of_rows : takes labels (N,), returns those of the M rows
    rows : (M,) points that the rows belong to; None where M = N
    clusters : (M,) by a name, where there are any
    neighbors : returns the neighbours (M, k) of each row among the M rows, nearest first; None where there is no graph
    doubtful : returns which rows (M,) could as well lie elsewhere; None where that was not measured
    """

    positions: Any
    n_points: int
    of_rows: Callable[[np.ndarray], np.ndarray]
    rows: np.ndarray | None
    clusters: dict[str, np.ndarray]
    neighbors: Callable[[], Any] | None = None
    doubtful: Callable[[], np.ndarray] | None = None

    def columns(self, labels: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return labels or values of all points (N,) as those of the rows (M,), and the clusters."""
        return {name: self.of_rows(values) for name, values in labels.items()} | self.clusters

    def at(self, positions: Any) -> Any:
        """Return coordinates (N, d) of all points, or those of a file, as those of the rows (M, d); None: these."""
        if positions is None:
            return self.positions
        source = open_points(positions)
        if source.shape[0] != self.n_points:
            raise DataError(
                f"{source.description} has {source.shape[0]} rows for {self.n_points} points: give one each"
            )
        return self.of_rows(np.asarray(source.read(0, self.n_points)))


class Drawing(TypedDict, total=False):
    """How `Shown.plot` draws, by name."""

    legend: Legend
    poor: bool
    theme: ThemeName
    point_size: float
    palette: Palette | None
    cmap: Any
    vmin: float | None
    vmax: float | None
    groups: Sequence[Any] | None
    panels: Any
    positions: Any
    doubtful: bool
    stretch: bool


class Shown:
    """Pictures and maps of an embedding, for runs and for fitted estimators."""

    def _drawn(self) -> DrawnEmbedding:
        raise NotImplementedError

    @property
    def _n_drawn(self) -> int | None:
        """The number of points that a notebook would show by default; None without an embedding."""
        raise NotImplementedError

    @overload
    def plot(
        self,
        labels: Any = None,
        size: Size = 900,
        title: str = "",
        *,
        path: None = None,
        ax: None = None,
        figure: Literal[False] = False,
        **drawing: Unpack[Drawing],
    ) -> "Image": ...
    @overload
    def plot(
        self, labels: Any = None, size: Size = 900, title: str = "", *, path: str | Path, **drawing: Unpack[Drawing]
    ) -> Path: ...
    @overload
    def plot(
        self,
        labels: Any = None,
        size: Size = 900,
        title: str = "",
        *,
        figure: Literal[True],
        **drawing: Unpack[Drawing],
    ) -> "Figure": ...
    @overload
    def plot(
        self, labels: Any = None, size: Size = 900, title: str = "", *, ax: "Axes", **drawing: Unpack[Drawing]
    ) -> "Axes": ...
    def plot(
        self,
        labels: Any = None,
        size: Size = 900,
        title: str = "",
        legend: Legend = "auto",
        poor: bool = False,
        path: str | Path | None = None,
        theme: ThemeName = "light",
        point_size: float = 1.0,
        *,
        palette: Palette | None = None,
        cmap: Any = None,
        vmin: float | None = None,
        vmax: float | None = None,
        groups: Sequence[Any] | None = None,
        panels: Any = None,
        positions: Any = None,
        doubtful: bool = False,
        stretch: bool = False,
        ax: "Axes | None" = None,
        figure: bool = False,
    ) -> "Image | Path | Figure | Axes":
        """Return a picture of the embedding (Pillow's, which notebooks show), or write it and return its path.

        Parameters
        ----------
        labels : labels or values (N,) of the points in input order, as `scalemani plot --labels` takes them; several
            by their names, or a frame of pandas or Polars, for a panel each; None: density, or at `positions` the
            clusters
        size : height of a panel in pixels, or "paper", "slide", "1600x900" for that of the whole picture
        title : above the picture
        legend : names of classes "beside" the panel, on their clusters in the "map", or "auto", by how many they are
        poor : whether points are ringed whose affinities miss the requested perplexity; a fitted estimator then needs
            `store`
        path : where to write it, ending in .png, .svg or .pdf; None: nowhere
        theme : "light" or "dark" paper
        point_size : how many times as large discs are as usual; where points are dense there are none
        palette : colours of classes: "default", "colour-blind", a list of Matplotlib such as "tab10", colours in the
            order of the classes, or a mapping of classes to colours; None: those of the labels' file, else the default
        cmap : colours of values, a colour map of Matplotlib; None: viridis
        vmin, vmax : the values at its ends; None: the 0.5th and the 99.5th percentile
        groups : classes that have colours; other points are pale, below them
        panels : labels of classes (N,): a panel for each class, in which all other points are pale
        positions : coordinates (N, d) to draw the points at in place of the embedding, or a file of them such as
            `points.parquet::X,Y`
        doubtful : whether points are ringed that could as well lie elsewhere, of a run or model with their doubt
        stretch : whether ellipses show how the map stretches, see `Run.stretch`: at points spread over the map, what it
            makes of circles of one size in the data. A fitted estimator then needs `store`
        ax : axes of Matplotlib to draw on; they are returned. They take one set of labels, and two components
        figure : whether a figure of Matplotlib is returned

        Raises
        ------
        ConfigError
            For an unknown name, where Matplotlib is not installed (extra `figures`), and for ellipses in a map of one
            column, at other positions, or next to rings.
        DataError
            For labels or positions that do not fit the points.
        """
        colours = checked_colours(palette, cmap, vmin, vmax, groups)
        look, drawn = checked_look(size, title, legend, theme, point_size, colours), self._drawn()
        run = self if isinstance(self, Run) else None
        listed = isinstance(labels, list | tuple)  # the labels themselves
        columns = chosen_labels(labels if listed else with_clusters(labels, run), drawn.n_points, drawn.of_rows)
        if labels is None and panels is None and positions is not None:
            columns = drawn.clusters or None
        if isinstance(panels, str | Path):
            panels = labels_or_clusters(panels, drawn.n_points, run)
        split = chosen_labels(panels, drawn.n_points, drawn.of_rows)
        places = drawn.at(positions)
        shown: Any = self
        marked = poor_points(run or shown.run_) if poor else None
        if doubtful:
            chosen = self.retained_doubtful if isinstance(self, Run) else drawn.of_rows(shown.doubt_.doubtful)
            marked = chosen if marked is None else marked | chosen
        if stretch:
            if poor or doubtful or positions is not None or places.shape[1] == 1:
                raise ConfigError("stretch takes two columns or more, without poor, doubtful and positions")
            marked = ellipses_of(run or shown.run_)
        if sum((path is not None, ax is not None, figure)) > 1 or (ax is not None and panels is not None):
            raise ConfigError("give one of path, ax and figure; panels are no part of ax")
        if ax is not None:
            draw_on(ax, places, columns, look, marked)
            return ax
        if figure:
            return embedding_figure(places, columns, look, marked, split)
        if path is None:
            return drawn_embedding(places, columns, look, marked, split)[0]
        embedding_picture(places, path, columns, look, marked, split)
        return Path(path)

    def live_map(self, labels: Any = ()) -> "LiveMap":
        """Return a map of the embedding that notebooks show live: it moves, names rows, and filters by its legend.

        Of more points than a page of a megabyte holds, some 75,000, it draws 10,000 on top of tiles in which all are
        counted; `report` draws more.

        Parameters
        ----------
        labels : those of `report`
        """
        from scalemani.interfaces.report.page import LiveMap

        drawn = self._drawn()
        named = named_labels(with_clusters(labels, self if isinstance(self, Run) else None), drawn.n_points)
        return LiveMap(drawn.positions, drawn.columns(named), drawn.rows, drawn.doubtful)

    def _shown_map(self) -> "LiveMap | None":
        """Return the map that a notebook shows by default: that of at most a million points."""
        from scalemani.interfaces.report.page import MOST_MAPPED

        return self.live_map() if self._n_drawn is not None and self._n_drawn <= MOST_MAPPED else None

    def _repr_png_(self) -> bytes | None:
        shown = self._shown_map()
        return None if shown is None else shown._repr_png_()


class ReportedRun(Shown, Run):
    """A run as it stands in its store, with a report, and a picture where there is an embedding."""

    @property
    def graph(self) -> KnnGraph:
        """The neighbour graph, as `knn_graph` returns it: rows and neighbours in input order, with `query`.

        Rows with gaps have neighbours -1 at distances NaN; `recall` is NaN of neighbours that were passed.
        """
        recall = self.certificates.get(StoredNeighbors.STAGE, {}).get("recall")
        lists = super().graph
        return KnnGraph(lists.indices, lists.distances, np.nan if recall is None else recall, self)

    def report(
        self,
        path: str | Path | None = None,
        labels: Any = (),
        *,
        title: str = "",
        note: str = "",
        positions: Any = None,
        stretch: bool = False,
        n_sampled: int | None = None,
        random_state: Any = 0,
    ) -> Path:
        """Write one self-contained HTML page about the run, which opens without a network, and return its path.

        Parameters
        ----------
        path : where to, ending in .html; None: `report.html` in the folder of the run
        labels : labels or values of the points to colour the map by: (N,) arrays in input order, frames of pandas or
            Polars, files of them, or folders of runs for their clusters, one, a list, or by their names; the embedding
            is measured against each of the first six columns of classes
        title : of the page; empty: the method and the number of points
        note : a text below it
        positions : coordinates (N, d) to draw the points at in place of the embedding, or a file of them such as
            `points.parquet::X,Y`; the page then has no words on how to read the map
        stretch : whether the map can be coloured by how it stretches at each point: `area`, `anisotropy` and
            `explained` of `Run.stretch`
        n_sampled : points by which quality is measured; None: as many as take some ten seconds, up to 1,000; 0: none
        random_state : of this sample

        Raises
        ------
        ConfigError
            For another suffix, or no path for a run that is not in a folder.
        DataError, StoreError
            For labels or positions that do not fit; where the page cannot be written.
        """
        from scalemani.interfaces.report.map_data import map_data
        from scalemani.interfaces.report.page import Heading, measure_quality, page
        from scalemani.interfaces.report.reading import is_classes, read_map

        root = str(self.store.root)
        if path is None and "://" in root:
            raise ConfigError(f"{root} is no folder: say where the report goes, as in report.html")
        target, _ = checked_target(Path(root) / NAME if path is None else path, SUFFIXES)
        columns = named_labels(with_clusters(labels, self), self.n_input_points)
        classes = {name: values for name, values in columns.items() if is_classes(values)}
        for name in (name for name, values in columns.items() if is_absent(values).all()):
            warn(f"{name} has no value at any point, and says nothing of the map")
        quality = measure_quality(self, classes, n_sampled, random_state)
        heading = Heading(" ".join(title.split()), note.strip(), datetime.now(UTC).strftime("%d %B %Y"))
        reading = read_map(self, classes) if DOUBT.name in self.records() and positions is None else None
        verdicts = {} if reading is None else {DOUBT.name: self.doubt_of_input().verdicts}
        stretched = self.stretch() if stretch else None
        scores = {} if stretched is None else {f"stretch: {name}": getattr(stretched, name) for name in BY_POINT}
        shown = map_data(self, {**columns, **verdicts, **scores}, positions=positions)
        text = page(self, quality, shown, heading, reading)
        with replaced_file(target, through_links=path is not None) as file:  # others may have written the run
            file.write(text.encode(errors="backslashreplace"))  # names of folders need not be UTF-8
        return Path(target)

    @names_arguments()
    def export(
        self,
        path: str | Path,
        what: str | None = None,
        labels: Any = None,
        *,
        neighbors: bool = False,
        escape_formulas: bool = False,
    ) -> str | Path:
        """Write the embedding, or what else the run has computed, rows in input order, and return the path or URL.

        A file that is there is replaced; a .zarr is not. Where components were left out, the input rows of the results
        are written next to it, points.input_rows.npy for points.npy; a .csv has them.

        Parameters
        ----------
        path : where to: .npy, .parquet, .zarr or .csv for an embedding; .h5ad for an AnnData, to which the results are
            added where it is there. `scalemani export --help` has the formats of all results
        what : "embedding", "labels", "graph", "affinities", "landmarks", "curve", "doubt", "snapshots", "eigenvalues"
            or "anndata"; "map": a table, .parquet or .csv, with the coordinates, the clusters and the doubt of each
            point, as far as the run has these; None: what the suffix says, else the graph of a run that ends in it, or
            the embedding
        labels : those of `report`, as further columns of a map
        neighbors : whether a map, .parquet, has the neighbours of each point
        escape_formulas : whether texts of a .csv with labels that spreadsheets run as formulas have an apostrophe
            before them

        Raises
        ------
        ConfigError, DataError
            For another name or suffix, and labels that do not fit.
        StoreError
            For what the run has not computed, and where the place cannot be written.
        """
        from scalemani.runs.exporting import export_run

        export_run(self, path, what, labels, neighbors, escape_formulas)
        return path if "://" in str(path) else Path(path)

    def tiles(self, folder: str | Path, labels: Any = (), *, axes: Sequence[int] = (1, 2)) -> Path:
        """Write a folder of static tiles that shows every point of the embedding, of a hundred million too.

        Any file server shows it: `python -m http.server` in the folder, a bucket, a site. Its `index.html` fetches
        counts by pixel where points are many, and the points themselves where one zooms in. Positions are exact to one
        part in 65,536 of a tile, which is as wide as 256 pixels.

        Parameters
        ----------
        folder : where to, a folder that does not exist; it has that name once all is written
        labels : those of `report`; clusters of the run are shown as well
        axes : two columns of the embedding, across and up, from 1

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        ConfigError
            For a run without a finished embedding, and columns that it does not have.
        DataError, StoreError
            For labels that do not fit; for a folder that is there or cannot be written.

        Notes
        -----
        Points are read by blocks, and sorted in files of 12 bytes a point, which are removed. Of N points, memory holds
        the codes of labels alone, one or two bytes each, and the labels themselves while these are encoded.
        """
        from scalemani.interfaces.tiles.writing import write_tiles

        columns = named_labels(with_clusters(labels, self), self.n_input_points)
        write_tiles(self, Path(folder), columns, axes)
        return Path(folder)

    def features(self, groups: Any = None, *, random_state: Any = 0) -> "Features":
        """Return which features decide where groups of points lie in the map.

        The derivative of the map by the features is that of the weights over landmarks, in closed form; in the minimum
        of a nonlinear objective that of each point's own minimum, others fixed. Its root mean square in a group, times
        the difference of the group's mean from that of the rest, says how far the map moves for that difference.

        Parameters
        ----------
        groups : (N,) classes in input order, a file of them, or the folder of a run for its clusters; points without
            one are left out. None: the clusters of the run, else all points together, with the standard deviation in
            place of the difference
        random_state : of the points at which derivatives are compared with finite differences

        Returns
        -------
        Features
            `influence`, `slope` and `difference` (G, D) float64, as the metric of the run maps features, the names of
            `groups` and columns, and `agreement` with finite differences; `table(top)` lists the first of each group.

        Raises
        ------
        ConfigError
            For a map without such a derivative, and where points are compared by rows or as sets or there are none.
        DataError, StoreError
            For groups that are not one class for each point; for a run that is not finished.

        Notes
        -----
        A derivative is local: what moves a point a little need not be what parted clusters far from each other. Own
        minima count directions flatter than a thousandth of their steepest as curved as that.
        """
        from scalemani.interfaces.functions.run_features import features_of

        return features_of(self, groups, random_state)

    def _drawn(self) -> DrawnEmbedding:
        clusters = {CLUSTERS: np.asarray(self.retained_labels[...])} if StoredClustering.STAGE in self.keys else {}
        lists = (lambda: self.retained_graph.indices) if StoredNeighbors.STAGE in self.keys else None
        doubtful = (lambda: self.retained_doubtful) if DOUBT.name in self.records() else None
        return DrawnEmbedding(
            self.retained_embedding,
            self.n_input_points,
            self.of_results,
            self.rows.input_rows,
            clusters,
            lists,
            doubtful,
        )

    @property
    def _n_drawn(self) -> int | None:
        return self.dimensions.n_points if self.embeds and self.group(self.last_stage).complete else None

    def _repr_html_(self) -> str:
        from scalemani.interfaces.report.page import summary

        return summary(self, self._shown_map())


def open_run(root: str | Path) -> ReportedRun:
    """Open a run for reading.

    Parameters
    ----------
    root : folder of the run, or s3://bucket/name

    Returns
    -------
    Run
        Its arrays in input order, its parameters, and what every stage has measured; `report` and `plot` show it.

    Raises
    ------
    StoreError
        For a place that holds no run, and a run that is damaged.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import scalemani as sm
    >>> points = np.random.default_rng(0).normal(size=(200, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = sm.LaplacianEigenmaps(store=folder).fit(points)
    ...     run = sm.open_run(folder)
    ...     run.embedding.shape, run.method, run.certificates["neighbors"]["recall"]
    ((200, 2), 'laplacian-eigenmaps', 1.0)
    """
    return ReportedRun(root)
