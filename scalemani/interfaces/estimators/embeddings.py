"""Spectral and nonlinear embeddings and clustering as scikit-learn estimators; a nonlinear one for each objective."""

import inspect
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from scalemani.config.choices import Landmarks, Solver, Table
from scalemani.config.objectives import OBJECTIVES
from scalemani.config.other_names import NAMES_OF_DESCENTS
from scalemani.engine.progress import Callback
from scalemani.interfaces.estimators.bases import ClusterMixin
from scalemani.interfaces.estimators.fitting import GraphEmbedder, requested_of, transform_points
from scalemani.interfaces.estimators.parameters import Estimator, arguments
from scalemani.interfaces.wording import names_arguments
from scalemani.runs.new_points import centers_of, nearest_clusters
from scalemani.runs.opened import Curve, Run


@arguments
class LaplacianEigenmaps(GraphEmbedder):
    """Laplacian eigenmaps of millions of points, to a requested residual, or by locally linear landmarks.

    A requested value that does not fit the points is an error; only values left open follow them. A setting that
    has no effect with the others, as "affinities.sigma" with entropic affinities, is a warning.

    X may be the pixels of an image with settings={"neighbors.method": "window"}: an array (rows, columns) or (rows,
    columns, colours), or a video of such frames, with affinity="gaussian" or "ensemble"; or a table of them (N, D), row
    by row and frame by frame, with "neighbors.image_rows" and "neighbors.image_columns".

    Parameters
    ----------
    n_components : int, default 2
        Dimensions of the embedding, d.

    Attributes
    ----------
    embedding_ : (N, d) float64, eigenvectors of L v = lambda D v in input order, the constant one left out
    eigenvalues_ : (d,) ascending, in [0, 2]
    certificates_ : what each stage measured about how good its result is; of `embedding` the residual, the eigengap
        after the last column, and what these bound: the angle to the exact eigenvectors (radians; None where these
        bound none) and the error of the eigenvalues
    doubt_ : how far the map may be believed at each point, as `Run.doubt`; with settings {"doubt.measured": True} alone
    run_, graph_ : the run in `store`, opened, with its `affinities` and `landmarks`, and its neighbour graph, as
        `knn_graph` returns it; there with `store` alone
    n_features_in_, feature_names_in_ : as in scikit-learn

    References
    ----------
    Vladymyrov and Carreira-Perpinan, Locally linear landmarks for large-scale manifold learning, ECML PKDD 2013.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> points, _ = make_swiss_roll(300, random_state=0)
    >>> LaplacianEigenmaps(n_landmarks=100).fit_transform(points).shape
    (300, 2)
    """

    _method = "laplacian-eigenmaps"

    n_components: int = field(default=2, kw_only=False)
    solver: Solver = "auto"
    landmarks: Landmarks = "random"
    residual: float | None = None
    deduplicate: bool | float | None = None

    def transform(self, X: Any) -> np.ndarray:
        """Return the coordinates (n, d) float64 of new points (n, D), of any kind that `fit` takes.

        Each point is placed by its weights over its nearest landmarks, independently of the other new points. A
        landmark gets the coordinates that it has in `embedding_`; other points of the training data get what the
        landmarks say of them, which is close to, but after refinement not equal to, their row of `embedding_`. Far from
        all landmarks the weights extrapolate linearly.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            For another number of columns, and for points that are not finite numbers.
        """
        return super().transform(X)


