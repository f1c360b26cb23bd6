"""Wrong runs of methods with an eigenproblem: solutions that are not leading, claims that are lower."""

from collections.abc import Callable

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from tests.audit.forging import Forged, read_json
from tests.audit.wrong import of, rng


def z_of(run: Forged) -> np.ndarray:
    """Return Z (N, L), rows as they are stored."""
    indices, values = (run.read("landmark_weights", name) for name in ("indices", "values"))
    z = np.zeros((run.n_points, len(run.read("landmarks", "points"))))
    np.put_along_axis(z, indices.astype(int), values, axis=1)
    return z


def w_of(run: Forged) -> np.ndarray:
    """Return W (N, N) of points without weights, made of the edges of the graph and of bridges."""
    p = np.zeros((run.n_points, run.n_points))
    indices = run.read("neighbors", f"round_{run.read('neighbors', 'last_round')}/indices")
    p[np.arange(run.n_points)[:, np.newaxis], indices] = run.read("affinities", "values")
    w = (p + p.T) / 2
    one, other = run.read("components", "bridge_rows").T
    w[one, other] += run.read("components", "bridge_weights")
    w[other, one] += run.read("components", "bridge_weights")
    return w.astype(np.float32).astype(float)


def in_input_order(run: Forged, rows: np.ndarray) -> np.ndarray:
    placed = np.empty_like(rows)
    placed[run.read("work_points", "input_rows")] = rows
    return placed


# Components


def other_components(run: Forged, choose: Callable[[np.ndarray], np.ndarray]) -> None:
    """Write principal components of a subspace: all arrays agree, and the share that they explain is theirs."""
    stage = "principal_components"
    z, points = z_of(run), run.read("points", "points").astype(float)
    centred, old = points - points.mean(axis=0), run.read(stage, "ritz_vectors")
    n_kept = len(run.read(stage, "eigenvalues"))
    basis = scipy.linalg.solve_triangular(scipy.linalg.cholesky(z.T @ z), choose(z))
    moments = basis.T @ (z.T @ centred)
    values, axes = scipy.linalg.eigh(moments @ moments.T)
    unit = (basis @ axes)[:, ::-1][:, : old.shape[1]]
    values = values[::-1][: old.shape[1]]
    scores = unit[:, :n_kept] * np.sqrt(values[:n_kept])
    run.write(stage, "ritz_vectors", unit)
    run.write(stage, "axes", centred.T @ (z @ unit))
    run.write(stage, "eigenvalues", values[:n_kept] / (run.n_points - 1))
    run.write(stage, "vectors", scores)
    run.write(stage, "embedding", z @ scores)
    run.claim(stage, explained_share=float(values[:n_kept].sum() / np.square(centred).sum()))


@of("pca", "eigenvalues are the largest")
def components_of_random_directions(run: Forged) -> None:
    """Directions whose combinations have a mean of zero, at random."""

    def choose(z: np.ndarray) -> np.ndarray:
        factor = scipy.linalg.cholesky(z.T @ z)
        ones = scipy.linalg.solve_triangular(factor, z.sum(axis=0), trans="T")
        found = rng().normal(size=(z.shape[1], 6))
        return np.linalg.qr(found - np.outer(ones, ones @ found) / (ones @ ones))[0]

    other_components(run, choose)


@of("pca", "eigenvalues are the largest")
def the_first_component_left_out(run: Forged) -> None:
    points = run.read("points", "points").astype(float)

    def choose(z: np.ndarray) -> np.ndarray:
        factor = scipy.linalg.cholesky(z.T @ z)
        moments = scipy.linalg.solve_triangular(factor, z.T @ (points - points.mean(axis=0)), trans="T")
        return np.linalg.svd(moments)[0][:, 1:8]

    other_components(run, choose)


@of("kernel-pca", "eigenvalues are the largest")
def the_first_component_of_a_kernel_left_out(run: Forged) -> None:
    stage = "kernel_components"
    for name in ("ritz_values", "ritz_vectors", "ritz_means"):
        run.change(stage, name, lambda values: values[..., 1:])
    values = run.read(stage, "ritz_values")[:2]
    vectors = run.read(stage, "ritz_vectors")[:, :2] * np.sqrt(values)
    run.write(stage, "eigenvalues", values)
    run.write(stage, "vectors", vectors)
    run.write(stage, "embedding", in_input_order(run, z_of(run) @ vectors))


