"""Wrong runs: each a function that changes the numbers of a copy of a right one."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg
import scipy.spatial

import scalemani as sm
from scalemani.kernels.spectral.accuracy import Following, subspace_accuracy
from tests.audit.forging import Forged, read_json
from tests.audit.runs import descent

Change = Callable[[Forged], None]
WRONG: dict[str, tuple[str, Change, str]] = {}  # by name: the right run that is changed, how, and what finds it


def of(run: str, claim: str = "") -> Callable[[Change], Change]:
    """Enter a change of a right run into the table, with words of a claim that fails then."""

    def enter(change: Change) -> Change:
        WRONG[change.__name__] = run, change, claim
        return change

    return enter


def rng() -> np.random.Generator:
    return np.random.default_rng(11)


# The graph


def change_lists(run: Forged, act: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]) -> None:
    names = run.lists()
    indices, distances = act(*(run.read("neighbors", name) for name in names))
    run.write("neighbors", names[0], indices)
    run.write("neighbors", names[1], distances)
    if "graph" in run.plan["keys"]:  # the result says the same as the search
        order = run.read("work_points", "input_rows")
        for name, values in (("indices", order[indices]), ("distances", distances)):
            placed = np.empty_like(values)
            placed[order] = values
            run.write("graph", name, placed)


def repeat_first(rows: np.ndarray) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    def act(indices: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        for values in (indices, distances):
            values[rows, 2:] = values[rows, 1:-1]
            values[rows, 1] = values[rows, 0]
        return indices, distances

    return act


@of("graph")
def repeated_neighbours(run: Forged) -> None:
    change_lists(run, repeat_first(np.arange(run.n_points)))


@of("graph")
def repeated_neighbours_of_few_rows(run: Forged) -> None:
    change_lists(run, repeat_first(rng().choice(run.n_points, 20, replace=False)))


@of("graph")
def points_that_are_their_own_neighbours(run: Forged) -> None:
    def act(indices: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        indices[:, 1:], distances[:, 1:] = indices[:, :-1].copy(), distances[:, :-1].copy()
        indices[:, 0], distances[:, 0] = np.arange(len(indices)), 0.0
        return indices, distances

    change_lists(run, act)


@of("graph")
def neighbours_at_random(run: Forged) -> None:
    def act(indices: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own, draw = run.read("work_points", "points").astype(float), rng()
        for row in range(0, len(indices), 3):
            others = draw.choice(np.delete(np.arange(len(indices)), row), indices.shape[1], replace=False)
            lengths = np.linalg.norm(own[others] - own[row], axis=1)
            order = np.argsort(lengths)
            indices[row], distances[row] = others[order], lengths[order]
        return indices, distances

    change_lists(run, act)


@of("graph")
def distances_that_are_longer(run: Forged) -> None:
    change_lists(run, lambda indices, distances: (indices, distances * 1.01))


@of("graph")
def distances_of_few_rows(run: Forged) -> None:
    def act(indices: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        distances[::400] *= 1.05
        return indices, distances

    change_lists(run, act)


@of("graph")
def rows_of_the_graph_swapped(run: Forged) -> None:
    def act(indices: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        for values in (indices, distances):
            values[[10, 900]] = values[[900, 10]]
        return indices, distances

    change_lists(run, act)


@of("graph")
def the_nearest_neighbour_left_out(run: Forged) -> None:
    def act(indices: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own = run.read("work_points", "points").astype(float)
        for row in range(len(indices)):
            lengths = np.linalg.norm(own - own[row], axis=1)
            order = np.argsort(lengths)[2 : indices.shape[1] + 2]
            indices[row], distances[row] = order, lengths[order]
        return indices, distances

    change_lists(run, act)


@of("graph-low")
def a_recall_that_is_higher(run: Forged) -> None:
    for stage in ("neighbors", "graph"):
        run.claim(stage, recall=0.99)


@of("graph")
def results_in_work_order(run: Forged) -> None:
    for name, path in zip(("indices", "distances"), run.lists(), strict=True):
        run.write("graph", name, run.read("neighbors", path))


@of("cosine")
def cosine_distances_that_are_not_mapped(run: Forged) -> None:
    change_lists(run, lambda indices, distances: (indices, distances**2 / 2))


@of("jaccard")
def distances_of_bits_and_not_of_sets(run: Forged) -> None:
    own = run.read("work_points", "points").astype(float)

    def act(indices: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return indices, np.sort(np.linalg.norm(own[indices] - own[:, None], axis=2), axis=1)

    change_lists(run, act)


@of("canberra")
def euclidean_distances_of_rows_that_a_function_compares(run: Forged) -> None:
    own = run.read("work_points", "points").astype(float)

    def act(indices: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return indices, np.sort(np.linalg.norm(own[indices] - own[:, None], axis=2), axis=1)

    change_lists(run, act)


@of("canberra")
def neighbors_that_are_the_nearest_by_another_distance(run: Forged) -> None:
    own = run.read("work_points", "points").astype(float)

    def act(indices: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        away = scipy.spatial.distance.cdist(own, own)
        np.fill_diagonal(away, np.inf)
        nearest = np.argsort(away, axis=1)[:, : indices.shape[1]]
        lengths = np.take_along_axis(scipy.spatial.distance.cdist(own, own, "canberra"), nearest, axis=1)
        order = np.argsort(lengths, axis=1)
        return np.take_along_axis(nearest, order, axis=1), np.take_along_axis(lengths, order, axis=1)

    change_lists(run, act)


# The order of points


@of("graph")
def points_swapped(run: Forged) -> None:
    def act(rows: np.ndarray) -> np.ndarray:
        half = len(rows) // 2
        rows[:60], rows[half : half + 60] = rows[half : half + 60].copy(), rows[:60].copy()
        return rows

    run.change("work_points", "points", act)


@of("graph")
def input_rows_swapped(run: Forged) -> None:
    run.change("work_points", "input_rows", lambda rows: np.roll(rows, 1))


@of("graph")
def an_input_row_twice(run: Forged) -> None:
    def act(rows: np.ndarray) -> np.ndarray:
        rows[5] = rows[6]
        return rows

    run.change("work_points", "input_rows", act)


@of("graph")
def sketches_of_other_axes(run: Forged) -> None:
    run.change("work_points", "sketch", lambda values: values[:, ::-1])


@of("graph")
def cells_of_other_points(run: Forged) -> None:
    run.change("partition", "cells", lambda cells: np.roll(cells, 7))


# Affinities


@of("refine")
def bandwidths_shifted(run: Forged) -> None:
    run.change("affinities", "beta", lambda beta: np.roll(beta, 1))


@of("refine")
def affinities_of_another_perplexity(run: Forged) -> None:
    squares = run.read("neighbors", run.lists()[1]).astype(float) ** 2
    beta = 1.3 * run.read("affinities", "beta")
    values = np.exp(-beta[:, None] * (squares - squares[:, :1]))
    run.write("affinities", "beta", beta)
    run.write("affinities", "values", values / values.sum(axis=1, keepdims=True))


@of("refine")
def affinities_reversed(run: Forged) -> None:
    run.change("affinities", "values", lambda values: values[:, ::-1])


@of("refine")
def affinities_of_the_row_before(run: Forged) -> None:
    run.change("affinities", "values", lambda values: np.roll(values, 1, axis=0))


@of("refine")
def affinities_that_sum_to_two(run: Forged) -> None:
    run.change("affinities", "values", lambda values: 2 * values)


@of("gaussian")
def another_sigma(run: Forged) -> None:
    run.change("affinities", "sigma", lambda sigma: 1.1 * sigma)


@of("refine")
def saturated_points_that_are_not(run: Forged) -> None:
    def act(saturated: np.ndarray) -> np.ndarray:
        saturated[::50] = 1
        return saturated

    run.change("affinities", "saturated", act)


@of("weights")
def weights_doubled(run: Forged) -> None:
    run.change("weights", "weights", lambda weights: 2 * weights)


# W


def change_w(run: Forged, act: Callable[[sp.csr_matrix], sp.csr_matrix], stage: str = "symmetric_affinities") -> None:
    """Write what a function makes of W, with its degrees."""
    folders, starts = run.blocks(stage), range(0, run.n_points, run.block_rows)
    parts = [[run.read(stage, f"{folder}/{name}") for name in ("values", "indices", "indptr")] for folder in folders]
    shapes = [(len(indptr) - 1, run.n_points) for _, _, indptr in parts]
    whole = sp.vstack([sp.csr_matrix(tuple(part), shape) for part, shape in zip(parts, shapes, strict=True)], "csr")
    changed = sp.csr_matrix(act(whole.astype(np.float32)))
    changed.sort_indices()
    changed.data = changed.data.astype(np.float32)
    for folder, start in zip(folders, starts, strict=True):
        rows = changed[start : start + run.block_rows]
        for name, values in (("values", rows.data), ("indices", rows.indices), ("indptr", rows.indptr)):
            run.write(stage, f"{folder}/{name}", values)
        run.write(stage, f"{folder}/degrees", np.asarray(rows.astype(np.float64).sum(axis=1)).ravel())
    degrees = np.asarray(changed.astype(np.float64).sum(axis=1)).ravel()
    run.claim(stage, nonzeros=int(changed.nnz), least_degree=degrees.min(), largest_degree=degrees.max())


@of("refine")
def w_that_is_not_symmetric(run: Forged) -> None:
    def act(w: sp.csr_matrix) -> sp.csr_matrix:
        w.data[:: len(w.data) // 50] *= 1.02
        return w

    change_w(run, act)


@of("refine")
def w_with_one_entry_that_is_not_symmetric(run: Forged) -> None:
    def act(w: sp.csr_matrix) -> sp.csr_matrix:
        w.data[777] *= 1.001
        return w

    change_w(run, act)


@of("refine")
def w_without_symmetry(run: Forged) -> None:
    """W is P: rows as they come, not their mean with the columns."""
    indices, values = run.read("neighbors", run.lists()[0]), run.read("affinities", "values")
    bounds = np.arange(0, indices.size + 1, indices.shape[1])
    change_w(run, lambda _: sp.csr_matrix((values.ravel(), indices.ravel(), bounds), shape=(run.n_points,) * 2))


@of("refine")
def w_doubled(run: Forged) -> None:
    change_w(run, lambda w: 2 * w)


@of("refine")
def edges_of_w_left_out(run: Forged) -> None:
    def act(w: sp.csr_matrix) -> sp.csr_matrix:
        pairs = sp.triu(w, 1).tocoo()
        pairs.data[::200] = 0
        half = pairs.tocsr()
        half.eliminate_zeros()
        return half + half.T

    change_w(run, act)


@of("refine")
def edges_of_w_moved(run: Forged) -> None:
    """Columns of W are permuted as its rows are: another graph with the same degrees."""
    order = np.arange(run.n_points)
    order[:40] = np.roll(order[:40], 1)
    change_w(run, lambda w: w[order][:, order])


@of("lll", "rows of W")
def a_block_that_sends_edges_left_out(run: Forged) -> None:
    """Rows of W are made without the edges of a block, and have the degrees that follow."""
    stage = "symmetric_affinities"
    first, graph = run.blocks(stage)[0], f"round_{run.read('neighbors', 'last_round')}/indices"
    sources = run.read(stage, f"{first}/sources")
    run.write(stage, f"{first}/sources", sources[1:])
    rows = slice(sources[0] * run.block_rows, (sources[0] + 1) * run.block_rows)
    targets, values = run.read("neighbors", graph)[rows], run.read("affinities", "values")[rows]
    inside = targets < run.block_rows
    lost = np.bincount(targets[inside], values[inside], run.block_rows)
    run.change(stage, f"{first}/degrees", lambda degrees: degrees - lost / 2)


@of("refine")
def degrees_halved(run: Forged) -> None:
    for folder in run.blocks("symmetric_affinities"):
        run.change("symmetric_affinities", f"{folder}/degrees", lambda degrees: degrees / 2)
    degrees = [run.read("symmetric_affinities", f"{folder}/degrees") for folder in run.blocks("symmetric_affinities")]
    degrees = np.concatenate(degrees)
    run.claim("symmetric_affinities", least_degree=degrees.min(), largest_degree=degrees.max())


@of("bridges")
def a_bridge_left_out_of_w(run: Forged) -> None:
    one, other = run.read("components", "bridge_rows")[0]

    def act(w: sp.csr_matrix) -> sp.csr_matrix:
        w = w.tolil()
        w[one, other] = w[other, one] = 0
        w = w.tocsr()
        w.eliminate_zeros()
        return w

    change_w(run, act)


@of("bridges")
def a_bridge_left_out_of_all(run: Forged) -> None:
    a_bridge_left_out_of_w(run)
    run.change("components", "bridge_rows", lambda rows: rows[1:])
    run.change("components", "bridge_distances", lambda distances: distances[1:])
    run.change("components", "bridge_weights", lambda weights: weights[1:])
    run.claim("components", bridges=len(run.read("components", "bridge_rows")))


@of("bridges")
def components_that_are_joined(run: Forged) -> None:
    run.change("components", "labels", lambda labels: np.minimum(labels, 1))
    sizes = np.sort(np.bincount(run.read("components", "labels")))[::-1].tolist()
    run.claim("components", components=len(sizes), largest_components=sizes)


@of("bridges")
def bridges_that_weigh_ten_times_as_much(run: Forged) -> None:
    run.change("components", "bridge_weights", lambda weights: 10 * weights)


@of("diffusion")
def affinities_normalised_by_another_power(run: Forged) -> None:
    degrees = np.concatenate(
        [run.read("symmetric_affinities", f"{folder}/degrees") for folder in run.blocks("symmetric_affinities")]
    )
    scale = sp.diags_array(degrees**0.5)
    change_w(run, lambda w: scale @ w @ scale, "normalized_affinities")


# Landmarks and Z


@of("lll")
def z_of_other_landmarks(run: Forged) -> None:
    n_landmarks = len(run.read("landmarks", "points"))
    run.change("landmark_weights", "indices", lambda indices: (indices + 1) % n_landmarks)


@of("lll")
def z_without_the_nearest_landmark(run: Forged) -> None:
    own, landmarks = (run.read(*place).astype(float) for place in (("work_points", "points"), ("landmarks", "points")))
    width = run.read("landmark_weights", "indices").shape[1]
    squares = ((own[:, None] - landmarks[None]) ** 2).sum(axis=2)
    run.write("landmark_weights", "indices", np.argsort(squares, axis=1)[:, 1 : width + 1])


@of("lll")
def z_of_equal_weights(run: Forged) -> None:
    run.change("landmark_weights", "values", lambda values: np.full_like(values, 1 / values.shape[1]))


@of("lll")
def z_of_rows_swapped(run: Forged) -> None:
    for name in ("indices", "values", "errors"):
        run.change("landmark_weights", name, lambda values: np.roll(values, 1, axis=0))


@of("lll")
def z_that_sums_to_more(run: Forged) -> None:
    run.change("landmark_weights", "values", lambda values: 1.01 * values)


@of("lll")
def landmarks_beside_the_points(run: Forged) -> None:
    run.change("landmarks", "points", lambda rows: rows + 0.1 * rng().normal(size=rows.shape))


@of("lll")
def landmarks_at_other_rows(run: Forged) -> None:
    run.change("landmarks", "rows", lambda rows: np.sort((rows + 1) % run.n_points))


@of("lll")
def a_spacing_that_is_shorter(run: Forged) -> None:
    run.change("landmarks", "local_spacings", lambda spacings: 0.7 * spacings)


@of("variational-nystrom")
def z_by_affinities_that_are_shifted(run: Forged) -> None:
    n_landmarks = len(run.read("landmarks", "points"))
    run.change("affinity_weights", "indices", lambda indices: (indices + 1) % n_landmarks)


@of("lll")
def a_reduced_laplacian_that_is_larger(run: Forged) -> None:
    run.change("reduced", "laplacian_triangle_values", lambda values: 1.01 * values)


@of("lll")
def an_entry_of_the_reduced_masses(run: Forged) -> None:
    def act(values: np.ndarray) -> np.ndarray:
        values[len(values) // 2] += 0.01 * np.abs(values).max()
        return values

    run.change("reduced", "mass_triangle_values", act)


@of("lll")
def landmark_vectors_turned(run: Forged) -> None:
    run.change("landmark_embedding", "vectors", lambda vectors: vectors @ turn(3.0, vectors.shape[1]))


@of("lll")
def an_embedding_that_is_not_that_of_the_landmarks(run: Forged) -> None:
    def act(values: np.ndarray) -> np.ndarray:
        return values + 1e-4 * values.std(axis=0) * rng().normal(size=values.shape)

    run.change("embedding", "embedding", act)


@of("nystrom")
def a_sigma_that_is_wider(run: Forged) -> None:
    run.change("landmark_graph", "sigma", lambda sigma: 1.2 * sigma)


@of("le-z")
def eigenmaps_of_landmarks_turned(run: Forged) -> None:
    run.change("landmark_graph", "vectors", lambda vectors: vectors @ turn(3.0, vectors.shape[1]))


# Eigenvectors


def turn(degrees: float, n_columns: int) -> np.ndarray:
    """Return the rotation of the first and the last of some columns."""
    angle, found = np.deg2rad(degrees), np.eye(n_columns)
    found[0, 0] = found[-1, -1] = np.cos(angle)
    found[0, -1], found[-1, 0] = np.sin(angle), -np.sin(angle)
    return found


def exact_vectors(run: Forged, n_vectors: int) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues of L v = lambda D v and vectors in input order, the trivial one left out, by ARPACK."""
    stage = "symmetric_affinities"
    rows = []
    for folder in run.blocks(stage):
        values, indices, indptr = (run.read(stage, f"{folder}/{name}") for name in ("values", "indices", "indptr"))
        rows.append(sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, run.n_points)))
    w = sp.vstack(rows, format="csr").astype(np.float64)
    roots = np.sqrt(np.asarray(w.sum(axis=1)).ravel())
    similar = sp.diags_array(1 / roots) @ w @ sp.diags_array(1 / roots)
    values, unit = scipy.sparse.linalg.eigsh(similar, n_vectors + 1, which="LA", v0=np.ones(run.n_points))
    order = np.argsort(values)[:n_vectors]
    values, unit = values[order], unit[:, order]
    placed = np.empty_like(unit)
    placed[run.read("work_points", "input_rows")] = unit / roots[:, None]
    return 1 - values[::-1], placed[:, ::-1]


