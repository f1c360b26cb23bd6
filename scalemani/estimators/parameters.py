"""The one table of the names that parameters have in Python, and what is made of the values that they are given."""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from dask.system import cpu_count
from sklearn.base import BaseEstimator

from scalemani.errors import nearest_name
from scalemani.params import Parameters, set_tuned, set_value
from scalemani.validation import check_seed

# By the name that a parameter has on the command line after --set.
PARAMETERS = {
    "metric": "points.metric",
    "deduplicate": "duplicates.tolerance",
    "n_components": "landmark_embedding.n_components",
    "sketch_dimensions": "partition.sketch_dimensions",
    "cell_points": "partition.cell_points",
    "cell_sample": "partition.sample_points",
    "n_neighbors": "neighbors.n_neighbors",
    "neighbors_method": "neighbors.method",
    "neighbors_window": "neighbors.window",
    "neighbors_frames": "neighbors.frames",
    "image_rows": "neighbors.image_rows",
    "image_columns": "neighbors.image_columns",
    "recall": "neighbors.recall",
    "n_probes": "neighbors.n_probes",
    "max_rounds": "neighbors.max_rounds",
    "sampled_queries": "neighbors.sampled_queries",
    "affinity": "affinities.kind",
    "perplexity": "affinities.perplexity",
    "affinity_solver": "affinities.solver",
    "affinity_order": "affinities.order",
    "affinity_tolerance": "affinities.tolerance",
    "sigma": "affinities.sigma",
    "bandwidth_neighbor": "affinities.bandwidth_neighbor",
    "affinity_neighbors": "affinities.n_neighbors",
    "target_weight": "symmetric_affinities.target_weight",
    "disconnected": "components.disconnected",
    "n_landmarks": "landmarks.n_landmarks",
    "landmarks": "landmarks.method",
    "landmark_sample": "landmarks.sample_points",
    "landmark_neighbors": "landmark_weights.n_neighbors",
    "regularization": "landmark_weights.regularization",
    "landmark_graph": "landmark_graph.kind",
    "solver": "embedding.solver",
    "residual": "embedding.residual",
    "max_passes": "embedding.max_passes",
    "alpha": "normalized_affinities.alpha",
    "time": "diffusion_coordinates.time",
    "ridge": "kernel_discriminants.ridge",
    "reg": "local_reconstruction.reg",
    "n_clusters": "clustering.n_clusters",
    "n_restarts": "clustering.n_restarts",
    "strength": "layout.strength",
    "direction": "layout.direction",
    "learning_rate": "layout.learning_rate",
    "momentum": "layout.momentum",
    "exaggerated_momentum": "layout.exaggerated_momentum",
    "exaggeration": "layout.exaggeration",
    "exaggerated_iterations": "layout.exaggerated_iterations",
    "init": "layout.init",
    "freeze": "layout.freeze",
    "start_deviation": "layout.start_deviation",
    "homotopy": "layout.homotopy",
    "max_iter": "layout.max_iterations",
    "converged": "layout.converged",
    "window": "layout.window",
    "repulsion": "layout.repulsion",
    "tolerance": "layout.tolerance",
    "schedule": "layout.schedule",
    "kappa": "layout.kappa",
    "pairs": "layout.pairs",
    "snapshots": "layout.snapshots",
    "random_state": "seed",
}
# Change the cost, or what is told, and never the answer.
RESOURCES = ("scheduler", "store", "workers", "memory", "verbose", "callbacks", "callbacks_every")
OF_POINTS = ("use_rep",)  # say which points are meant
TUNING = "tuning"
AUTOMATIC = "auto"  # scikit-learn's and openTSNE's word for what is None here


def workers_of(n_jobs: Any) -> Any:
    """Return as many workers as joblib has jobs: -1 are all processors, -2 all but one."""
    if not isinstance(n_jobs, int) or isinstance(n_jobs, bool) or n_jobs >= 0:
        return n_jobs
    return None if n_jobs == -1 else max(1, cpu_count() + 1 + n_jobs)


def unless_automatic(value: Any) -> Any:
    """Return a value, None for "auto"."""
    return None if isinstance(value, str) and value == AUTOMATIC else value


def as_given(value: Any) -> Any:
    """Return a value."""
    return value


