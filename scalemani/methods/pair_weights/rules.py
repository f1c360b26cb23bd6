"""How a descent takes weights of pairs: read, checked, and brought into the order of its points."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.config.objectives import GIVEN_PAIRS
from scalemani.config.params import LayoutParams, ResolvedLayout
from scalemani.descents.parts import DescentPart, Ended
from scalemani.descents.problem import Problem
from scalemani.engine.memory_model import array
from scalemani.errors import ConfigError, DataError, StoreError
from scalemani.methods.pair_weights.kernels import WeightedPairs
from scalemani.methods.pair_weights.parameters import NAMED, PairWeightsParams, file_digest

SYMMETRIC = 1e-9  # of the largest weight: what entries of one pair may differ by


def file_of(params: LayoutParams) -> tuple[Path, str]:
    """Return the file of a descent's weights and the digest of its content."""
    assert isinstance(params, PairWeightsParams)
    assert params.pair_weights is not None
    named = NAMED.fullmatch(params.pair_weights)
    assert named is not None
    return Path(named["path"]), named["digest"]


def checked_pairs(matrix: Any, n_points: int, name: str = "pair_weights") -> sp.csr_matrix:
    """Return weights (N, N) of pairs in float64 without their diagonal; refuse those that are none."""
    weights = sp.csr_matrix(matrix) if sp.issparse(matrix) else np.asarray(matrix)
    if weights.dtype.kind not in "biuf":
        raise DataError(f"{name} must be real numbers, got dtype {weights.dtype}: give weights of pairs")
    if weights.shape != (n_points, n_points):
        raise DataError(
            f"{name} must be ({n_points}, {n_points}), a row and a column a point, got {weights.shape}: give the "
            "weights of all pairs of these points, in their order"
        )
    entries = sp.csr_matrix(weights, dtype=np.float64, copy=True)
    if not np.isfinite(entries.data).all() or (entries.data < 0).any():
        raise DataError(f"{name} must be finite and not negative: a weight says how much a pair repels each other")
    entries.setdiag(0.0)
    entries.sum_duplicates()
    entries.eliminate_zeros()
    if entries.nnz == 0:
        raise DataError(f"{name} has no pair with a weight above zero: give one, or leave it out for all pairs by one")
    off = float(abs(entries - entries.T).max())
    if off > SYMMETRIC * float(entries.data.max()):
        raise DataError(
            f"{name} must be symmetric, weights of the same pair differ by up to {off:.3g}: give the mean of it "
            "and its transpose"
        )
    return entries


def read_pairs(params: LayoutParams, n_points: int) -> sp.csr_matrix:
    """Return the weights (N, N) of the file of a descent; refuse one that has changed since it was named."""
    path, expected = file_of(params)
    name = f"layout.pair_weights={path}"
    if not path.is_file() or file_digest(path) != expected:
        raise StoreError(f"{name} is gone or has other content than when the run was planned: give the file anew")
    try:
        matrix = np.load(path, allow_pickle=False) if path.suffix == ".npy" else sp.load_npz(path)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{name} cannot be read: write it with scipy.sparse.save_npz or numpy.save: {error}") from error
    return checked_pairs(matrix, n_points, name)


class PairRepulsion(DescentPart):
    """The repulsion of weighted pairs."""

    def check_parameters(self, params: LayoutParams, n_points: int, weighted: bool) -> None:
        """Refuse weights of pairs that do not fit the points, or that stand for several."""
        if weighted:
            raise ConfigError(
                "layout.pair_weights are of pairs of points, and points with weights, or merged, stand for several: "
                "leave out one of the two"
            )
        read_pairs(params, n_points)

    def held(self, params: LayoutParams, n_points: int) -> Mapping[str, float]:
        """Return the bytes that the weights take: as read, in their order, and in the order of the points."""
        path, _ = file_of(params)
        if path.suffix == ".npy":
            entries = n_points * n_points
        else:
            with np.load(path, allow_pickle=False) as stored:
                entries = int(stored["indptr"][-1]) if "indptr" in stored else len(stored["data"])
        return {"weights of pairs": 3 * array("float64", entries, 2)}

    def prepared(self, problem: Problem, params: ResolvedLayout, rows: np.ndarray | None) -> Problem:
        """Return the problem with the repulsion of weighted pairs; `rows` (N,) are the input rows of its points."""
        weights = read_pairs(params, problem.rows.n_points)
        if rows is not None:
            weights = weights[rows][:, rows]
        return replace(problem, pairs=WeightedPairs(problem.objective.kernel, weights, problem.workspace.over))

    def certificates(self, ended: Ended) -> Mapping[str, Any]:
        """Return how the repulsion was summed, and over how many pairs."""
        assert isinstance(ended.problem.pairs, WeightedPairs)
        return {"repulsion": GIVEN_PAIRS, "pairs": ended.problem.pairs.n_pairs}