@of("refine")
def vectors_turned_by_three_degrees(run: Forged) -> None:
    run.change("embedding", "embedding", lambda vectors: vectors @ turn(3.0, vectors.shape[1]))


@of("refine")
def vectors_turned_out_of_their_span(run: Forged) -> None:
    def act(vectors: np.ndarray) -> np.ndarray:
        _, exact = exact_vectors(run, vectors.shape[1] + 1)
        beyond = exact[:, -1] * np.linalg.norm(vectors[:, -1]) / np.linalg.norm(exact[:, -1])
        vectors[:, -1] = np.cos(np.deg2rad(3)) * vectors[:, -1] + np.sin(np.deg2rad(3)) * beyond
        return vectors

    run.change("embedding", "embedding", act)


@of("refine")
def an_eigenvector_left_out(run: Forged) -> None:
    width = run.read("embedding", "embedding").shape[1]
    values, vectors = exact_vectors(run, width + 1)
    run.write("embedding", "embedding", vectors[:, 1:])
    run.write("embedding", "eigenvalues", values[1:])


@of("refine")
def eigenvalues_that_are_larger(run: Forged) -> None:
    run.change("embedding", "eigenvalues", lambda values: 1.02 * values)


@of("refine")
def vectors_in_work_order(run: Forged) -> None:
    order = run.read("work_points", "input_rows")
    run.change("embedding", "embedding", lambda vectors: vectors[order])


