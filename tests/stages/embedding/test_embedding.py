"""The stage `embedding`: what refinement starts from, and certificates that hold against dense eigenproblems."""

import re
import weakref

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.config.params import Parameters
from scalemani.engine.context import StageContext, StageTask
from scalemani.engine.progress import Progress
from scalemani.engine.sizes import Sizes
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.kernels.measures import subspace_angle
from scalemani.runs.walk import run
from scalemani.stages import embedding
from scalemani.stages.arrays.affinities import affinity_graph
from scalemani.stages.embedding import refining
from scalemani.store.groups import StageGroup


def embedded(points, folder, solver, n_components=2, progress=None, **values):
    """Return a run of Laplacian eigenmaps with these parameters of the embedding."""
    asked = {"affinities": {"perplexity": 8}, "landmarks": {"n_landmarks": 150}}
    shape = {"landmark_embedding": {"n_components": n_components}}
    params = Parameters().with_values({**asked, **shape, "embedding": {"solver": solver, **values}})
    executor = Executor(progress=progress or Progress())
    return run(open_points(points), folder, "laplacian-eigenmaps", params, executor, 1024)


def w_of(finished):
    """Return the reader of W of a run."""
    return affinity_graph({stage: finished.group(stage) for stage in finished.keys})


@pytest.fixture
def starts(spy):
    """Return a list that the start vectors of every refinement are added to."""
    return spy(refining, "initial_state", lambda vectors, *_: np.array(vectors, np.float64))


def landmark_start(finished):
    """Return D^1/2 Z X at unit length: what the landmarks say of all points, from what is stored."""
    weights, solved = finished.group("landmark_weights"), finished.group("landmark_embedding")
    n_points, coordinates = finished.dimensions.n_points, solved.read("vectors")
    dense = np.zeros((n_points, len(coordinates)))
    np.put_along_axis(dense, weights.read("indices").astype(np.int64), weights.read("values"), axis=1)
    degrees = w_of(finished).read_degrees(n_points, np.empty)
    vectors = np.sqrt(degrees)[:, np.newaxis] * (dense @ coordinates)
    return vectors / np.linalg.norm(vectors, axis=0)


def test_refinement_of_landmark_vectors_starts_from_them_beside_the_coarse_graphs(roll, tmp_path, starts):
    points = roll[:2000]
    finished = embedded(points, tmp_path / "run", "lll+refine")
    embedded(points, tmp_path / "run", "refine")
    with_landmarks, without = starts
    n_coarse = without.shape[1]
    np.testing.assert_array_equal(with_landmarks[:, :n_coarse], without)
    added = with_landmarks[:, n_coarse:]
    expected = landmark_start(finished)
    assert added.shape == expected.shape
    np.testing.assert_allclose(added / np.linalg.norm(added, axis=0), expected, atol=2.0**-16)  # rounded to that


@pytest.mark.parametrize(("residual", "hierarchies"), [(0.5, 0), (1e-4, 1)])
def test_coarse_graphs_are_at_work_only_where_a_start_is_not_good_enough(roll, tmp_path, spy, residual, hierarchies):
    made = spy(refining, "Multilevel")
    finished = embedded(roll[:2000], tmp_path / "run", "refine", residual=residual)
    passes = finished.certificates["embedding"]["passes"]
    assert (len(made), passes > 1) == (hierarchies, bool(hierarchies))


@pytest.fixture(scope="module")
def clusters():
    """Four clusters on a square, so far from each other that bridges alone join them: three eigenvalues near zero."""
    draws = np.random.default_rng(0)
    corners = np.array([[0, 0], [60, 0], [0, 70], [90, 100]])
    points = np.repeat(corners, 250, axis=0) + draws.normal(size=(1000, 2))
    return np.column_stack([points, 0.1 * draws.normal(size=1000)]).astype(np.float32)