@arguments
class DiffusionMaps(LaplacianEigenmaps):
    """Diffusion maps of millions of points: Laplacian eigenmaps of W over (q_n q_m)^alpha, scaled by |mu|^time.

    q are the degrees of W, and mu = 1 - lambda the eigenvalues of the random walk on what is left of it. Distances
    between rows of `embedding_` approach the distances of diffusion after `time` steps. With `alpha` 0 and `time` 0 the
    embedding is that of `LaplacianEigenmaps` to the last bit. Entropic affinities have degrees near one: where `alpha`
    is to undo an uneven density, take affinity="gaussian".

    Parameters
    ----------
    alpha : float in [0, 1], default 1.0
        How much of the density is divided out: 0 for the normalised graph Laplacian, 1/2 for the Fokker-Planck
        operator, 1 for the Laplace-Beltrami operator at any density.
    time : float, default 1.0
        Steps of diffusion, t; 0 scales nothing.

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

    alpha: float = 1.0
    time: float = 1.0


NO_CLUSTER = -1  # of points of components that are left out, as scikit-learn says of noise


@arguments
class SpectralClustering(ClusterMixin, GraphEmbedder):
    """Spectral clustering of millions of points: K eigenvectors by landmarks, k-means warm-started from the landmarks.

    The eigenvectors are those of `LaplacianEigenmaps`, the constant one left out, and rows are taken at unit length. Of
    K > 2 eigenvectors the last is left out where its eigenvalue is 1.5 times that before it or more: well-separated
    clusters have K - 1 small ones, and the next cuts one of them. {"clustering.n_columns": m} takes the first m.
    k-means runs "clustering.n_restarts" (20) times on the landmarks only, then once over all points from the best
    centres.

    Parameters
    ----------
    n_clusters : int, default 10
        Clusters, K.
    n_components : int or None
        Eigenvectors. None: as many as clusters, or one less than landmarks where these are no more than K.

    Attributes
    ----------
    labels_ : (N,) int32, the cluster of each point, in input order; -1 where disconnected="largest" leaves it out
    embedding_, eigenvalues_, certificates_, run_, graph_, n_features_in_, feature_names_in_ : as in
        `LaplacianEigenmaps`

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, sections 4.7 and 4.7.1.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> points, moons = make_moons(400, noise=0.05, random_state=0)
    >>> labels = SpectralClustering(2, n_landmarks=100, perplexity=10).fit_predict(points)
    >>> bool((labels == moons).all() or (labels != moons).all())
    True
    """

    _method = "spectral-clustering"

    n_clusters: int = field(default=10, kw_only=False)
    n_components: int | None = None
    solver: Solver = "auto"
    landmarks: Landmarks = "random"
    residual: float | None = None

    def _keep_results(self, finished: Run) -> None:
        super()._keep_results(finished)
        self.labels_: np.ndarray = finished.of_input(np.asarray(finished.retained_labels[...]), NO_CLUSTER)
        self._centers: np.ndarray = centers_of(finished)

    @names_arguments()
    def predict(self, X: Any) -> np.ndarray:
        """Return the clusters (n,) int32 of new points (n, D), of any kind that `fit` takes.

        Each point is placed among the landmarks as `LaplacianEigenmaps.transform` does, and gets the cluster whose
        centre is nearest. Landmarks get their label; other points of the training data nearly always do.
        """
        return nearest_clusters(transform_points(self, X), self._centers)


EXAMPLE = """Examples
--------
>>> from sklearn.datasets import load_digits
>>> import scalemani as sm
>>> model = sm.{}(perplexity=10, max_iter=20, settings={{"layout.converged": 0}}).fit(load_digits().data[:200])
>>> model.embedding_.shape, model.n_iter_
((200, 2), 20)
"""


@arguments
class NonlinearEmbedding(GraphEmbedder):
    """A descent from the spectral embedding of the same affinities, or from another start.

    `settings` has the other numbers of the descent, "layout.direction", "layout.converged", "layout.repulsion",
    "layout.homotopy" ..., and of the spectral start: "embedding.solver", "embedding.residual", which is 1e-2 here. An
    array of landmarks for that start is {"landmarks.method": array}.

    Parameters
    ----------
    n_components : int, default 2
        Dimensions of the embedding, d; in 2 and 3 the repulsion is summed by a particle mesh, else exactly.
    strength : float or None
        Weight of the repulsion. None: 1, and 1e-4 where the objective is not normalised.
    learning_rate : float, "auto" or None
        Of momentum (None, "auto": N / exaggeration); a fixed step for other directions (None: a line search).
    early_exaggeration : float, "auto" or None
        How much stronger the attraction is for the first "layout.exaggerated_iterations". None, "auto": 12 for 75 in
        t-SNE with momentum.
    exaggeration : float, "auto" or None, default 1.0
        How much stronger the attraction is after these, from 1 on. With more, clusters become tighter, and
        t-SNE's map at 4 resembles that of umap. The objective is reported without it.
    dof : float in [0.1, 100], default 1.0
        Degrees of freedom of Student's kernel (1 + d^2 / dof)^-dof, in t-SNE and "t-ee": fewer split clusters further,
        more merge them. Its definition is that of openTSNE.
    init : {"spectral", "pca", "random"}, array-like (N, d), `Run` or path
        The start: the spectral embedding, the first principal components of the points, or normal draws; or
        coordinates in an array, a file or another run, of which row n is point n. A row of NaN, or one beyond those of
        the other run, starts among its neighbours. Such coordinates stay as they are, and no exaggeration is the
        default; with "layout.freeze" their points stay where they are.
    global_weight : float, default 0
        Above zero, each point is pulled towards a map of the whole: so many times the mean squared distance of points
        from the reference, both at the size of the map and relative to it, is added to the objective. Of affinities
        whose total is not one, as many times that. At most 1e5; the certificate reference_distance says what it did.
    reference : {"pca", "spectral"}, array-like (N, d), `Run` or path
        That map: the first principal components of the points, the spectral embedding, or coordinates as `init` takes
        them, also those of an earlier map, which then keeps its arrangement. Points with a row of NaN there are not
        pulled, nor are those that `transform` places.
    max_iter : int, default 1000
        Iterations at most, "layout.max_iterations"; the descent ends before when it has converged.
    callbacks : callable, list of callables or None
        Called during the descent with the iteration, the objective as it was last computed (NaN before) and the
        embedding (N, d) in input order; what they return is not used.
    callbacks_every : int, default 50
        Iterations between two calls.

    Attributes
    ----------
    embedding_ : (N, d) float64, in input order
    objective_ : value of the objective at the end; for t-SNE and s-SNE the Kullback-Leibler divergence, and the pull
    kl_divergence_ : that of these two, by the name it has in scikit-learn; others have none
    n_iter_ : iterations made
    curve_ : the learning curve: `iteration`, `objective` and `gradient_norm`, (n,) each
    doubt_ : how far the map may be believed at each point, as `Run.doubt`; with settings {"doubt.measured": True} alone
    run_, graph_ : the run in `store`, opened, with its `affinities`, `landmarks` and `snapshots`, and its neighbour
        graph, as `knn_graph` returns it; with `store` alone
    certificates_ : what each stage measured about how good its result is
    n_features_in_, feature_names_in_ : as in scikit-learn
    """

    n_components: int = field(default=2, kw_only=False)
    strength: float | None = None
    learning_rate: float | Literal["auto"] | None = None
    early_exaggeration: float | Literal["auto"] | None = None
    exaggeration: float | None = 1.0
    dof: float = 1.0
    init: Literal["spectral", "pca", "random"] | str | Path | Run | Table = "spectral"
    global_weight: float = 0.0
    reference: Literal["pca", "spectral"] | str | Path | Run | Table = "pca"
    max_iter: int = 1000
    deduplicate: bool | float | None = None
    callbacks: Callback | Sequence[Callback] | None = None
    callbacks_every: int = 50

    _names_elsewhere = NAMES_OF_DESCENTS

    def _keep_results(self, finished: Run) -> None:
        self.curve_: Curve = finished.curve
        self.objective_: float = self.certificates_["layout"]["objective"]
        self.n_iter_: int = self.certificates_["layout"]["iterations"]

    def transform(self, X: Any) -> np.ndarray:
        """Return the positions (n, d) float64 of new points (n, D), of any kind that `fit` takes.

        The embedding stays where it is. Each new point starts at its nearest training point and descends the objective
        over its position alone, all at once with one N-body sum a step; one that equals a training point is placed
        where that is.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            For another number of columns, and for points that are not finite numbers.

        References
        ----------
        Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, equation (5.9).
        """
        return super().transform(X)

    @property
    def kl_divergence_(self) -> float:
        """The objective at the end, where it is a Kullback-Leibler divergence."""
        layout = requested_of(self).params.layout
        if OBJECTIVES[self._method].total != "one" or layout.strength not in (None, 1) or layout.global_weight > 0:
            raise AttributeError(
                "kl_divergence_ is there for t-SNE and s-SNE of strength 1 and global_weight 0, whose objective is a "
                "divergence: take objective_"
            )
        return self.objective_


def describe(cls: type[Estimator]) -> type[Estimator]:
    """Put what nonlinear embeddings share before the references of a class, and an example after them."""
    text, heading, references = inspect.cleandoc(cls.__doc__ or "").partition("References\n")  # none under python -OO
    shared = inspect.cleandoc(NonlinearEmbedding.__doc__ or "")
    cls.__doc__ = f"{text}{shared}\n\n{heading}{references}\n\n{EXAMPLE.format(cls.__name__)}"
    return cls


@describe
class ElasticEmbedding(NonlinearEmbedding):
    """The elastic embedding: sum w d^2 + strength sum exp(-d^2).

    References
    ----------
    Carreira-Perpinan, The elastic embedding algorithm for dimensionality reduction, ICML 2010.
    """

    _method = "elastic-embedding"


@describe
class SymmetricSNE(NonlinearEmbedding):
    """Symmetric stochastic neighbour embedding: sum p d^2 + strength log sum exp(-d^2).

    References
    ----------
    Cook, Sutskever, Mnih and Hinton, Visualizing similarity data with a mixture of maps, AISTATS 2007.
    """

    _method = "s-sne"


@describe
class TSNE(NonlinearEmbedding):
    """t-distributed stochastic neighbour embedding: sum p log(1 + d^2) + strength log sum 1 / (1 + d^2).

    References
    ----------
    van der Maaten and Hinton, Visualizing data using t-SNE, JMLR 2008.
    """

    _method = "t-sne"


@describe
class SNE(NonlinearEmbedding):
    """Stochastic neighbour embedding: sum p d^2 + strength sum_n log sum_m exp(-d_nm^2).

    Each point has a separate distribution.

    References
    ----------
    Hinton and Roweis, Stochastic neighbor embedding, NIPS 2002.
    """

    _method = "sne"


@describe
class StudentElasticEmbedding(NonlinearEmbedding):
    """The elastic embedding with Student's kernel: sum w log(1 + d^2) + strength sum 1 / (1 + d^2).

    References
    ----------
    Vladymyrov and Carreira-Perpinan, Partial-Hessian strategies for fast learning of nonlinear embeddings, ICML 2012.
    """

    _method = "t-ee"


@describe
class EpanechnikovElasticEmbedding(NonlinearEmbedding):
    """The elastic embedding with Epanechnikov's kernel: sum w d^2 + strength sum max(0, 1 - d^2).

    References
    ----------
    Vladymyrov and Carreira-Perpinan, Partial-Hessian strategies for fast learning of nonlinear embeddings, ICML 2012.
    """

    _method = "epanechnikov-ee"