@of("refine")
def rows_of_the_embedding_swapped(run: Forged) -> None:
    def act(vectors: np.ndarray) -> np.ndarray:
        vectors[[3, 1800]] = vectors[[1800, 3]]
        return vectors

    run.change("embedding", "embedding", act)


@of("refine")
def a_residual_that_is_lower(run: Forged) -> None:
    run.claim("embedding", residual=1e-9)


@of("refine", "angle_bound")
def an_angle_divided_by_three(run: Forged) -> None:
    run.claim("embedding", angle_bound=said(run, "embedding")["angle_bound"] / 3)


@of("refine", "eigenvalue_error_bound")
def errors_of_eigenvalues_divided_by_a_hundred(run: Forged) -> None:
    run.claim("embedding", eigenvalue_error_bound=said(run, "embedding")["eigenvalue_error_bound"] / 100)


@of("pieces", "angle_bound")
def an_angle_of_the_largest_piece_divided_by_three(run: Forged) -> None:
    run.claim("embedding", angle_bound=said(run, "embedding")["angle_bound"] / 3)


@of("lll", "eigenvalue_error_bound")
def errors_of_eigenvalues_of_landmarks_divided_by_a_hundred(run: Forged) -> None:
    run.claim("embedding", eigenvalue_error_bound=said(run, "embedding")["eigenvalue_error_bound"] / 100)