def exact_eigenmaps(finished, count):
    """Return the smallest eigenvalues of L v = lambda D v but for the trivial one, D^1/2 V, and D, in input order."""
    n_points = finished.dimensions.n_points
    weights = w_of(finished).read_matrix(0, n_points).toarray()
    order = np.argsort(finished.group("work_points").read("input_rows"))
    weights = weights.astype(np.float64)[order][:, order]
    degrees = weights.sum(axis=1)
    values, vectors = np.linalg.eigh(weights / np.sqrt(np.outer(degrees, degrees)))
    return 1 - values[::-1][1 : count + 1], vectors[:, ::-1][:, 1 : count + 1], degrees


def bounded(certificates):
    """Return the bound of the angle, a right angle where residuals give none."""
    angle = certificates["angle_bound"]
    return np.pi / 2 if angle is None else angle


CERTIFIED = [
    ("refine", {"residual": 1e-2}),
    ("refine", {"residual": 1e-3}),
    ("refine", {"residual": 1e-7}),
    ("refine", {"residual": 1e-11}),
    ("lll+refine", {"residual": 1e-3}),
    ("lll+refine", {"residual": 1e-8}),
    ("lll", {}),
    ("exact", {}),
]


@pytest.mark.parametrize("n_components", [2, 3])
@pytest.mark.parametrize(("solver", "values"), CERTIFIED)
def test_no_embedding_is_farther_from_the_exact_one_than_it_says(
    clusters, tmp_path, listening, n_components, solver, values
):
    finished = embedded(clusters, tmp_path / "run", solver, n_components, listening, **values)
    exact_values, exact, degrees = exact_eigenmaps(finished, n_components + 1)
    certificates = finished.certificates["embedding"]
    scaled = np.sqrt(degrees)[:, np.newaxis] * np.asarray(finished.embedding[...])
    angle = subspace_angle(scaled, exact[:, :n_components])
    assert angle <= bounded(certificates) + 1e-10  # what rounding makes of gaps of 1e-5 in the dense solve
    error = np.abs(finished.eigenvalues - exact_values[:n_components]).max()
    assert error <= certificates["eigenvalue_error_bound"] + 1e-13
    gap = exact_values[n_components] - exact_values[n_components - 1]
    assert abs(certificates["eigengap"] - gap) <= certificates["eigengap_error_bound"] + 1e-13
    assert certificates["near_zero_eigenvalues"] == 1
    if values.get("residual", 0) <= 1e-6 and solver != "lll":
        assert certificates["eigengap"] == pytest.approx(gap, rel=0.2)
    told = [line for line in listening.warned if "apart: at these residuals" in line]
    assert len(told) == (bounded(certificates) > 0.1)


def test_an_eigengap_far_below_the_residual_is_told_of_with_what_helps(clusters, tmp_path, listening):
    finished = embedded(clusters, tmp_path / "run", "refine", 2, listening, residual=1e-3)
    certificates = finished.certificates["embedding"]
    exact_values, _, _ = exact_eigenmaps(finished, 3)
    assert exact_values[2] - exact_values[1] < 1e-4
    assert certificates["residual"] <= 1e-3
    assert certificates["angle_bound"] is None
    (told,) = [line for line in listening.warned if "apart: at these residuals" in line]
    assert "eigenvalues 2 and 3 are" in told
    assert "or less, or for another landmark_embedding.n_components" in told
    assert "ScalemaniWarning" in [kind for kind, _ in finished.records()["embedding"]["warnings"]]
    residual = float(re.search(r"embedding\.residual=(\S+) or less", told).group(1))
    advised = embedded(clusters, tmp_path / "advised", "refine", 2, residual=residual, max_passes=200)
    assert advised.certificates["embedding"]["angle_bound"] <= 0.1


def chain():
    """Return points on a line whose affinities at a perplexity of 2 vanish at many places for rounding."""
    places = 1000 * np.sort(np.random.default_rng(3).uniform(size=1500))
    return np.column_stack([places, np.zeros(1500)])


CHAIN = {"neighbors": {"n_neighbors": 6}, "affinities": {"perplexity": 2.0}, "landmarks": {"n_landmarks": 300}}


