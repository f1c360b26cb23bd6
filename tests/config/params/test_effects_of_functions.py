"""Every parameter of every public function changes what it returns, or says why it does not."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import scalemani as sm
from scalemani.engine.progress import Progress
from tests.config.params.effects import ROWS, Row, Same, moved_by, points_of_each_kind

DRAW = np.random.default_rng(3)
N = 90
X, NEW = DRAW.gamma(2.0, size=(N, 4)), DRAW.gamma(2.0, size=(20, 4))
MAP, OTHER_MAP = DRAW.normal(size=(N, 2)), DRAW.normal(size=(N, 2))
LABELS, OTHER_LABELS = np.arange(N) % 3, np.arange(N) % 4
WEIGHTS = 1.0 + np.arange(N) % 3
ALL = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
NEAR = np.argsort(ALL, axis=1, kind="stable")[:, 1:13]
DISTANCES = np.take_along_axis(ALL, NEAR, axis=1)
VALUES = np.exp(-(DISTANCES**2))
TWINS = np.full(N, 0.5)
W = sm.symmetric_affinities(NEAR, VALUES)
OTHER_W = sm.symmetric_affinities(NEAR[:, :8], VALUES[:, :8])
LANDMARKS, OTHER_LANDMARKS = np.arange(0, N, 6), np.arange(0, N, 5)
Z = sm.landmark_weights(X, X[LANDMARKS], 4)
OTHER_Z = sm.landmark_weights(X, X[LANDMARKS], 3)
REDUCED, OTHER_REDUCED = sm.reduce_laplacian(W, Z), sm.reduce_laplacian(OTHER_W, Z)
IDS = (np.arange(N), np.roll(np.arange(N), 7))
ANNOTATED = SimpleNamespace(
    X=X, obsm={"X_pca": X, "X_other": X[::-1].copy()}, obs_names=[str(row) for row in range(N)], var_names=list("abcd")
)
FEW = {"layout.max_iterations": 6, "layout.converged": 0.0}


@dataclasses.dataclass(frozen=True)
class Table:
    """A function, what it is given, and the rows of its parameters."""

    function: Callable[..., Any]
    given: Mapping[str, Any]
    rows: Mapping[str, Row | Same | tuple[Row | Same, ...]]


def dictionary(function: Callable[..., Any], rows: Mapping[str, Any], **given: Any) -> Table:
    """Return the table of a function."""
    return Table(function, given, rows)


WIDE_MAP = np.random.default_rng(0).normal(size=(2000, 2))
RESOURCE = "a resource"
SAMPLED = 10_000  # points that choose a bandwidth
METRIC = Row("cosine")
SEED_OF_SAMPLE = Row(1, {"n_sampled": 30})
MANY = np.random.default_rng(0).gamma(2.0, size=(SAMPLED + 2000, 8)).cumsum(axis=1)
QUICK = {"estimator": sm.LaplacianEigenmaps(2, solver="lll", n_landmarks=20), "param_grid": {"perplexity": [3, 6]}}
TABLES = [
    dictionary(
        sm.align,
        {"embedding": Row(OTHER_MAP), "reference": Row(MAP[::-1] ** 3), "ids": Row(IDS)},
        embedding=MAP, reference=OTHER_MAP,
    ),
    dictionary(
        sm.compare_landmarks,
        {
            "points": Row(X[::-1] ** 2), "n_landmarks": Row(9), "methods": Row(["spread"]), "seeds": Row([1]),
            "sigma": Row(0.3), "n_sampled": Row(30), "settings": Row({"landmark_weights.n_neighbors": 2}),
            "workers": Same(2, "a resource"), "memory": Same("2GB", "a resource"),
            "progress": Same(Progress(), "it is told"),
        },
        points=X, n_landmarks=15, methods=["random"],
    ),
    dictionary(
        sm.entropic_affinities,
        {
            "distances": Row(DISTANCES**2), "perplexity": Row(4.0), "solver": Row("bisection", changes="iterations"),
            "order": Row("raster", changes="iterations"), "tol": Row(0.1),
            "indices": Row(np.roll(NEAR, 1, axis=1), {"sample_weight": WEIGHTS}),
            "random_state": Row(1, {"order": "random"}, changes="iterations"), "sample_weight": Row(WEIGHTS),
        },
        distances=DISTANCES, perplexity=3.0, indices=NEAR,
    ),
    dictionary(
        sm.determinantal_draw,
        {"kernel": Row(np.exp(-ALL)), "n_drawn": Row(4), "exponent": Row(0.0), "random_state": Row(1)},
        kernel=np.exp(-(ALL**2)), n_drawn=6,
    ),
    dictionary(
        sm.grow_landmarks,
        {
            "points": Row(X[::-1] ** 2), "W": Row(OTHER_W), "reference": Row(OTHER_MAP), "angle": Row(2.0),
            "batch": Row(20), "most": Row(50), "n_neighbors": Row(3), "random_state": Row(1),
        },
        points=X, W=W, reference=MAP, batch=30, most=60,
    ),
    dictionary(
        sm.gaussian_affinities,
        {
            "distances": Row(DISTANCES**2), "sigma": Row(0.3), "neighbor": Row(2),
            "random_state": Row(1, {"distances": MANY}, least=1e-9),
        },
        distances=DISTANCES,
    ),
    dictionary(
        sm.self_tuning_affinities, {"distances": Row(DISTANCES**2), "neighbor": Row(2), "indices": Row(NEAR)},
        distances=DISTANCES,
    ),
    dictionary(
        sm.affinity_order,
        {
            "distances": Row(DISTANCES[::-1]), "method": Row("raster"),
            "indices": Row(NEAR[:, ::-1], {"method": "mst"}),
            "kappa": Row(1), "image_columns": Row(3, {"method": "raster"}),
            "random_state": Row(1, {"method": "random"}),
        },
        distances=DISTANCES, indices=NEAR,
    ),
    dictionary(
        sm.affinities_in_order,
        {
            "distances": Row(DISTANCES**2), "order": Row(np.full(len(DISTANCES), -1), changes="iterations"),
            "perplexity": Row(4.0), "solver": Row("bisection", changes="iterations"), "tol": Row(0.1),
        },
        distances=DISTANCES, perplexity=3.0, order=np.arange(len(DISTANCES)) - 1,
    ),
    dictionary(
        sm.order_lengths,
        {"order": Row(np.full(N, -1)), "beta": Row(np.arange(N) + 2.0), "points": Row(2 * X)},
        order=np.arange(N) - 1, beta=np.arange(N) + 1.0, points=X,
    ),
    dictionary(
        sm.landmark_features,
        {"points": Row(X[::-1]), "landmarks": Row(X[LANDMARKS] + 1), "eta": Row(1.0), "geometry": Row("hellinger")},
        points=X, landmarks=X[LANDMARKS], eta=3.0,
    ),
    dictionary(
        sm.landmark_weights,
        {
            "points": Row(X[::-1]), "landmarks": Row(X[LANDMARKS] + 1), "n_neighbors": Row(3), "tolerance": Row(0.9),
            "radius": Row(1.0),
        },
        points=X, landmarks=X[LANDMARKS],
    ),
    dictionary(
        sm.minimize,
        {
            "W": Row(OTHER_W), "method": Row("t-sne"), "init": Row(MAP), "n_components": Row(3),
            "direction": Row("momentum"), "settings": Row({**FEW, "layout.strength": 0.3}), "random_state": Row(1),
            "sample_weight": Row(WEIGHTS),
        },
        W=W, settings=FEW,
    ),
    dictionary(
        sm.mixed_affinities,
        {
            "groups": Row([X, X[:, :2] ** 2]), "combine": (Row("product"), Row("union")), "perplexity": Row(3.0),
            "weights": Row([1, 3]), "n_neighbors": Row(14), "workers": Same(2, "a resource"),
            "random_state": Same(1, "so few points are searched exactly"), "memory": Same("2GB", "a resource"),
        },
        groups=[X, X[:, :2]], perplexity=4.0,
    ),
    dictionary(
        sm.objective,
        {
            "embedding": Row(OTHER_MAP), "W": Row(OTHER_W), "method": Row("s-sne"), "strength": Row(0.5),
            "repulsion": Row("grid", least=1e-7), "tolerance": Row(0.4, {"repulsion": "barnes-hut"}),
            "sample_weight": Row(WEIGHTS), "dof": Row(0.5, {"method": "t-sne"}),
        },
        embedding=MAP, W=W, strength=1.0,
    ),
    dictionary(
        sm.objective_of_pairs,
        {
            "embedding": Row(OTHER_MAP), "W": Row(OTHER_W), "pair_weights": Row(OTHER_W), "method": Row("t-ee"),
            "strength": Row(0.5),
        },
        embedding=MAP, W=W, pair_weights=W, strength=1.0,
    ),
    dictionary(sm.reduce_laplacian, {"W": Row(OTHER_W), "Z": Row(OTHER_Z)}, W=W, Z=Z),
    dictionary(
        sm.repulsion,
        {
            "embedding": Row(OTHER_MAP), "kernel": Row("gaussian"), "method": Row("grid", least=1e-7),
            "tolerance": Row(0.4, {"method": "barnes-hut"}), "theta": Row(1.5, {"method": "barnes-hut"}),
            "order": Row(2, {"method": "fgt", "kernel": "gaussian", "embedding": WIDE_MAP}, least=1e-9),
            "sample_weight": Row(WEIGHTS),
        },
        embedding=MAP,
    ),
    dictionary(
        sm.repulsion_bound,
        {"embedding": Row(3 * OTHER_MAP), "order": Row(3), "tolerance": Row(0.3)},
        embedding=3 * MAP,
    ),
    dictionary(
        sm.select_landmarks,
        {
            "points": Row(X[::-1]), "n_landmarks": Row(9), "method": Row("kmeans++"), "random_state": Row(1),
            "sample_points": Row(1000, {"method": "kmeans", "points": np.random.default_rng(0).normal(size=(1500, 3))}),
            "snap": Row(False, {"method": "kmeans"}),
            "settings": Row({"landmarks.sigma": 0.3}, {"method": "dpp-exact"}),
            "metric": Row("cosine", {"method": "minmax"}),
        },
        points=X, n_landmarks=15,
    ),
    dictionary(sm.solve_reduced, {"A": Row(OTHER_REDUCED[0]), "B": Row(OTHER_REDUCED[1]), "n_components": Row(3)},
               A=REDUCED[0], B=REDUCED[1]),
    dictionary(
        sm.symmetric_affinities,
        {
            "indices": Row(np.roll(NEAR, 1, axis=1)), "values": Row(VALUES**2),
            "sample_weight": Row(1 + WEIGHTS, {"sample_weight": WEIGHTS, "twins": TWINS}),
            "twins": Row(2 * TWINS, {"sample_weight": WEIGHTS, "twins": TWINS}),
            "labels": Row(OTHER_LABELS, {"labels": LABELS, "target_weight": 0.5}),
            "target_weight": Row(0.9, {"labels": LABELS, "target_weight": 0.5}),
        },
        indices=NEAR, values=VALUES,
    ),
    dictionary(
        sm.tune,
        {
            "estimator": Row(sm.DiffusionMaps(2, solver="lll", n_landmarks=20)),
            "param_grid": Row({"perplexity": [3, 8]}), "X": Row(X[::-1] ** 2), "y": Row(OTHER_LABELS, {"y": LABELS}),
            "reference": Row(OTHER_MAP, {"reference": MAP}), "scoring": Row("trustworthiness"),
            "n_neighbors": Row(3, {"scoring": "trustworthiness"}),
        },
        **QUICK, X=X,
    ),
    dictionary(
        sm.measures.adjusted_rand_index, {"labels": Row(LABELS), "reference": Row(np.arange(N) % 2)},
        labels=OTHER_LABELS, reference=np.arange(N) // 30,
    ),
    dictionary(
        sm.measures.normalized_mutual_information, {"labels": Row(LABELS), "reference": Row(np.arange(N) % 2)},
        labels=OTHER_LABELS, reference=np.arange(N) // 30,
    ),
    dictionary(
        sm.measures.clustering_error, {"labels": Row(LABELS), "reference": Row(np.arange(N) % 2)},
        labels=OTHER_LABELS, reference=np.arange(N) // 30,
    ),
    dictionary(
        sm.measures.knn_accuracy,
        {
            "embedding": Row(OTHER_MAP), "labels": Row(OTHER_LABELS), "n_neighbors": Row(5), "n_sampled": Row(30),
            "random_state": SEED_OF_SAMPLE,
        },
        embedding=MAP, labels=LABELS,
    ),
    *(
        dictionary(
            measure,
            {
                "points": Row(X[::-1]), "embedding": Row(OTHER_MAP), "n_neighbors": Row(4), "metric": METRIC,
                "n_sampled": Row(30), "random_state": SEED_OF_SAMPLE,
            },
            points=X, embedding=X[:, :2] ** 2,
        )
        for measure in (
            sm.measures.neighbor_preservation, sm.measures.trustworthiness, sm.measures.continuity,
            sm.measures.density_correlation,
        )
    ),
    *(
        dictionary(
            measure,
            {
                "points": Row(X[::-1]), "embedding": Row(OTHER_MAP), "metric": METRIC, "n_sampled": Row(30),
                "random_state": Row(1, {"n_sampled": 30}),
            },
            points=X, embedding=X[:, :2] ** 2,
        )
        for measure in (sm.measures.triplet_accuracy, sm.measures.distance_correlation)
    ),
    dictionary(
        sm.measures.center_triplet_accuracy,
        {
            "points": Row(X[::-1]), "embedding": Row(OTHER_MAP), "labels": Row(OTHER_LABELS), "n_sampled": Row(30),
            "random_state": SEED_OF_SAMPLE,
        },
        points=X, embedding=X[:, :2] ** 2, labels=LABELS,
    ),
    dictionary(
        sm.measures.silhouette,
        {
            "embedding": Row(OTHER_MAP), "labels": Row(OTHER_LABELS), "n_sampled": Row(30),
            "random_state": SEED_OF_SAMPLE,
        },
        embedding=MAP, labels=LABELS,
    ),
    dictionary(
        sm.measures.recall,
        {
            "indices": Row(NEAR), "points": Row(X[::-1]), "metric": METRIC, "n_sampled": Row(30),
            "random_state": SEED_OF_SAMPLE,
        },
        indices=np.where(np.arange(N)[:, None] % 3, NEAR, np.argsort(ALL, axis=1)[:, 9:21]), points=X,
    ),
    dictionary(
        sm.measures.procrustes_error, {"embedding": Row(OTHER_MAP), "reference": Row(OTHER_MAP)},
        embedding=MAP, reference=X[:, :2],
    ),
    dictionary(
        sm.measures.subspace_angle, {"vectors": Row(OTHER_MAP), "reference": Row(OTHER_MAP)},
        vectors=MAP, reference=X[:, :2],
    ),
]  # fmt: skip


def fitted(estimator: type, points: np.ndarray) -> Callable[..., Any]:
    """Return a function of the parameters of an estimator that returns what it finds of points."""

    def found(**given: Any) -> dict[str, Any]:
        model = estimator(**given).fit(points)
        if estimator is sm.LandmarkFeatures:
            return {"landmarks": model.landmarks_, "features": model.transform(points[:20])}
        return {"recall": model.recall_, "graph": model.fit_transform(points).toarray()}

    found.__signature__ = inspect.signature(estimator)  # type: ignore[attr-defined]
    found.__name__ = estimator.__name__
    return found


CROWD = np.abs(np.random.default_rng(1).normal(size=(1200, 4)))
SEARCH = next(row for row in ROWS["neighbors.n_probes"] if isinstance(row, Row)).under  # which misses neighbours
TABLES += [
    dictionary(
        fitted(sm.LandmarkFeatures, CROWD),
        {
            "n_landmarks": Row(9),
            "method": Row("random"),
            "eta": (Row(1.0, changes="landmarks"), Row(0.05, {"method": "gp-active"}, "landmarks")),
            "geometry": Row("hellinger"),
            "settings": (
                Row({"landmarks.steps": 10}),
                Row({"landmarks.sample_points": 1000}, {"method": "minmax", "settings": {}}),
            ),
            "random_state": Row(1),
        },
        n_landmarks=12,
        settings={"landmarks.steps": 30},
    ),
    dictionary(
        fitted(sm.KNeighborsTransformer, points_of_each_kind()["wide"]),
        {
            "n_neighbors": Row(9),
            "mode": Row("connectivity"),
            "metric": Row("cosine"),
            "settings": Row({**SEARCH, "neighbors.n_probes": 3}, {"settings": SEARCH}, "graph"),
            "random_state": Row(1, {"settings": SEARCH}),
            "use_rep": Same(None, "an array has no rows of an AnnData: see `interfaces/estimators/test_frames.py`"),
            "scheduler": Same(None, "it tells where tasks run"),
            "store": Same(None, "it tells where results are kept"),
            "workers": Same(2, RESOURCE),
            "memory": Same("2GB", RESOURCE),
            "verbose": Same(True, "it tells of progress"),
        },
        n_neighbors=12,
        workers=1,
    ),
]
TABLE_OF = {table.function: table for table in TABLES}
ELSEWHERE = {
    sm.knn_graph: "test_effects.py, as an estimator",
    sm.append: "test_effects_of_commands.py, as a command",
    sm.transform: "test_effects_of_commands.py, as a command",
    sm.continue_eigenvectors: "tests/methods/landmark_graph/test_interface.py, by NumPy",
    sm.open_run: "every table reads runs by it",
}  # fmt: skip
TOLD = {"seconds", "memory", "store"}  # of a result: what it took


def parts(result: Any) -> dict[str, np.ndarray]:
    """Return the numbers and words of a result by name, but what it took and where it lies."""
    if sp.issparse(result):
        return {"": result.toarray()}
    if isinstance(result, sm.Tuning):
        scores = {
            name: column for name, column in result.results_.items() if "time" not in name and "second" not in name
        }
        return {name: np.asarray(column, dtype=str) for name, column in scores.items()}
    if dataclasses.is_dataclass(result):
        result = {each.name: getattr(result, each.name) for each in dataclasses.fields(result)}
    elif hasattr(result, "_asdict"):
        result = result._asdict()
    if isinstance(result, tuple | list):
        result = dict(enumerate(result))
    if not isinstance(result, dict):
        return {"": np.asarray(result)}
    named = {name: parts(value) for name, value in result.items() if name not in TOLD}
    return {f"{name} {inner}".strip(): value for name, found in named.items() for inner, value in found.items()}


def has_moved(one: Any, other: Any, row: Row) -> bool:
    """Return whether two results differ, in the part that a row names if it names one."""
    before, after = parts(one), parts(other)
    if row.changes != Row.changes:
        before, after = ({name: found[name] for name in found if name == row.changes} for found in (before, after))
        assert before
    return before.keys() != after.keys() or any(moved_by(before[name], after[name]) > row.least for name in before)


def dead_parameters(table: Table) -> list[str]:
    """Return the parameters of which a row says what is not so."""
    known, dead = {}, []
    for name, rows in table.rows.items():
        for row in rows if isinstance(rows, tuple) else (rows,):
            under = tuple(row.under)
            if under not in known or any(row.under):
                known[under] = table.function(**{**table.given, **row.under})
            found = table.function(**{**table.given, **row.under, name: row.value})
            if has_moved(known[under], found, row if isinstance(row, Row) else Row(None, least=0.0)) == isinstance(
                row, Same
            ):
                dead.append(name)
    return dead


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.function.__name__)
@pytest.mark.filterwarnings("ignore::scalemani.errors.ScalemaniWarning")
def test_every_parameter_of_a_function_does_what_its_row_says(table):
    assert table.rows.keys() == inspect.signature(table.function).parameters.keys()
    assert dead_parameters(table) == []


def test_every_public_function_has_a_table():
    public = [getattr(sm, name) for name in sm.__all__]
    functions = {one for one in public if inspect.isfunction(one)}
    measures = {getattr(sm.measures, name) for name in sm.measures.__all__}
    functions |= {one for one in measures if inspect.isfunction(one)}
    assert functions == {one for one in TABLE_OF if one.__module__ != __name__} | set(ELSEWHERE)
    assert {"LandmarkFeatures", "KNeighborsTransformer"} <= {one.__name__ for one in TABLE_OF}