def said(run: Forged, stage: str) -> dict:
    """Return the certificates of a stage."""
    return read_json(run.group(stage) / "complete.json")["certificates"]


def claim_bounds(run: Forged) -> None:
    """Claim the bounds that residuals and guards allow as they are stored: the record fits the arrays."""
    names = ("eigenvalues", "residuals", "guard_values", "guard_residuals")
    values, residuals, *following = (run.read("embedding", name) for name in names)
    by_passes = run.plan["params"]["embedding"]["solver"] == "refine"
    rounding = 4 * float(np.finfo(np.float32 if by_passes else np.float64).eps)
    found = subspace_accuracy(1 - values, residuals, Following(*following), rounding, largest=1.0)
    run.claim("embedding", **found._asdict())


@of("refine", "residuals of guards")
def residuals_of_guards_divided_by_ten(run: Forged) -> None:
    run.change("embedding", "guard_residuals", lambda residuals: residuals / 10)
    claim_bounds(run)


@of("refine", "values of guards")
def guards_that_are_farther_off(run: Forged) -> None:
    run.change("embedding", "guard_values", lambda values: values - 1e-3)
    claim_bounds(run)


@of("refine", "with none left out")
def the_first_guard_left_out(run: Forged) -> None:
    for name in ("guard_values", "guard_residuals", "guards"):
        run.change("embedding", name, lambda values: values[..., 1:])
    claim_bounds(run)