@pytest.mark.parametrize(
    ("solver", "values", "most_angle"),
    [
        ("exact", {}, 1e-5),
        ("refine", {"residual": 1e-11, "max_passes": 300}, 1e-4),
        ("lll+refine", {"residual": 1e-11, "max_passes": 300}, 1e-4),
        ("refine", {}, None),
        ("lll", {}, None),
        ("variational-nystrom", {}, None),
    ],
)
def test_a_chain_that_rounding_cuts_is_embedded_over_bridges_that_count(tmp_path, solver, values, most_angle):
    params = Parameters().with_values(
        {**CHAIN, "landmark_embedding": {"n_components": 3}, "embedding": {"solver": solver, **values}}
    )
    finished = run(open_points(chain()), tmp_path / "run", "laplacian-eigenmaps", params, Executor(), 2048)
    exact_values, exact, degrees = exact_eigenmaps(finished, 4)
    certificates, eigenvalues = finished.certificates["embedding"], np.asarray(finished.eigenvalues)
    assert finished.certificates["components"]["bridges"] > 0
    assert exact_values[0] > 1e-11  # without the bridges, 1e-14
    assert certificates["near_zero_eigenvalues"] == 1
    assert (np.diff(eigenvalues) >= 0).all()
    assert eigenvalues.min() > exact_values[0] * (1 - 1e-4)
    assert abs(certificates["eigengap"] - (exact_values[3] - exact_values[2])) <= certificates["eigengap_error_bound"]
    angle = subspace_angle(np.sqrt(degrees)[:, np.newaxis] * np.asarray(finished.embedding[...]), exact[:, :3])
    assert angle <= bounded(certificates) + 1e-6  # what rounding makes of gaps of 1e-9 in the dense solve
    if most_angle is not None:
        assert angle < most_angle
        np.testing.assert_allclose(eigenvalues, exact_values[:3], rtol=1e-4)


def two_lines(away):
    """Return two lines of 100 points with one point halfway between them, `away` from both."""
    line = np.linspace(0, 1, 100)
    return np.column_stack([np.concatenate([line, [1 + away], line + 1 + 2 * away]), np.zeros(201)])


@pytest.mark.parametrize(
    ("solver", "stage"),
    [
        *[(solver, "embedding") for solver in ("exact", "refine", "lll", "lll+refine", "variational-nystrom")],
        ("nystrom", "landmark_graph"),
        ("le-z", "landmark_graph"),
    ],
)
def test_eigenvalues_that_are_zero_to_rounding_are_counted_and_told_whatever_the_solver(
    tmp_path, listening, solver, stage
):
    """The point in the middle hangs on both lines by all its affinities, which are nothing to them."""
    sigma = 0.2
    values = {
        "neighbors": {"n_neighbors": 10},
        "affinities": {"kind": "gaussian", "sigma": sigma},
        "landmark_graph": {"sigma": sigma, "n_neighbors": 10},
        "landmarks": {"n_landmarks": 201, "method": "random"},
        "embedding": {"solver": solver},
        "landmark_embedding": {"n_components": 3},
    }
    weight = 1e-15 if stage == "landmark_graph" else 1e-11
    points = two_lines(sigma * np.sqrt(-2 * np.log(weight)))
    params, executor = Parameters().with_values(values), Executor(progress=listening)
    finished = run(open_points(points), tmp_path / "run", "laplacian-eigenmaps", params, executor, 1024)
    if stage == "embedding":
        assert finished.certificates["components"]["components"] == 1
    n_zero = 2 if stage == "embedding" else 3  # the point between stays with itself where kernels have a diagonal
    assert finished.certificates[stage]["near_zero_eigenvalues"] == n_zero
    zero, last = finished.eigenvalues[: n_zero - 1], finished.eigenvalues[n_zero - 1]
    assert ((zero >= 0) & (zero < 1e-13)).all()
    assert 1e-13 < last < 2
    (told,) = [line for line in listening.warned if "eigenvalues are zero to rounding" in line]
    assert told.startswith(f"{stage}: {n_zero} eigenvalues")
    assert "raise" in told
    assert "ShortfallWarning" in [kind for kind, _ in finished.records()[stage]["warnings"]]
    assert not [line for line in listening.warned if "apart: at these residuals" in line]


