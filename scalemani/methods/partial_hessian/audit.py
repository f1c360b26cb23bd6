"""What an audit computes anew of the rate at the end of a spectral descent: eigenvalues of B^-1 H by dense matrices.

H is the Hessian of the objective in closed form, B = 4 L+ + mu I, or with the positive diagonal of the repulsion's
Hessian, and motions of the whole map, along which the objective does not change, are left out. The run measures H by
differences of gradients and finds eigenvalues by power iteration. Source: [PH] 3.3.
"""

from collections.abc import Iterator

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from scalemani.audit.findings import Finding, equal, is_number, unchecked
from scalemani.audit.graph import STAGE as GRAPH
from scalemani.audit.graph import read_block
from scalemani.audit.kernel_sums import of_kernel
from scalemani.audit.layout import STAGE
from scalemani.audit.rows import Audit
from scalemani.config.objectives import GIVEN_PAIRS, Objective, objective_of

SPECTRAL, SPECTRAL_DIAGONAL = "spectral", "spectral+diagonal"
MOST_COORDINATES = 2000  # N d, of which matrices are dense
UNSETTLED = 3e-3  # what a thousand iterations leave where eigenvalues lie close together
SHIFT = 1e-10  # of the least degree: mu / 4
SECOND = 1e-5  # of squared distances, by which slopes of a kernel are differenced
LAST = 10  # falls of the objective, by which its decrease is measured


def check_rate(audit: Audit) -> Iterator[Finding]:
    """Check the rate and what follows from it, where the run states it."""
    said = audit.run.groups[STAGE].certificates
    if "rate" not in said:
        return
    yield equal(
        STAGE, "measured_decrease", said.get("measured_decrease"), decrease(audit), 1e-9, "by the learning curve"
    )
    objective = objective_of(audit.run.method, float(audit.run.param(STAGE, "dof", 1.0)))
    why = why_not(audit, objective)
    if why:
        yield unchecked(STAGE, "rate", why, said["rate"])
        return
    curvatures = eigenvalues(audit, objective)
    off = float(said["rate_residual"]) if is_number(said.get("rate_residual")) else 0.0
    found = {
        "rate": float(np.abs(curvatures - 1.0).max()),
        "least_curvature": float(curvatures[0]),
        "largest_curvature": float(curvatures[-1]),
    }
    note = f"eigenvalues of {len(curvatures)} motions, by dense matrices"
    for name, value in found.items():
        yield equal(STAGE, name, said.get(name), value, off + UNSETTLED * max(1.0, abs(value)), note)
    step = said.get("last_step")
    length = float(step) if is_number(step) and float(step) > 0 else 1.0
    ends = [said.get("least_curvature"), said.get("largest_curvature")]
    rate = max(abs(1.0 - length * float(end)) if is_number(end) else np.inf for end in ends)
    predicted = rate**2 if rate < 1 else None
    yield equal(
        STAGE, "predicted_decrease", said.get("predicted_decrease"), predicted, 1e-9, "by these, at the last step"
    )


def why_not(audit: Audit, objective: Objective) -> str:
    """Return why no dense matrix is made; nothing where it is."""
    positions = audit.run.groups[STAGE].read("embedding")
    if positions.size > MOST_COORDINATES:
        return f"{positions.size} coordinates are more than the {MOST_COORDINATES} of which matrices are dense"
    if objective.combine == "sum-log":
        return "the Hessian of sums of logarithms is not computed anew"
    if audit.run.groups[STAGE].certificates.get("repulsion") == GIVEN_PAIRS:
        return "that of weighted pairs is not computed anew"
    if float(audit.run.param(STAGE, "global_weight", 0.0)) > 0:
        return "that of a pull to a reference is not computed anew"
    return ""


def decrease(audit: Audit) -> float | None:
    """Return the factor from a fall of the objective to the next, over the last of the stored curve."""
    curve = audit.run.groups[STAGE].read("curve")[-LAST - 2 :]
    falls = curve[:-1, 1] - curve[1:, 1]
    if len(falls) < 2 or not np.array_equal(curve[:, 0], curve[0, 0] + np.arange(len(curve))) or falls.min() <= 0:
        return None
    return float(np.exp((np.log(falls[-1]) - np.log(falls[0])) / (len(falls) - 1)))


