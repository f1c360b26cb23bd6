"""What holds of the landmark graph in every run."""

import numpy as np

from scalemani.store.invariants import Block, Invariant, stored
from scalemani.store.invariants.models import landmark_points


def nearer_joined(block: Block) -> int:
    """Count landmarks that are nearer to one that they are not joined to, where they are joined by distance."""
    run = block.run
    if run.params["landmark_graph"]["kind"] != "euclidean":
        return 0
    points, broken = landmark_points(run), 0
    for landmark, others in zip(block.start + np.arange(len(block.values)), block.values, strict=True):
        apart = np.linalg.norm(points - points[landmark], axis=1)
        left = np.setdiff1d(np.arange(len(points)), [*others, landmark])
        farthest = apart[others].max(initial=0.0)
        broken += bool((apart[left] < farthest * (1 - 1e-9)).any() or (np.diff(apart[others]) < -1e-9 * farthest).any())
    return broken


NEAREST_JOINED = Invariant("the nearest landmarks, nearest first, where joined by Euclidean distance", nearer_joined)


def other_landmark_solution(block: Block) -> int:
    """Count entries of V^T D V and V^T (D - K) V that are not those of orthonormal eigenvectors; by the first block.

    K is exp(-x^2 / 2 sigma^2) where one of two landmarks is joined to the other, and 1 on its diagonal.
    """
    if block.start:
        return 0
    vectors = np.asarray(stored(block.run, block.stage, block.path)[...])
    points, names = landmark_points(block.run), ("neighbors", "eigenvalues", "sigma")
    neighbors, values, sigma = (np.asarray(block.array(name)[...]) for name in names)
    kernel = np.eye(len(points))
    for landmark, others in enumerate(neighbors):
        apart = np.linalg.norm(points[others] - points[landmark], axis=1)
        kernel[landmark, others] = kernel[others, landmark] = np.exp(-0.5 * (apart / sigma) ** 2)
    degrees = np.diag(kernel.sum(axis=1))
    products = (
        vectors.T @ degrees @ vectors - np.eye(len(values)),
        vectors.T @ (degrees - kernel) @ vectors - np.diag(values),
    )
    return int(sum(np.count_nonzero(~(np.abs(one) <= 1e-7)) for one in products))


LANDMARK_SOLUTION = Invariant(
    "D-orthonormal eigenvectors of the kernel between landmarks that are joined, with `eigenvalues`",
    other_landmark_solution,
)


def not_definite(block: Block) -> int:
    """Count matrices of (m, d, d) that are not symmetric to the bit with positive eigenvalues alone."""
    symmetric = (block.values == block.values.transpose(0, 2, 1)).all(axis=(1, 2))
    least = np.linalg.eigvalsh(block.values)[:, 0] if len(block.values) else np.empty(0)
    return int(np.count_nonzero(~(symmetric & (least > 0))))


DEFINITE = Invariant("symmetric and positive definite", not_definite)