def test_the_start_of_a_descent_is_told_nothing_of_its_eigengap(clusters, tmp_path, listening):
    values = {"layout": {"max_iterations": 3, "exaggerated_iterations": 0}, "affinities": {"perplexity": 8}}
    params = Parameters().with_values(values)
    finished = run(open_points(clusters), tmp_path / "run", "t-sne", params, Executor(progress=listening), 1024)
    assert bounded(finished.certificates["embedding"]) > 0.1
    assert not [line for line in listening.warned if "apart: at these residuals" in line]


@pytest.mark.parametrize(
    ("solver", "values"),
    [
        ("refine", {"residual": 0.5, "max_passes": 2}),
        ("refine", {"residual": 1e-3}),
        ("refine", {"residual": 1e-8}),
        ("lll+refine", {"residual": 1e-4}),
        ("lll", {}),
    ],
)
def test_the_residual_is_that_of_the_generalised_eigenproblem_of_what_is_stored(roll, tmp_path, solver, values):
    finished = embedded(roll[:2000], tmp_path / "run", solver, 3, **values)
    n_points, order = finished.dimensions.n_points, finished.group("work_points").read("input_rows")
    stored = w_of(finished)
    weights = sp.vstack([stored.read_matrix(block, n_points) for block in range(2)]).astype(np.float64)
    vectors, degrees = np.asarray(finished.embedding[...])[order], np.asarray(weights.sum(axis=1))
    laplacian = sp.diags_array(degrees.ravel()) - weights
    missed = laplacian @ vectors - degrees * vectors * finished.eigenvalues
    lengths = np.linalg.norm(missed / np.sqrt(degrees), axis=0) / np.linalg.norm(vectors * np.sqrt(degrees), axis=0)
    residual = finished.certificates["embedding"]["residual"]
    assert residual == pytest.approx(lengths.max(), rel=0.01)
    assert residual > 1e-3 if "residual" not in values or values["residual"] == 0.5 else residual <= values["residual"]


class LiveArrays:
    """Makes arrays, and counts the bytes of those with a row for each of `n_points` that are there at one time."""

    def __init__(self, n_points):
        self.n_points, self.now, self.most = n_points, 0, 0

    def empty(self, shape, dtype):
        made = np.empty(shape, dtype)
        if len(made) >= self.n_points:
            self.change(made.nbytes)
            weakref.finalize(made, self.change, -made.nbytes)
        return made

    def change(self, n_bytes):
        self.now += n_bytes
        self.most = max(self.most, self.now)


@pytest.mark.filterwarnings("ignore::scalemani.errors.ScalemaniWarning")
@pytest.mark.parametrize(
    ("solver", "disconnected"), [("refine", "connect"), ("refine", "separate"), ("exact", "separate")]
)
def test_arrays_with_a_row_a_point_take_no_more_than_the_stage_lists(tmp_path, solver, disconnected):
    clouds = np.repeat([0.0, 100.0, -100.0], [3600, 1200, 1200])
    points, live = clouds[:, np.newaxis] + np.random.default_rng(0).normal(size=(6000, 3)), LiveArrays(6000)

    class Counted(StageContext):
        """Counts the arrays that it makes."""

        @property
        def workspace(self):
            return super().workspace._replace(empty=live.empty)

    values = {"affinities": {"perplexity": 8}, "components": {"disconnected": disconnected}}
    params = Parameters().with_values({**values, "embedding": {"solver": solver}})
    found = run(open_points(points), tmp_path, "laplacian-eigenmaps", params, Executor(workers=1), 1024)
    inputs = {name: found.group(name) for name in found.route[-1].inputs}
    output = StageGroup(tmp_path, "stages/embedding/again", 1024)
    task = StageTask("embedding", found.dimensions, found.params, inputs, output, 0)
    embedding.run(Counted(task, Executor(workers=1), 1))
    held = embedding.memory(Sizes(found.dimensions, found.params))
    listed = max(sum(step.points.values()) for step in held.by_step.values())
    assert live.most <= listed <= 6 * live.most
