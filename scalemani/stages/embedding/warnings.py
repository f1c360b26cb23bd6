"""Warnings about eigenvalues that are zero, and columns that no residual separates from the next."""

import numpy as np

from scalemani.config.limits import MOST_ANGLE
from scalemani.engine.context import StageContext
from scalemani.errors import ShortfallWarning
from scalemani.kernels.spectral.accuracy import (
    SubspaceAccuracy,
)
from scalemani.stages.embedding.solvers import BY_LANDMARKS

LEAST_RESIDUAL = 1e-13  # that passes in float64 reach


def warn_of_parts(context: StageContext, n_zero: int) -> None:
    """Say that eigenvalues are zero to rounding; not of the start of a descent."""
    params = context.task.params
    if params.layout.objective is not None:
        return
    if params.affinities.precomputed or params.neighbors.of_pixels:
        remedy = "give affinities that join these parts, or those of one part"
    else:
        bandwidths = {"entropic": " or affinities.perplexity", "gaussian": " or affinities.sigma"}
        remedy = f"raise neighbors.n_neighbors{bandwidths.get(params.affinities.kind or '', '')}"
    context.warn(
        f"{context.task.stage}: {n_zero} eigenvalues are zero to rounding, where that of the constant vector should be "
        f"the only one: the graph falls into {n_zero} parts that next to nothing joins, and the embedding is one basis "
        f"of many of the vectors that separate these; {remedy}",
        ShortfallWarning,
    )


def known_of_angle(accuracy: SubspaceAccuracy) -> str:
    """Return in words what residuals say of the angle between an embedding and the exact one."""
    if accuracy.angle_bound is not None:
        return f"the embedding is only known to be within {accuracy.angle_bound:.2g} rad of the exact one"
    unresolved = "no angle between the embedding and the exact one follows"
    if accuracy.resolved_angle_bound is None:
        return unresolved
    first = accuracy.resolved_components
    return f"{unresolved}, only one of {accuracy.resolved_angle_bound:.2g} rad at most for its first {first} columns"


def warn_of_angle(context: StageContext, accuracy: SubspaceAccuracy, last: float) -> None:
    """Warn that the subspace is not separated from its neighbours, and say what separates it; not of a descent's start.

    `last` is the largest eigenvalue of the embedding: gaps are no wider than that where those at hand are not in order.
    """
    params = context.task.params
    angle = accuracy.angle_bound
    if params.layout.objective is not None or (angle is not None and angle <= MOST_ANGLE):
        return
    count = params.n_components
    gap = accuracy.eigengap if accuracy.eigengap > 0 else last / count
    needed = min(params.residual / 10, MOST_ANGLE * gap / (2 * np.sqrt(count)))
    remedy = f"ask for embedding.residual={needed:.0e} or less, or for " if needed >= LEAST_RESIDUAL else "ask for "
    refine = "refine the embedding (embedding.solver=refine), or ask for "
    by_solver = {"exact": "ask for ", **dict.fromkeys(BY_LANDMARKS, refine)}
    context.warn(
        f"{context.task.stage}: eigenvalues {count} and {count + 1} are {accuracy.eigengap:.1e} apart: at these "
        f"residuals that is wrong by up to {accuracy.eigengap_error_bound:.0e}, and {known_of_angle(accuracy)}; "
        f"{by_solver.get(params.embedding.solver, remedy)}another landmark_embedding.n_components"
    )
