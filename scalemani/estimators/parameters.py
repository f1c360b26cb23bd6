"""The one table of the names that parameters have in Python, and what is made of the values that they are given."""

from collections.abc import Mapping
from typing import Any

from sklearn.base import BaseEstimator

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
        elif name not in (*RESOURCES, *OF_POINTS):
            set_value(values, PARAMETERS[name], value)
    return Parameters().with_values(values)
