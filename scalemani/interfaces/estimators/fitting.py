"""What the estimators share: from what a user passes to a finished run, and from the run to attributes."""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted, validate_data

from scalemani.config.choices import AffinityKind, AnyMetric, Disconnected, Landmarks, Missing
from scalemani.config.params import Parameters
from scalemani.config.routes import takes_labels
from scalemani.config.stages import (
    COMPUTED_REFERENCES,
    COMPUTED_STARTS,
    DOUBT,
    INPUT_LANDMARKS,
    INPUT_LISTS,
    INPUT_START,
    LEAVE_OUT,
)
from scalemani.config.validation import check_points
from scalemani.errors import ConfigError, StoreError
from scalemani.interfaces.estimators.bases import BaseEstimator
from scalemani.interfaces.estimators.parameters import RunEstimator, arguments, defaults_of, settings_of
from scalemani.interfaces.estimators.running import finished_run, give, resources_of
from scalemani.interfaces.report.opened import DrawnEmbedding, ReportedRun, Shown
from scalemani.interfaces.wording import names_arguments
from scalemani.io.sources import (
    PointsSource,
    columns_shown,
    in_order_of,
    is_stored,
    is_table,
    names_of,
    open_pixels,
    open_points,
    opener_instead,
    take_representation,
    with_names_of,
)
from scalemani.io.sources.opening import is_frame
from scalemani.io.sources.side_data import with_labels, with_landmarks, with_lists, with_weights
from scalemani.kernels.machine.forks import cached_property
from scalemani.runs.aligning import with_start
from scalemani.runs.clusters import labels_or_clusters
from scalemani.runs.doubt import Doubt
from scalemani.runs.new_points import NewPoints, Placement, read_placement, refusal_of
from scalemani.runs.new_points.neighbors import KnnGraph
from scalemani.runs.opened import Run


class Fitted:
    """What an estimator that embeds has once it is fitted."""

    n_features_in_: int
    embedding_: np.ndarray
    eigenvalues_: np.ndarray
    certificates_: dict[str, dict[str, Any]]
    _placement: Placement
    _refusal: str
    _folder: str | Path | None = None  # in the place of a temporary store, while `computed_in` lasts
    _stored_run: tuple[
        str | Path | None, dict[str, Any]
    ]  # the store, None for a temporary one, and the plan of the run


