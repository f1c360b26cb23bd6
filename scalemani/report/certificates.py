"""What every certificate of every stage means, and the scale that tells whether it is good."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from scalemani.embeddings.force_errors import SINGLE_POINTS
from scalemani.report import scales
from scalemani.report.scales import VERDICTS, Judged, Scale
from scalemani.runs.opened import Run
from scalemani.store.objects import damaged_object


class Certificate(NamedTuple):
    """A certificate as the page shows it."""

    stage: str
    name: str
    value: Any
    meaning: str
    judged: Judged


class Meaning(NamedTuple):
    """What a certificate says, and its scale; None where there is neither good nor bad."""

    text: str
    scale: Scale | None = None


DEGREES = {
    "least_degree": Meaning("the smallest sum of the affinities of one point"),
    "largest_degree": Meaning("the largest sum of the affinities of one point"),
}
BANDWIDTH = {
    "sigma": Meaning("the bandwidth of Gaussian affinities"),
    "floor_share": Meaning("share of the edges that weigh the least there is", scales.floor_share),
}
SINGULAR = Meaning(
    "landmarks around which points span less than all features",
    scales.none_of("their neighbours are rough: raise landmark_graph.neighborhood or take diagonal covariances"),
)
UNUSED = scales.none_of("they take part in nothing: fewer landmarks would do as well")
MEANINGS: dict[str, dict[str, Meaning]] = {
    "points": {
        "points": Meaning("points that were read, all of them finite"),
        "constant_features": Meaning("columns that are the same in all points and add nothing to any distance"),
    },
    "partition": {
        "cells": Meaning("cells of nearby points, in whose order points are stored and searched"),
        "largest_cell": Meaning("points of the fullest cell"),
        "empty_cells": Meaning("cells that no point is nearest to"),
    },
    "neighbors": {
        "method": Meaning("how the neighbours were found"),
        "recall": Meaning("share of the true nearest neighbours that the graph has, by exact search", scales.recall),
        "recall_error": Meaning("standard error of the recall, which is measured on a sample"),
        "rounds": Meaning("rounds that refined the first lists"),
        "probes": Meaning("cells that a point looked through in the first round"),
        "sampled_queries": Meaning("points whose true neighbours were searched for to measure the recall"),
    },
    "graph": {"recall": Meaning("that of the neighbours", scales.recall)},
    "affinities": {
        "largest_entropy_residual": Meaning(
            "how far the entropy of the stored affinities of any point is from log(perplexity), in nats",
            scales.entropy,
        ),
        "largest_solver_residual": Meaning(
            "the same before affinities are rounded to float32", scales.at_most("affinities.tolerance")
        ),
        "mean_iterations": Meaning("steps of the root finder for a point"),
        "saturated_points": Meaning(
            "points with as many equally near neighbours as the perplexity, which is out of their reach",
            scales.none_of("their affinities are uniform over those: merge duplicates or raise affinities.perplexity"),
        ),
        "duplicated_points": Meaning(
            "points whose nearest neighbour lies on them", scales.none_of("equal points weigh as much as they are many")
        ),
        **BANDWIDTH,
        "effective_neighbors": Meaning("neighbours of a point that count, by the entropy of their weights"),
    },
    "components": {
        "components": Meaning("connected components of the neighbour graph", scales.components),
        "largest_components": Meaning("points of the largest ones"),
        "bridges": Meaning(
            "edges that were added to join components",
            scales.none_of("how far components lie from each other in the embedding follows from few edges"),
        ),
        "left_out": Meaning(
            "points of other components than the largest", scales.none_of("they have no row in the results")
        ),
    },
    "duplicates": {
        "rows": Meaning("rows given, of which equal ones are one point"),
        "duplicate_rows": Meaning("rows that repeat an earlier one"),
        "most_rows_a_point": Meaning("rows of the point that has most of them"),
    },
    "weights": {
        "total_weight": Meaning("sum of the weights of the points"),
        "largest_weight": Meaning("the largest weight of a point"),
    },
    "symmetric_affinities": {"nonzeros": Meaning("nonzeros of W = (P + P^T) / 2"), **DEGREES, **BANDWIDTH},
    "normalized_affinities": DEGREES,
    "landmarks": {
        "landmarks": Meaning("landmarks chosen"),
        "geometry": Meaning("where landmarks lie under the metric of the run"),
        "mean_distance_to_nearest_point": Meaning("of landmarks that lie off the data"),
    },
    "landmark_weights": {
        "mean_reconstruction_error": Meaning(
            "what combinations of landmarks leave of a point, relative to its nearest landmark alone",
            scales.reconstruction,
        ),
        "largest_reconstruction_error": Meaning("the same of the worst point"),
        "unused_landmarks": Meaning("landmarks that are near to no point", UNUSED),
    },
    "affinity_weights": {
        "landmarks_a_point": Meaning("landmarks that a point is a mean of, on average"),
        "points_without_landmark": Meaning("points with no landmark among their neighbours, which take these for it"),
        "further_steps": Meaning("steps from neighbour to neighbour until every point had landmarks"),
    },
    "reduced": {
        "nonzeros": Meaning("nonzeros of Z^T L Z, on the landmarks"),
        "density": Meaning("share of its entries that are not zero"),
    },
    "landmark_embedding": {
        "largest_residual": Meaning("|A v - lambda B v| / |A| of the reduced eigenproblem, solved to rounding"),
        "following_eigenvalue": Meaning("the eigenvalue behind those kept"),
        "near_zero_eigenvalues": Meaning("eigenvalues that are zero to rounding", scales.near_zero),
        "unused_landmarks": Meaning("landmarks that were left out of the eigenproblem", UNUSED),
    },
    "landmark_covariances": {
        "least_points": Meaning("points that the covariance of any landmark is of, at least", scales.least_points),
        "singular_covariances": SINGULAR,
    },
    "landmark_graph": {
        "sigma": Meaning("the bandwidth of the kernel that weighs edges between landmarks"),
        "near_zero_eigenvalues": Meaning("eigenvalues that are zero to rounding", scales.near_zero),
    },
    "coarse_graphs": {
        "levels": Meaning("coarser and coarser graphs that the solver starts from"),
        "nodes": Meaning("nodes of each"),
        "nonzeros": Meaning("nonzeros of each, where weight within a node is on the diagonal"),
        "made_of": Meaning("points that these graphs were made of; those appended since have joined their nodes"),
    },
    "coarse_embedding": {"vectors": Meaning("vectors that start the refinement")},
    "embedding": {
        "residual": Meaning("|S u - theta u| of the worst eigenvector, over all points", scales.residual),
        "passes": Meaning("passes over the graph that refined the eigenvectors"),
        "eigengap": Meaning("how far the next eigenvalue is from the last one kept", scales.eigengap),
        "eigengap_error_bound": Meaning("the gap between the exact eigenvalues differs from that by at most this"),
        "angle_bound": Meaning(
            "the largest angle that there can be between the embedding and the exact one, in radians", scales.angle
        ),
        "eigenvalue_error_bound": Meaning("no eigenvalue is above the exact one by more"),
        "near_zero_eigenvalues": Meaning("eigenvalues that are zero to rounding", scales.near_zero),
        "far_points": Meaning(
            "points more than twice as far from every landmark as 98 % of the points from the nearest one",
            scales.none_of("what they are made of says little of them: raise landmarks.n_landmarks, or leave them out"),
        ),
    },
    "diffusion_coordinates": {"scales": Meaning("what each eigenvector was multiplied by: |1 - lambda|^time")},
    "classes": {
        "classes": Meaning("classes of the labels"),
        "smallest_class": Meaning("points of the smallest class"),
        "unlabelled": Meaning("points without a label, whose affinities stay as they are"),
    },
    "principal_components": {"explained_share": Meaning("share of the variance that the components explain")},
    "kernel_components": {
        "least_eigenvalue": Meaning("least eigenvalue of the kernel on the landmarks", scales.least_eigenvalue)
    },
    "discriminants": {"between_shares": Meaning("share of the variance along each axis that lies between classes")},
    "kernel_discriminants": {
        "between_shares": Meaning("share of the variance along each axis that lies between classes")
    },
    "geodesics": {"longest_path": Meaning("the longest of the shortest paths between two landmarks")},
    "isomap": {
        "residual_variance": Meaning("1 - r^2 of distances along the graph and in the embedding, between landmarks"),
        "least_eigenvalue": Meaning("below zero, by as much as no coordinates at all have these distances"),
    },
    "local_reconstruction": {
        "zero_eigenvalues": Meaning(
            "eigenvalues that are zero to rounding, beside that of the constant vector",
            scales.none_of("vectors of the same eigenvalue are one basis of many: raise local_reconstruction.reg"),
        )
    },
    "clustering": {
        "passes": Meaning("passes of k-means over all points"),
        "settled": Meaning("whether the centres came to rest", scales.settled),
        "sizes": Meaning("points of each cluster"),
    },
    "layout": {
        "iterations": Meaning("iterations of the descent"),
        "stopped": Meaning("why the descent ended", scales.stopped),
        "objective": Meaning("the objective at the end"),
        "gradient_norm": Meaning("the norm of its gradient at the end"),
        "repulsion": Meaning("how the repulsion of all pairs was summed"),
        "repulsion_tolerance": Meaning(
            "what its sums were set to err by at the end, where they are to err by layout.tolerance at most"
        ),
        "force_error": Meaning(
            "relative error of the repulsion at the end, against exact sums", scales.at_most("layout.tolerance")
        ),
        "worst_decile_force_error": Meaning(
            "the error that the repulsion of nine in ten single points does not exceed, relative to its own norm",
            scales.at_most("layout.tolerance", SINGLE_POINTS),
        ),
    },
}


def judged_certificates(run: Run) -> Iterator[Certificate]:
    """Yield the certificates of the finished stages, in the order in which these ran."""
    for stage, found in run.certificates.items():
        known = MEANINGS.get(stage, {})
        for name in [*(name for name in known if name in found), *(name for name in found if name not in known)]:
            value, meaning = found[name], known.get(name, Meaning(name.replace("_", " ")))
            try:
                judged = Judged("says") if meaning.scale is None else meaning.scale(value, found, run)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                raise damaged_object(f"{run.store.root}: certificate {name} of {stage}", repr(value)) from error
            yield Certificate(stage, name, value, meaning.text, judged)


def counted(certificates: list[Certificate]) -> dict[str, int]:
    """Return how many certificates have each verdict."""
    return {verdict: sum(one.judged.verdict == verdict for one in certificates) for verdict in VERDICTS}