@of("refine", "residuals of all vectors")
def residuals_divided_by_ten(run: Forged) -> None:
    run.change("embedding", "residuals", lambda residuals: residuals / 10)
    claim_bounds(run)


@of("exact", "the value that follows")
def a_value_that_follows_farther_off(run: Forged) -> None:
    run.change("embedding", "guard_values", lambda values: values - 1e-3)
    claim_bounds(run)


@of("lll", "following_eigenvalue")
def an_eigenvalue_that_follows_farther_off(run: Forged) -> None:
    following = 1.5 * said(run, "landmark_embedding")["following_eigenvalue"]
    run.claim("landmark_embedding", following_eigenvalue=following)
    run.write("embedding", "guard_values", np.array([1 - following]))
    claim_bounds(run)


@of("refine")
def vectors_of_the_wrong_length(run: Forged) -> None:
    run.change("embedding", "embedding", lambda vectors: vectors * np.linspace(1, 2, vectors.shape[1]))


@of("diffusion")
def coordinates_at_another_time(run: Forged) -> None:
    scales = np.abs(1 - run.read("embedding", "eigenvalues"))
    run.change("diffusion_coordinates", "embedding", lambda values: values * scales)


@of("clusters")
def clusters_of_other_points(run: Forged) -> None:
    run.change("clustering", "labels", lambda labels: np.roll(labels, 1))