def left_by_neighbours(run: Forged, values: np.ndarray) -> np.ndarray:
    """Return (I - R) times values (N, m), rows in work order."""
    stage, rows = "reconstruction_weights", []
    for block in run.blocks(stage):
        taken, indices, indptr = (run.read(stage, f"{block}/{name}") for name in ("values", "indices", "indptr"))
        rows.append(sp.csr_matrix((taken, indices, indptr), shape=(len(indptr) - 1, run.n_points)))
    return values - sp.vstack(rows) @ values


@of("lle", "eigenvalues are the smallest")
def the_first_coordinate_left_out(run: Forged) -> None:
    stage, z = "local_reconstruction", z_of(run)
    left = left_by_neighbours(run, z)
    values, vectors = scipy.linalg.eigh(left.T @ left, z.T @ z, subset_by_index=[2, 3])
    run.write(stage, "eigenvalues", values)
    run.write(stage, "vectors", vectors)
    run.write(stage, "embedding", in_input_order(run, z @ vectors))


@of("lle", "eigenvalues are the smallest")
def coordinates_at_random(run: Forged) -> None:
    """Coordinates that are orthonormal and centred, with the squares that neighbours leave of them."""
    stage, z = "local_reconstruction", z_of(run)
    found = z @ rng().normal(size=(z.shape[1], 2))
    unit = np.linalg.qr(found - found.mean(axis=0))[0]
    left = left_by_neighbours(run, unit)
    values, axes = scipy.linalg.eigh(left.T @ left)
    run.write(stage, "eigenvalues", values)
    run.write(stage, "vectors", np.linalg.lstsq(z, unit @ axes, rcond=None)[0])
    run.write(stage, "embedding", in_input_order(run, unit @ axes))


@of("lll", "eigenvalues are the smallest")
def the_first_eigenvector_of_the_landmarks_left_out(run: Forged) -> None:
    z, w = z_of(run), w_of(run)
    degrees = w.sum(axis=1)
    laplacian, mass = z.T @ (degrees[:, None] * z - w @ z), z.T @ (degrees[:, None] * z)
    n_kept = len(run.read("landmark_embedding", "eigenvalues"))
    values, vectors = scipy.linalg.eigh(laplacian, mass, subset_by_index=[2, n_kept + 1])
    run.write("landmark_embedding", "eigenvalues", values)
    run.write("landmark_embedding", "vectors", vectors)
    run.write("embedding", "eigenvalues", values)
    run.write("embedding", "embedding", in_input_order(run, z @ vectors))


# Discriminants


@of("lda", "eigenvalues are the largest")
def the_first_discriminant_left_out(run: Forged) -> None:
    stage, codes = "discriminants", run.read("classes", "codes")
    points, span = run.read("points", "points").astype(float), run.read("discriminants", "span")
    centred = points - points.mean(axis=0)
    counts = np.bincount(codes)
    means = np.array([centred[codes == code].mean(axis=0) for code in range(len(counts))])
    between, total = span.T @ (means.T * counts) @ means @ span, span.T @ centred.T @ centred @ span
    shares, vectors = scipy.linalg.eigh(between, total)
    shares, vectors = shares[::-1][1:3], vectors[:, ::-1][:, 1:3]
    axes = span @ vectors * np.sqrt((len(points) - len(counts)) / (1 - shares))
    run.write(stage, "eigenvalues", shares)
    run.write(stage, "axes", axes)
    run.write(stage, "embedding", centred @ axes)
    run.claim(stage, between_shares=shares.tolist())


@of("kernel-lda", "eigenvalues are the largest")
def the_first_discriminant_of_a_kernel_left_out(run: Forged) -> None:
    stage, codes, z = "kernel_discriminants", run.read("classes", "codes"), z_of(run)
    kernel = np.eye(run.n_points) + w_of(run)
    rows = np.column_stack([kernel @ z, kernel.sum(axis=1)])
    centring = np.vstack([np.eye(z.shape[1]), -z.sum(axis=0) / run.n_points])
    images = (rows - rows.mean(axis=0)) @ centring
    counts = np.bincount(codes)
    means = np.array([images[codes == code].mean(axis=0) for code in range(len(counts))])
    total = images.T @ images + float(run.read(stage, "ridge")) * z.T @ z
    shares, vectors = scipy.linalg.eigh((means.T * counts) @ means, total)
    shares, directions = shares[::-1][1:3], centring @ vectors[:, ::-1][:, 1:3]
    run.write(stage, "eigenvalues", shares)
    run.write(stage, "directions", directions)
    run.write(stage, "mean", rows.mean(axis=0) @ directions)
    run.write(stage, "embedding", in_input_order(run, (rows - rows.mean(axis=0)) @ directions))
    run.claim(stage, between_shares=shares.tolist())