@arguments
class Embedder(Fitted, Shown, RunEstimator):
    """An estimator that embeds points.

    Parameters
    ----------
    metric : METRICS, "minkowski:P", a function or "precomputed"
        How points are compared. Rows are taken at unit length (cosine), less their mean at unit length (correlation),
        as square roots of their frequencies (hellinger), or as bits (hamming, jaccard: zeros and ones, dense or
        sparse), new points too; landmarks and bandwidths are in that geometry. "l2" and "tanimoto" are other names of
        euclidean and jaccard, "l1" and "cityblock" of manhattan. COMPARED_METRICS compare rows as they are, as
        "minkowski:3" does for any power from 1 on, and a function of two rows (D,) float64 that numba compiles, or its
        name as "module:function" or "path.py::function": these take exact search, leaves or pynndescent, and methods
        that need no more than a graph; new points are placed by neighbours among all points.
        "precomputed": X are neighbour lists: a SciPy matrix of distances (N, N) with as many entries in each row, a
        `KnnGraph`, an AnnData with obsp["distances"], indices and distances (N, k) in any order, or the distances
        (N, N) between all points, or the path of any of these; new points cannot be placed then. Methods that need no
        more than a graph take it.
    missing : {"refuse", "leave-out"}
        Rows with a gap, NaN or none of a masked array or a table: an error, or left out, with NaN in results. New
        points are treated alike.
    n_landmarks : int or None
        Landmarks, L. None: 1,000, or all distinct points where there are no more than 1,000.
    """

    metric: AnyMetric = "euclidean"
    missing: Missing = "refuse"
    n_landmarks: int | None = None

    @names_arguments()
    def fit(self, X: Any, y: Any = None, **side_data: Any) -> Self:
        """Embed points (N, D): an array of NumPy, SciPy, Dask or zarr, a data frame, or a path.

        `sample_weight` (N,), real numbers of at least one or a file of them, says how many equal points each stands
        for: the embedding is that of the set in which each is repeated, where the method takes weights. `perplexity`
        then counts copies, and `n_neighbors` distinct points. The labels y (N,), or a file of them, are used by methods
        of classes, and by others with `symmetric_affinities.target_weight` alone.

        `graph` are neighbour lists of another library for these points, in any form that `metric="precomputed"` takes:
        (distances, indices) as a search returns them, -1 for neighbours that it did not find, distances squared, of
        codes or inner products. They replace the search: distances are computed anew, lists that miss entries are
        completed, and `certificates_["neighbors"]` has their recall, measured by exact search. `n_neighbors` is by
        default as many as they have.
        """
        weights, graph = weights_and_graph(side_data)
        requested = requested_of(self, graph=graph)
        source = requested.source(X, self.use_rep)
        params = requested.params
        points = with_classes(source, y, takes_labels(self._method), params.follows_classes)
        if weights is not None:
            points = with_weights(points, weights)
        if not params.precomputed_input:
            keep_columns(self, X, source)  # refuses names that scikit-learn does not take
        store = self.store or self._folder
        with finished_run(points, store, self._method, params, **resources_of(self)) as finished:
            self._keep_run(finished, bool(params.precomputed_input))
            self._keep_results(finished)
        return self

    def _keep_run(self, finished: Run, precomputed: bool) -> None:
        """Set the attributes of every method from its run."""
        self.embedding_ = finished.of_input(np.asarray(finished.retained_embedding[...]), np.nan)
        self.certificates_ = finished.certificates
        if DOUBT.name in finished.keys:
            self.doubt_: Doubt = finished.doubt_of_input()
        self._stored_run = self.store, finished.plan
        if hasattr(self, "_placement"):
            del self._placement  # of an earlier fit
        if precomputed:
            self.n_features_in_ = finished.n_input_points  # as scikit-learn counts the columns of distances
        self._refusal = refusal_of(finished)
        if not self._refusal:
            self._placement = read_placement(finished, in_memory=self.store is None)

    def _keep_results(self, finished: Run) -> None:
        """Set the attributes of a method from its run."""
        self.eigenvalues_ = finished.eigenvalues

    def fit_transform(self, X: Any, y: Any = None, **side_data: Any) -> np.ndarray:
        """Embed points, which may have a `sample_weight`, and return their embedding (N, d)."""
        return self.fit(X, y, **side_data).embedding_

    @names_arguments()
    def transform(self, X: Any) -> np.ndarray:
        """Return the coordinates (n, d) float64 of new points (n, D), of any kind that `fit` takes.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            For another number of columns, and for points that are not finite numbers.
        """
        return transform_points(self, X)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    @property
    def run_(self) -> ReportedRun:
        """The run in `store`, opened: its graph, affinities, landmarks, curve and snapshots, as `open_run` gives them.

        Raises AttributeError for a model that was fitted without `store`, or whose folder is gone.
        """
        check_is_fitted(self)
        store, plan = self._stored_run
        if store is None:
            raise AttributeError(
                "run_ and graph_ read the run in `store`, and this model was fitted without one: give store=FOLDER"
            )
        with missing_as_attribute():
            refuse_gone(store)
            return ReportedRun(store, plan)

    @property
    def graph_(self) -> KnnGraph:
        """The neighbour graph of the run in `store`, as `knn_graph` returns it; see `run_`.

        Raises AttributeError too for methods without a graph, such as principal components.
        """
        with missing_as_attribute():
            return self.run_.graph

    def report(self, path: str | Path | None = None, labels: Any = (), *, title: str = "", note: str = "") -> Path:
        """Write one HTML page about the run in `store`, as `open_run(store).report` does, and return its path."""
        return self.run_.report(path, labels, title=title, note=note)

    def _drawn(self) -> DrawnEmbedding:
        check_is_fitted(self)
        embedded = np.isfinite(self.embedding_).all(axis=1)  # rows outside the largest component are NaN
        rows = None if embedded.all() else np.flatnonzero(embedded)
        clusters = {"clusters": np.asarray(self.labels_)[embedded]} if hasattr(self, "labels_") else {}
        doubtful = (lambda: self.doubt_.doubtful[embedded]) if hasattr(self, "doubt_") else None
        return DrawnEmbedding(
            self.embedding_[embedded],
            len(embedded),
            lambda values: values[embedded],
            rows,
            clusters,
            doubtful=doubtful,
        )

    @property
    def _n_drawn(self) -> int | None:
        return len(self.embedding_) if hasattr(self, "embedding_") else None

    def _html_repr(self) -> str:
        """Return what notebooks show: the diagram of scikit-learn and, of a fitted model, its map."""
        shown = self._shown_map()
        return str(estimator_html_repr(self)) + ("" if shown is None else shown._repr_html_())

    @contextlib.contextmanager
    def computed_in(self, folder: str | Path) -> Iterator[None]:
        """Have `fit` take what a folder holds, in the place of a temporary store, while the block lasts."""
        self._folder = folder
        try:
            yield
        finally:
            del self._folder