@of("clusters", "centres are the means")
def clusters_around_some_points(run: Forged) -> None:
    """Centres at four rows, which every pass left where they are, and the points that are nearest to each."""
    rows = run.read("embedding", "embedding")
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    centers = 0.999 * rows[:4]
    run.write("clustering", "centers", centers)
    for number in range(int(run.read("clustering", "passes"))):
        run.write("clustering", f"pass_{number:03d}", centers)
    run.write("clustering", "moved", np.zeros(()))
    labels = np.square(rows[:, np.newaxis] - centers).sum(axis=2).argmin(axis=1)
    run.write("clustering", "labels", labels)
    run.claim("clustering", sizes=np.bincount(labels, minlength=4).tolist())


@of("isomap", "shortest paths from all landmarks")
def longer_paths_of_some_points(run: Forged) -> None:
    run.change(
        "geodesics", "block-000003/to_points", lambda paths: paths * np.where(np.arange(paths.shape[1]) % 5, 1, 1.05)
    )


# Nonlinear embeddings


@of("t-sne")
def forces_of_another_kernel(run: Forged) -> None:
    """Positions that a Gaussian kernel pushes apart."""
    other = descent(sm.SymmetricSNE)(run.root.parent / "other")
    run.write("layout", "embedding", other.embedding_)