def eigenvalues(audit: Audit, objective: Objective) -> np.ndarray:
    """Return the eigenvalues of B^-1 H, ascending, without motions of the whole map."""
    param = audit.run.param
    positions = audit.run.groups[STAGE].read("embedding").astype(np.float64)[audit.order]
    affinities = sp.vstack([read_block(audit, GRAPH, block) for block in range(len(audit.run.blocks))]).tocsr()
    dense, (n_points, n_dims) = affinities.toarray(), positions.shape
    totals = {"given": dense.sum(), "one": 1.0, "points": float(n_points)}
    scale = totals[objective.total] / dense.sum() * float(param(STAGE, "late_exaggeration", 1.0))
    differences = positions[:, np.newaxis] - positions
    squares = np.square(differences).sum(axis=2)
    repulsion, diagonal = of_repulsion(objective, squares, differences)
    strength = float(param(STAGE, "strength", objective.strength))
    if objective.attraction == "student":
        slopes = 1.0 / (1.0 + squares / objective.dof)
        bends = -np.square(slopes) / objective.dof
    else:
        slopes, bends = np.ones_like(squares), np.zeros_like(squares)
    hessian = of_pairs(scale * dense * slopes, scale * dense * bends, differences) + strength * repulsion
    strongest = symmetric_strongest(dense, int(param(STAGE, "kappa", 7)))
    degrees = strongest.sum(axis=1)
    laplacian = 4.0 * scale * (np.diag(degrees) - strongest + SHIFT * degrees[degrees > 0].min() * np.eye(n_points))
    metric = np.kron(laplacian, np.eye(n_dims))
    if param(STAGE, "direction", SPECTRAL) == SPECTRAL_DIAGONAL:
        metric += np.diag(np.maximum(strength * diagonal, 0.0))
    free = scipy.linalg.null_space(whole_motions(positions) @ metric)
    return np.asarray(scipy.linalg.eigh(free.T @ hessian @ free, free.T @ metric @ free, eigvals_only=True))


def of_repulsion(objective: Objective, squares: np.ndarray, differences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the Hessian of E- (N d, N d), and the diagonal of it that a direction takes.

    That is without the product of the gradients, where E- is the logarithm of the sum.
    """
    apart = 1.0 - np.eye(len(squares))
    values, slopes = of_kernel(objective.kernel, squares)
    step = SECOND * np.maximum(squares, 1.0)
    bends = of_kernel(objective.kernel, squares + step)[1] - of_kernel(objective.kernel, squares - step)[1]
    hessian = of_pairs(apart * slopes, apart * bends / (2 * step), differences)
    if objective.combine != "log-sum":
        return hessian, np.diag(hessian)
    total = (apart * values).sum()
    gradient = 4.0 * np.einsum("nm,nmd->nd", apart * slopes, differences).ravel() / total
    return hessian / total - np.outer(gradient, gradient), np.diag(hessian) / total


def of_pairs(slopes: np.ndarray, bends: np.ndarray, differences: np.ndarray) -> np.ndarray:
    """Return the Hessian (N d, N d) of sum_nm f_nm(|x_n - x_m|^2), of symmetric first and second derivatives (N, N)."""
    n_points, _, n_dims = differences.shape
    blocks = 8.0 * np.einsum("nm,nmi,nmj->nimj", bends, differences, differences)
    for axis in range(n_dims):
        blocks[:, axis, :, axis] += 4.0 * slopes
    own = blocks.sum(axis=2)
    blocks = -blocks
    for point in range(n_points):
        blocks[point, :, point, :] += own[point]
    return blocks.reshape(n_points * n_dims, n_points * n_dims)


def symmetric_strongest(affinities: np.ndarray, kappa: int) -> np.ndarray:
    """Return affinities (N, N) that are among the `kappa` strongest of either of their points."""
    if np.count_nonzero(affinities, axis=1).max() <= kappa:
        return affinities
    weakest = np.sort(affinities, axis=1)[:, -kappa]
    strong = (affinities > 0) & (affinities >= weakest[:, np.newaxis])
    return np.where(strong | strong.T, affinities, 0.0)


def whole_motions(positions: np.ndarray) -> np.ndarray:
    """Return the motions (m, N d) of a map as a whole: along each axis, and turns about its mean."""
    n_points, n_dims = positions.shape
    motions = [np.tile(axis, n_points) for axis in np.eye(n_dims)]
    centred = positions - positions.mean(axis=0)
    for one in range(n_dims):
        for other in range(one):
            turn = np.zeros_like(centred)
            turn[:, one], turn[:, other] = -centred[:, other], centred[:, one]
            motions.append(turn.ravel())
    return np.array(motions)