@arguments
class GraphEmbedder(Embedder):
    """An estimator whose embedding follows from affinities between neighbours.

    Parameters
    ----------
    perplexity : float or None
        Effective number of neighbours, K. None: 30, or a third of the neighbours where these are fewer than 90.
    n_neighbors : int or None
        Neighbours a point in the graph, k. None: three times the perplexity, or all other points if fewer.
    affinity : {"entropic", "gaussian", "self-tuning", "uniform", "ensemble", "precomputed"}
        Weights of the edges: of the `perplexity`, of one "affinities.sigma", or of the distance to the
        "affinities.bandwidth_neighbor"-th neighbour as each point's sigma. "uniform": one for all neighbours.
        "ensemble", of images: the shares of minimum spanning trees of jittered pixels.
        "precomputed": X is W, a matrix of affinities (N, N), of SciPy or dense, an AnnData with obsp["connectivities"],
        the affinities of a run, or the path of one of these. It is held in memory while it is read, and used as it is:
        numbers of the graph have no effect. Of one that is not symmetric the mean with its transpose is taken, with a
        warning; the diagonal is left out; new points cannot be placed.
    solver : {"auto", "refine", "lll", "lll+refine", "variational-nystrom", "exact", "nystrom", "le-z"}
        Of the eigenvectors. "auto" is the next where the graph fits the memory of this process, else the one after it.
        From coarse graphs, by passes over the graph to |S u - theta u| <= `residual`; by the
        landmarks alone; from both; by the landmarks alone, points made of those among their neighbours by affinity; by
        an eigensolver in memory. Without a graph of the points, by that of the landmarks: carried to all points by
        Nystrom's formula or by their weights over the landmarks.
    disconnected : {"connect", "separate", "largest", "error"}
        Connect pieces of the graph through their closest pairs where distances between them are known, of points or of
        all distances; those of neighbour lists and affinities stay separate. Or embed each piece from eigenvectors of
        its graph; the largest alone (rows of the others are NaN in `embedding_`); or raise DisconnectedGraphError.
    landmarks : str, array (L, D) or (L,), or path, default "random"
        The landmarks themselves, of any kind that X may have, on the data or off it, or integers (L,), rows of X; a
        `pathlib.Path` is a file of either. Some methods take rows of X alone. Or how they are chosen, by a method of
        `scalemani.select_landmarks`: "random", "spread", "kmeans", "kmeans++", "kmeans++ seeding", "minmax",
        "dpp", "dpp-exact", "gp-active" or "gp".
    residual : float or None
        To which eigenvectors are refined. None: 1e-4.
    deduplicate : bool, float or None
        None or False: each row is a point. True: equal rows are one point, whose weight is their number, or the sum of
        their `sample_weight`. A number above zero: so are rows in one cell of a grid, which lie within that distance.
        Results have all rows.
    """

    perplexity: float | None = None
    n_neighbors: int | None = None
    affinity: AffinityKind = "entropic"
    disconnected: Disconnected = "connect"