@of("t-sne")
def positions_spread_out(run: Forged) -> None:
    run.change("layout", "embedding", lambda positions: 1.5 * positions)


@of("t-sne")
def positions_swapped(run: Forged) -> None:
    def act(positions: np.ndarray) -> np.ndarray:
        rows = rng().choice(len(positions), 120, replace=False)
        positions[rows] = positions[np.roll(rows, 1)]
        return positions

    run.change("layout", "embedding", act)


@of("t-sne")
def positions_in_work_order(run: Forged) -> None:
    order = run.read("work_points", "input_rows")
    run.change("layout", "embedding", lambda positions: positions[order])


@of("t-sne")
def an_objective_that_is_lower(run: Forged) -> None:
    run.claim("layout", objective=1.0)


@of("t-sne", "force_error")
def an_error_of_forces_of_a_millionth(run: Forged) -> None:
    run.claim("layout", force_error=1e-6)


@of("elastic", "worst_decile_force_error")
def errors_of_single_forces_divided_by_three(run: Forged) -> None:
    run.claim("layout", worst_decile_force_error=said(run, "layout")["worst_decile_force_error"] / 3)


@of("sne", "force_error")
def an_error_of_forces_by_logarithms_divided_by_three(run: Forged) -> None:
    run.claim("layout", force_error=said(run, "layout")["force_error"] / 3)


@of("t-sne", "force_error")
def forces_that_are_larger(run: Forged) -> None:
    run.change("layout", "forces", lambda forces: 1.01 * forces)


@of("t-sne", "force_error, at rows drawn")
def forces_that_are_exact_where_they_were_measured(run: Forged) -> None:
    positions = run.read("layout", "embedding")[run.read("work_points", "input_rows")]
    rows, forces = run.read("layout", "force_rows"), run.read("layout", "forces")
    for row in rows:
        away = positions[row] - positions
        forces[row] = (-2 * away / (1 + np.square(away).sum(axis=1))[:, np.newaxis] ** 2).sum(axis=0)
    run.write("layout", "forces", forces)
    names = ("force_error", "force_standard_error", "worst_decile_force_error", "worst_decile_standard_error")
    run.claim("layout", **dict.fromkeys(names, 0.0))


@of("t-sne", "objective")
def positions_scaled_by_a_twentieth(run: Forged) -> None:
    run.change("layout", "embedding", lambda positions: 1.05 * positions)


@of("t-sne-converged", "objective")
def the_end_of_a_descent_scaled_by_a_twentieth(run: Forged) -> None:
    run.change("layout", "embedding", lambda positions: 1.05 * positions)


