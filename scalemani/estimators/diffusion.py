"""Diffusion maps as a scikit-learn estimator."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalemani.estimators.parameters import keep_parameters
from scalemani.estimators.spectral import LaplacianEigenmaps


class DiffusionMaps(LaplacianEigenmaps):
    """Diffusion maps of millions of points: Laplacian eigenmaps of W over (q_n q_m)^alpha, scaled by |mu|^time.

    q are the degrees of W, and mu = 1 - lambda the eigenvalues of the random walk on what is left of it. Distances
    between rows of `embedding_` approach the distances of diffusion after `time` steps. With `alpha` 0 and `time` 0 the
    embedding is that of `LaplacianEigenmaps` to the last bit. Entropic affinities have degrees near one: where `alpha`
    is to undo an uneven density, take affinity="gaussian".

    Parameters
    ----------
    n_components : int, default 2
        Dimensions of the embedding, d.
    alpha : float in [0, 1], default 1.0
        How much of the density is divided out: 0 for the normalised graph Laplacian, 1/2 for the Fokker-Planck
        operator, 1 for the Laplace-Beltrami operator, whatever the density.
    time : float, default 1.0
        Steps of diffusion, t; 0 scales nothing.

    The others are those of `LaplacianEigenmaps`.

    Attributes
    ----------
    embedding_ : (N, d) float64, v_k |1 - lambda_k|^time in input order, with V^T D V = I, the constant one left out
    eigenvalues_ : (d,) lambda, ascending, in [0, 2]
    certificates_, n_features_in_, feature_names_in_ : as in `LaplacianEigenmaps`

    References
    ----------
    Coifman and Lafon, Diffusion maps, Applied and Computational Harmonic Analysis 21, 2006.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> points, _ = make_swiss_roll(300, random_state=0)
    >>> DiffusionMaps(affinity="gaussian", time=2).fit_transform(points).shape
    (300, 2)
    """

    _method = "diffusion-maps"

    def __init__(
        self,
        n_components: int = 2,
        *,
        alpha: float = 1.0,
        time: float = 1.0,
        n_landmarks: int | None = None,
        perplexity: float | None = None,
        n_neighbors: int | None = None,
        landmarks: Any = "random",
        landmark_neighbors: int | None = None,
        affinity: str = "entropic",
        sigma: float | None = None,
        metric: str = "euclidean",
        deduplicate: bool | float | None = None,
        neighbors_method: str = "auto",
        recall: float = 0.95,
        solver: str = "refine",
        residual: float | None = None,
        max_passes: int = 200,
        disconnected: str = "connect",
        bandwidth_neighbor: int = 7,
        affinity_neighbors: int | None = None,
        affinity_solver: str = "halley",
        affinity_order: str = "density",
        affinity_tolerance: float = 1e-10,
        target_weight: float = 0.0,
        n_probes: int | None = None,
        max_rounds: int = 6,
        sampled_queries: int = 1000,
        sketch_dimensions: int = 64,
        cell_points: int = 600,
        cell_sample: int = 50_000,
        landmark_sample: int = 100_000,
        regularization: float | None = None,
        tuning: Mapping[str, Any] | None = None,
        random_state: Any = 0,
        use_rep: str | None = None,
        scheduler: Any = None,
        store: str | Path | None = None,
        workers: int | None = None,
        memory: str | int | None = None,
        verbose: bool = False,
    ) -> None:
        keep_parameters(self, locals())