@dataclasses.dataclass(frozen=True)
class Requested:
    """The requested settings by name, and those passed as arrays.

    Arrays are a start and a reference (N, d) of a descent, landmarks (L, D), and a graph.
    """

    settings: Mapping[str, Any]
    start: Any = None
    landmarks: Any = None
    graph: Any = None
    reference: Any = None

    @cached_property
    def params(self) -> Parameters:
        """The parameters, checked."""
        return Parameters().with_values(self.settings)

    @property
    def gaps(self) -> bool:
        """Whether rows with a gap are left out."""
        return self.settings.get("points.missing") == LEAVE_OUT

    def source(self, points: Any, use_rep: str | None) -> PointsSource:
        """Return the source of points or precomputed input with the arrays.

        It does not resolve the parameters: scikit-learn expects errors of the points first.
        """
        of_input = {name: value for name, value in self.settings.items() if name.startswith(("points.", "neighbors."))}
        params = Parameters().with_values(of_input)
        points_params = params.points
        opener = opener_instead(points_params.metric, points_params.distances, self.settings.get("affinities.kind"))
        if opener is None:
            source = open_training_points(open_pixels(points) if params.takes_image else points, use_rep, self.gaps)
        else:
            source = opener(points)
        if self.start is not None:
            source = with_start(source, self.start)
        if self.reference is not None:
            source = with_start(source, self.reference, part="reference")
        if self.landmarks is not None:
            source = with_landmarks(source, self.landmarks, points_params.metric)
        return source if self.graph is None else with_lists(source, self.graph)


def requested_of(estimator: BaseEstimator, changed: Mapping[str, Any] | None = None, graph: Any = None) -> Requested:
    """Return the parameters that an estimator requests, with some of its arguments changed; a `graph` is of `fit`."""
    arguments = {**estimator.get_params(deep=False), **(changed or {})}
    settings = settings_of(arguments, defaults_of(type(estimator)))
    landmarks, coordinates = settings.get("landmarks.method", ""), dict[str, Any]()
    for name, computed in (("layout.init", COMPUTED_STARTS), ("layout.reference", COMPUTED_REFERENCES)):
        passed = settings.get(name, computed[0])
        coordinates[name] = None if isinstance(passed, str) and passed in computed else passed
        if coordinates[name] is not None:
            settings[name] = INPUT_START
    if isinstance(landmarks, str):
        landmarks = None
    else:
        settings["landmarks.method"] = INPUT_LANDMARKS
    if graph is not None:
        settings.setdefault("neighbors.method", INPUT_LISTS)
    return Requested(settings, coordinates["layout.init"], landmarks, graph, coordinates["layout.reference"])


def with_classes(source: PointsSource, labels: Any, learnt: bool, followed: bool) -> PointsSource:
    """Return points with their labels, where a method learns from them or affinities follow them."""
    if labels is None or not (learnt or followed):
        return source
    return with_labels(source, labels_or_clusters(labels, source.shape[0]), partial=not learnt)