# What other libraries call a parameter of the same meaning: ours, and its value for theirs.
OTHER_NAMES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "n_jobs": ("workers", workers_of),
    "early_exaggeration": ("exaggeration", unless_automatic),
    "early_exaggeration_iter": ("exaggerated_iterations", unless_automatic),
    "initialization": ("init", as_given),
    "callbacks_every_iters": ("callbacks_every", as_given),
}
# What they have that is not the same here, by the parameter that comes nearest.
DIFFERENT = {
    "n_iter": ("max_iter", "max_iter counts all iterations, and openTSNE's n_iter leaves out the early ones"),
    "n_epochs": ("max_iter", "max_iter counts steps of all points, and an epoch of umap samples edges"),
    "n_iter_without_progress": ("window", "converged and window say when the descent ends"),
    "min_grad_norm": ("converged", "converged and window say when the descent ends"),
    "angle": ("tolerance", "tolerance is the relative error of the forces"),
    "theta": ("tolerance", "tolerance is the relative error of the forces"),
    "negative_gradient_method": ("repulsion", "repulsion says how the repulsion is summed"),
    "min_dist": ("strength", "strength weighs the repulsion; kernels have no parameter of their own"),
    "dof": ("strength", "strength weighs the repulsion; kernels have no parameter of their own"),
    "algorithm": ("neighbors_method", "neighbors_method and recall say how neighbours are found"),
    "assign_labels": ("n_restarts", "labels are those of k-means, which n_restarts repeats"),
    "metric_params": ("metric", "metrics have no parameters"),
}


class TakesOtherNames:
    """Of an estimator: its constructor takes what other libraries call a parameter, and explains what it cannot take.

    Parameters have one name each all the same, which `get_params` tells.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = taking_other_names(cls.__init__)  # type: ignore[method-assign]


def taking_other_names(construct: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that is given its own names, whatever a user calls its parameters."""
    own = inspect.signature(construct).parameters

    @functools.wraps(construct)
    def translated(self: Any, *args: Any, **given: Any) -> None:
        construct(self, *args, **own_names(type(self).__name__, own, given))

    return translated


def own_names(estimator: str, own: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by the names that an estimator has for them.

    Parameters
    ----------
    estimator : its name, for messages
    own : its parameters by name
    given : values by the names that a user gave

    Raises
    ------
    TypeError
        For names that mean nothing, or something else, to the estimator, and for a parameter that is given twice.
    """
    found: dict[str, Any] = {}
    for name, value in given.items():
        ours, convert = (name, as_given) if name in own else OTHER_NAMES.get(name, (name, as_given))
        if ours not in own:
            instead, reason = DIFFERENT.get(name, ("", ""))
            said = reason if instead in own else nearest_name(name, set(own) - {"self"})
            raise TypeError(f"{estimator}() got an unexpected keyword argument {name!r}: {said}")
        if ours in found:
            raise TypeError(f"{estimator}() got {ours} under two names, {ours!r} and {name!r}: give one of them")
        found[ours] = convert(value)
    return found


def keep_parameters(estimator: BaseEstimator, given: Mapping[str, Any]) -> None:
    """Keep what a constructor was given as attributes of the same names, untouched: what scikit-learn asks for."""
    vars(estimator).update({name: value for name, value in given.items() if name != "self"})


def parameters_of(given: Mapping[str, Any]) -> Parameters:
    """Return the parameters of a run from values by Python names; those of resources and points are passed over."""
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name == "random_state":
            values["seed"] = check_seed(value)
        elif name == TUNING:
            set_tuned(values, value)
        elif name == "learning_rate":
            set_value(values, PARAMETERS[name], unless_automatic(value))
        elif name not in (*RESOURCES, *OF_POINTS):
            set_value(values, PARAMETERS[name], value)
    return Parameters().with_values(values)


def with_python_names(message: str) -> str:
    """Return a message with the names in Python of parameters that it calls otherwise, as the command line does."""
    named = {
        full: name
        for name, full in PARAMETERS.items()
        if name != full.rpartition(".")[2] and re.search(rf"(?<![\w.]){re.escape(full)}(?!\w)", message)
    }
    named.pop(PARAMETERS["random_state"], None)  # a word, and no name of a stage and its parameter
    return (
        f"{message} (in Python, {', '.join(f'{full} is {name}' for full, name in named.items())})" if named else message
    )