@of("t-sne-converged", "gradient_norm")
def the_end_of_a_descent_scaled_with_its_objective(run: Forged) -> None:
    run.change("layout", "embedding", lambda positions: 1.05 * positions)
    run.claim("layout", objective=divergence(run))


def divergence(run: Forged) -> float:
    """Return KL(P | Q) of the positions of a t-SNE."""
    stage, order = "symmetric_affinities", run.read("work_points", "input_rows")
    positions, parts = run.read("layout", "embedding")[order].astype(float), []
    for one in run.blocks(stage):
        values, indices, indptr = (run.read(stage, f"{one}/{name}") for name in ("values", "indices", "indptr"))
        parts.append(sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, run.n_points)))
    w = sp.vstack(parts, format="coo")
    p = w.data.astype(float) / w.data.sum(dtype=float)
    kernel = 1 / (1 + scipy.spatial.distance.cdist(positions, positions, "sqeuclidean"))
    q = kernel[w.row, w.col] / (kernel.sum() - len(kernel))
    return float((p * np.log(p / q)).sum())


@of("t-sne", "objective")
def a_point_moved(run: Forged) -> None:
    def act(positions: np.ndarray) -> np.ndarray:
        positions[1100, 0] += 5
        return positions

    run.change("layout", "embedding", act)


@of("t-sne", "objective")
def three_points_moved(run: Forged) -> None:
    def act(positions: np.ndarray) -> np.ndarray:
        positions[[300, 1100, 2100], 0] += 5
        return positions

    run.change("layout", "embedding", act)


@of("pulled", "reference_distance")
def another_reference(run: Forged) -> None:
    run.change("layout", "reference", lambda reference: reference[::-1].copy())


@of("elastic")
def positions_of_another_strength(run: Forged) -> None:
    run.change("layout", "embedding", lambda positions: 0.8 * positions)


@of("t-sne")
def positions_with_noise(run: Forged) -> None:
    run.change(
        "layout", "embedding", lambda positions: positions + 0.03 * positions.std() * rng().normal(size=positions.shape)
    )


# Other methods


@of("pca")
def variances_of_other_columns(run: Forged) -> None:
    run.change("principal_components", "eigenvalues", lambda values: 1.05 * values)


@of("pca")
def scores_that_are_turned(run: Forged) -> None:
    run.change("principal_components", "embedding", lambda scores: scores @ turn(3.0, scores.shape[1]))


@of("lda")
def discriminants_of_a_shifted_mean(run: Forged) -> None:
    run.change("discriminants", "mean", lambda mean: mean + 0.1)


@of("lle")
def coordinates_that_are_not_orthonormal(run: Forged) -> None:
    run.change("local_reconstruction", "embedding", lambda values: values + 0.1 * values[:, ::-1])


@of("isomap")
def paths_that_are_shorter(run: Forged) -> None:
    for folder in run.blocks("geodesics"):
        run.change("geodesics", f"{folder}/to_points", lambda lengths: 0.97 * lengths)


@of("isomap")
def landmarks_scaled_otherwise(run: Forged) -> None:
    run.change("isomap", "vectors", lambda vectors: vectors @ turn(3.0, vectors.shape[1]))


@of("kernel-function-pca")
def scores_of_another_kernel(run: Forged) -> None:
    run.change("function_components", "ritz_means", lambda means: means + 0.1 * means.max())


@of("combined-isomap")
def coordinates_of_another_length(run: Forged) -> None:
    run.change("combined_isomap", "eigenvalues", lambda values: 1.1 * values)


@of("image")
def pixels_of_another_sigma(run: Forged) -> None:
    run.change("symmetric_affinities", "sigma", lambda sigma: 1.1 * sigma)


@of("gaps-duplicates")
def rows_given_to_other_points(run: Forged) -> None:
    def act(rows: np.ndarray) -> np.ndarray:
        rows[:5] = rows[60]
        return rows

    run.change("duplicates", "points", act)