# What else methods are made of


@of("lll", "spacings over gaps")
def spacings_that_are_doubled(run: Forged) -> None:
    run.change("landmarks", "local_spacings", lambda spacings: 2 * spacings)


@of("pca", "spacings are the gaps of landmarks times one number")
def a_spacing_that_is_longer(run: Forged) -> None:
    def act(spacings: np.ndarray) -> np.ndarray:
        spacings[7] *= 1.5
        return spacings

    run.change("landmarks", "local_spacings", act)


@of("isomap", "shortest paths from 8 sampled points")
def sampled_paths_that_are_shorter(run: Forged) -> None:
    for folder in run.blocks("geodesics", "sample-block-"):
        run.change("geodesics", f"{folder}/from_sample", lambda lengths: 0.97 * lengths)


@of("nystrom", "reach of 300 rows")
def points_that_reach_farther(run: Forged) -> None:
    run.change("embedding", "reach", lambda reach: 1.1 * reach)


@of("nystrom", "far_points")
def points_that_are_said_to_be_far(run: Forged) -> None:
    run.claim("embedding", far_points=200)


@of("lle", "rows of R, made anew")
def neighbours_that_are_taken_alike(run: Forged) -> None:
    stage = "reconstruction_weights"
    for folder in run.blocks(stage):
        width = np.diff(run.read(stage, f"{folder}/indptr"))
        run.write(stage, f"{folder}/values", np.repeat(1 / width, width))


# Claims that are lower

CLAIMS = {
    ("pca", "principal_components"): (
        "residual", "angle_bound", "eigenvalue_error_bound", "eigengap", "explained_share", "resolved_angle_bound",
    ),
    ("kernel-pca", "kernel_components"): ("residual", "eigengap", "eigenvalue_error_bound"),
    ("kernel-function-pca", "function_components"): (
        "residual", "eigengap", "angle_bound", "eigenvalue_error_bound", "resolved_angle_bound", "least_share", "sigma",
    ),
    ("lle", "local_reconstruction"): ("residual", "eigengap", "eigenvalue_error_bound"),
    ("lda-few", "discriminants"): ("residual", "share_error_bound", "outside_share"),
    ("kernel-lda", "kernel_discriminants"): ("residual", "share_error_bound"),
    ("isomap", "geodesics"): ("longest_path",),
    ("isomap", "isomap"): (
        "residual", "residual_error", "residual_variance", "points_residual_variance",
        "points_residual_variance_error", "least_eigenvalue",
    ),
    ("combined-isomap", "combined_isomap"): (
        "residual", "residual_error", "points_residual_variance", "points_residual_variance_error",
    ),
    ("refine", "embedding"): (
        "residual", "eigengap", "eigengap_error_bound", "angle_bound", "eigenvalue_error_bound", "resolved_angle_bound",
    ),
    ("lll", "embedding"): ("residual", "eigengap", "eigengap_error_bound", "eigenvalue_error_bound"),
    ("nystrom", "embedding"): ("residual",),
    ("le-z", "embedding"): ("residual",),
}  # fmt: skip
# Zero, to rounding, or the error of a sample that the run does not tell.
UNDIVIDED = {("lda-few", "discriminants"): {"between_shares"}, ("nystrom", "embedding"): {"residual_error"},
             ("le-z", "embedding"): {"residual_error"}}  # fmt: skip
OF_ERRORS = ("residual", "share_error_bound", "outside_share")  # what `errors` of discriminants holds


def claim_divided_by_three(run_name: str, stage: str, name: str) -> None:
    """Enter a run that certifies a third of what holds."""

    def change(run: Forged) -> None:
        value = read_json(run.group(stage) / "complete.json")["certificates"][name] / 3
        run.claim(stage, **{name: value})
        if stage == "discriminants":
            place = OF_ERRORS.index(name)
            run.change(stage, "errors", lambda errors: np.where(np.arange(len(errors)) == place, value, errors))

    change.__name__ = f"{name}_of_{run_name}_divided_by_three"
    of(run_name, name)(change)


for (run_name, stage), names in CLAIMS.items():
    for name in names:
        claim_divided_by_three(run_name, stage, name)
