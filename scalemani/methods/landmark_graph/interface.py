"""Meanings of certificates of landmark graphs, and eigenvectors continued to new points: `continue_eigenvectors`."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from scalemani.config.metrics import compares_rows
from scalemani.errors import ConfigError, nearest_name
from scalemani.interfaces.report.certificates import NEAR_ZERO, Meaning, good_if, none_of
from scalemani.interfaces.report.opened import ReportedRun
from scalemani.io.sources import open_points
from scalemani.methods.landmark_graph.parameters import LandmarkGraphParams
from scalemani.runs.new_points import NewPoints, refusal_of
from scalemani.runs.new_points.placements import EigenvectorPlacer, Placement
from scalemani.runs.opened import Run
from scalemani.stages.arrays.affinities import StoredSymmetricAffinities
from scalemani.stages.arrays.embeddings import StoredLayout

LEAST_POINTS = good_if(
    lambda value, run: value >= run.params.part(LandmarkGraphParams).neighborhood,
    "at least what landmark_graph.neighborhood asks for",
    "short",
)
MEANINGS = {
    "landmark_covariances": {
        "least_points": Meaning("points that the covariance of any landmark is of, at least", LEAST_POINTS),
        "singular_covariances": Meaning(
            "landmarks around which points span less than all features",
            none_of("their neighbours are rough: raise landmark_graph.neighborhood or take diagonal covariances"),
        ),
    },
    "landmark_graph": {
        "sigma": Meaning("the bandwidth of the kernel that weighs edges between landmarks"),
        "near_zero_eigenvalues": Meaning("eigenvalues that are zero to rounding", NEAR_ZERO),
    },
}

FORMULAS = ("nystrom", "kernel-mean")


def continue_eigenvectors(
    run: Run | str | Path, points: Any, formula: Literal["nystrom", "kernel-mean"] = "nystrom"
) -> np.ndarray:
    """Return new points placed in eigenmaps by their affinities to all training points, in place of landmarks.

    Neighbours of a new point among the training points have affinities as in the run. Its mean over them is the formula
    "kernel-mean", which minimises the objective of the eigenmaps over its place alone; "nystrom" divides each column by
    1 - lambda, as an eigenvector is its own mean over neighbours times that. Both are baselines: `transform` places
    points by their weights over landmarks, which takes no search among all points.

    Parameters
    ----------
    run : a finished run of Laplacian eigenmaps, diffusion maps or spectral clustering, its folder, or a model's `run_`
    points : (n, D) new points, of any kind that `transform` takes
    formula : "nystrom" or "kernel-mean"

    Returns
    -------
    (n, d) float64; a point that equals a training point has its place

    Raises
    ------
    ConfigError
        For another formula, and for runs without eigenvectors, affinities or points.
    DataError
        For points that do not fit those of the run.

    References
    ----------
    Bengio, Paiement, Vincent, Delalleau, Le Roux and Ouimet, Out-of-sample extensions for LLE, Isomap, MDS, eigenmaps,
    and spectral clustering, NIPS 2004.
    Carreira-Perpinan and Lu, The Laplacian eigenmaps latent variable model, AISTATS 2007.
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 4.2.

    Examples
    --------
    >>> import tempfile
    >>> from scalemani import LaplacianEigenmaps
    >>> points = np.random.default_rng(0).normal(size=(60, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = LaplacianEigenmaps(2, n_neighbors=12, store=folder).fit(points)
    ...     placed = continue_eigenvectors(folder, points[:2])
    >>> bool(np.allclose(placed, model.embedding_[:2]))
    True
    """
    if formula not in FORMULAS:
        raise ConfigError(f"unknown formula {formula!r}: {nearest_name(formula, FORMULAS)}")
    opened = run if isinstance(run, Run) else ReportedRun(run)
    if refused := refusal_of(opened):
        raise ConfigError(refused)
    has_graph = StoredSymmetricAffinities.STAGE in opened.keys and StoredLayout.STAGE not in opened.keys
    if not has_graph or opened.eigenvalues is None or compares_rows(opened.metric):
        raise ConfigError(
            f"{opened.store.root} has no eigenvectors of affinities of all points: give a run of laplacian-eigenmaps, "
            "diffusion-maps or spectral-clustering by a solver with a graph of all points, in a metric of coordinates"
        )
    placer = EigenvectorPlacer.read(opened, in_memory=False)
    if formula == "kernel-mean":
        placer = replace(placer, steps=np.ones_like(placer.steps))
    shape = opened.dimensions.n_features, placer.positions.shape[1]
    return NewPoints(Placement(placer, shape, opened.metric, opened.dimensions.sparse), open_points(points)).read_all()