def weights_and_graph(side_data: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the `sample_weight` and `graph` of `fit`, None where it was not passed; raise TypeError for other names.

    Weights are not in the signature of `fit`: scikit-learn's checks would then pass weights of zero, which are refused
    here, and require random draws that do not depend on how often a point is repeated.
    """
    unknown = sorted(set(side_data) - {"sample_weight", "graph"})
    if unknown:
        raise TypeError(
            f"fit() got an unexpected keyword argument {unknown[0]!r}; by name it takes sample_weight or graph"
        )
    return side_data.get("sample_weight"), side_data.get("graph")


def open_training_points(points: Any, use_rep: str | None = None, gaps: bool = False) -> PointsSource:
    """Return the source of the points of `fit`."""
    return open_named_x(points, use_rep, gaps, min_rows=2)


def open_named_x(points: Any, use_rep: str | None = None, gaps: bool = False, min_rows: int = 1) -> PointsSource:
    """Return the source of points (N, D), N >= `min_rows`; messages about arrays call them X, as scikit-learn does."""
    taken = take_representation(points, use_rep, gaps)
    stored = gaps or is_stored(taken)
    source = open_points(taken if stored else check_points(taken, "X", min_rows, convert_objects=True), gaps)
    return with_names_of(points, source, use_rep)


def keep_columns(estimator: BaseEstimator, points: Any, source: PointsSource) -> None:
    """Set `n_features_in_`, and `feature_names_in_` where columns of points (N, D) have names."""
    if not is_frame(points):
        taken = take_representation(points, estimator.get_params(deep=False).get("use_rep"), gaps=True)
        points = np.empty((0, source.shape[1])) if is_stored(taken) else taken
    validate_data(estimator, points, skip_check_array=True)
    if names := names_of(source):
        estimator.feature_names_in_ = np.array(names, object)


def open_new_points(estimator: BaseEstimator, points: Any) -> PointsSource:
    """Return the source of new points (n, D), whose columns are those of the points of `fit`; there may be no rows.

    Columns of files and of an AnnData in another order are put in that of `fit`; tables in memory are refused, as
    scikit-learn does.
    """
    use_rep, gaps = estimator.get_params(deep=False)["use_rep"], requested_of(estimator).gaps
    source = open_named_x(points, use_rep, gaps, min_rows=0)
    return with_columns_of_fit(
        estimator, points if is_frame(points) else take_representation(points, use_rep, gaps), source
    )


def with_columns_of_fit(estimator: BaseEstimator, points: Any, source: PointsSource) -> PointsSource:
    """Return the source of new points with the columns of the points of `fit`, by their names where both have any."""
    matched = bool(names_of(source)) and hasattr(estimator, "feature_names_in_")
    as_table = is_frame(points) or (is_table(points) and names_of(source))
    if as_table or not (matched or is_stored(points)):
        validate_data(estimator, columns_shown(points, source), skip_check_array=True, reset=False)
    return in_order_of(source, getattr(estimator, "feature_names_in_", ()), "those that fit was given")


def transform_points(estimator: Embedder, points: Any) -> np.ndarray:
    """Return the coordinates (n, d) of new points (n, D), of any type that `fit` takes, or without rows."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "_placement"):
        raise ConfigError(estimator._refusal)
    source = open_new_points(estimator, points)
    try:
        new = NewPoints(estimator._placement, source)
        coordinates = new.read_all()
    except StoreError:
        refuse_gone(estimator._stored_run[0])
        raise
    for message, kind in new.account.warnings:
        give(message, kind)
    return coordinates


@contextlib.contextmanager
def missing_as_attribute() -> Iterator[None]:
    """Have a property that finds nothing stored be absent: `hasattr` and diagrams of estimators pass over it."""
    try:
        yield
    except StoreError as missing:
        raise AttributeError(str(missing)) from missing


def refuse_gone(store: str | Path | None) -> None:
    """Refuse a model whose run is not where it was fitted, as in another process after pickling."""
    if store is not None and "://" not in str(store) and not Path(store).is_dir():
        raise StoreError(
            f"the run of this model is gone, and the model reads it: there is no folder {store}. Copy it there with "
            "the model, or fit without store, whose models hold what they need"
        )


@arguments
class LandmarkEmbedder(Embedder):
    """What the methods by landmarks share: points are combinations of landmarks.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the embedding, d. None: two, or as many as features, landmarks and classes allow.
    landmarks : str, array (L, D) or (L,), or path, default "random"
        As in `LaplacianEigenmaps`.
    n_neighbors : int or None
        Neighbours a point in the graph, k. None: 90, or all other points if fewer.
    affinity : {"gaussian", "self-tuning"}
        The kernel: of one "affinities.sigma", or of the distance to the "affinities.bandwidth_neighbor"-th neighbour as
        each point's sigma.
    disconnected : {"connect", "largest", "error"}
        What is done where the graph falls into pieces, as in `LaplacianEigenmaps`.
    """

    n_components: int | None = field(default=None, kw_only=False)
    landmarks: Landmarks = "random"
