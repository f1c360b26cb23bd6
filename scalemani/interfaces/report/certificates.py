"""What every certificate of every stage means, and the scale that tells whether it is good."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from scalemani.config.limits import MOST_ANGLE, MUCH_AT_FLOOR, SINGLE_POINTS
from scalemani.config.methods import MeaningsExtension, extensions
from scalemani.runs.opened import Run, entropy_limit
from scalemani.store.objects import damaged_object

Verdict = Literal["good", "look", "short", "says"]
VERDICTS = {"good": "good", "look": "have a look", "short": "falls short", "says": ""}  # in words
Scale = Callable[[Any, Mapping[str, Any], Run], "Judged"]


class Judged(NamedTuple):
    """How a certificate stands on its scale.

    Attributes
    ----------
    verdict : "good", "look" where nothing that was requested is missed and something follows all the same, "short"
        where something that was requested is missed, "says" for what has no scale
    scale : what it was compared with, in words
    """

    verdict: Verdict
    scale: str = ""


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


Meanings = dict[str, dict[str, Meaning]]  # by stage and certificate


def good_if(good: Callable[[Any, Run], bool], text: str, otherwise: Verdict = "look", consequence: str = "") -> Scale:
    """Return the scale of what is good under a condition, which a text states; and what follows where it is not met."""
    best, poor = Judged("good", text), Judged(otherwise, consequence or text)
    return lambda value, _, run: best if good(value, run) else poor


def none_of(consequence: str) -> Scale:
    """Return the scale of what should not be there at all, and what follows where it is."""
    return good_if(lambda value, _: value == 0, "none is best", consequence=consequence)


def at_most(bound: Callable[[Run], float | None], text: str, otherwise: Verdict = "short", says: str = "") -> Scale:
    """Return the scale of what must not exceed a bound of the run; where there is none, `says` is why."""

    def judge(value: Any, _: Mapping[str, Any], run: Run) -> Judged:
        limit = bound(run)
        if limit is None:
            return Judged("says", says)
        return Judged("good" if value <= limit else otherwise, f"at most {limit:.3g}, {text}")

    return judge


def requested(parameter: str, factor: float = 1.0) -> Scale:
    """Return the scale of what must not exceed a parameter, or a multiple of it."""
    text = f"{'which' if factor == 1 else f'{factor:g} times what'} {parameter} asks for"
    return at_most(lambda run: factor * run.params.value(parameter), text)


def recall(value: float, certificates: Mapping[str, Any], run: Run) -> Judged:
    """Compare a recall with its target; an exact search has to find all."""
    if certificates.get("method", "exact") == "exact" and "graph" not in run.keys:
        return Judged("good" if value == 1 else "short", "1: the search is exact")
    target = run.params.neighbors.recall
    return Judged("good" if value >= target else "short", f"at least {target:g}, which neighbors.recall asks for")


def eigengap(value: float, _: Mapping[str, Any], __: Run) -> Judged:
    """Judge the gap behind the last eigenvalue of the embedding."""
    if value > 0:
        return Judged("says", "the wider, the better the embedding is told from the next eigenvector")
    return Judged("look", "not positive: an eigenvalue is missing among those kept, or two are equal")


BEYOND_ANGLE = "in rad: beyond, residuals do not tell the embedding from its neighbouring eigenvectors"
UNRESOLVED = (
    "the gap to the next eigenvalue is not resolved at these residuals, and no angle follows: residual and "
    "eigenvalue_error_bound are what is known"
)


def angle(value: float | None, _: Mapping[str, Any], run: Run) -> Judged:
    """Judge a bound of the angle to the exact subspace, or that there is none; a descent needs no better start."""
    if run.params.layout.objective is not None:
        return Judged("says", "the start of a descent, which goes no further from a better one")
    if value is None:
        return Judged("look", UNRESOLVED)
    return Judged("good" if value <= MOST_ANGLE else "look", f"at most {MOST_ANGLE:.3g}, {BEYOND_ANGLE}")


CONNECTED = "1: the graph is connected"
NEAR_ZERO = good_if(
    lambda value, _: value == 1,
    "1: that of the constant vector",
    consequence="1 would be that of the constant vector: the graph falls into parts, and vectors of zero are one basis "
    "of many",
)
SCALES: dict[str, Scale] = {
    "floor_share": at_most(lambda _: MUCH_AT_FLOOR, "beyond which edges no longer tell near from far", "look"),
    "recall": recall,
    "largest_entropy_residual": at_most(
        lambda run: entropy_limit(run.params), "in nat: affinities.tolerance, and what float32 rounds off the shares"
    ),
    "largest_solver_residual": requested("affinities.tolerance"),
    "saturated_points": none_of(
        "their affinities are uniform over those: merge duplicates or raise affinities.perplexity"
    ),
    "duplicated_points": none_of("equal points weigh as much as they are many"),
    "components": good_if(
        lambda value, _: value == 1,
        CONNECTED,
        consequence="the graph falls apart: components.disconnected says what is done about it",
    ),
    "bridges": none_of("how far components lie from each other in the embedding follows from few edges"),
    "left_out": none_of("they have no row in the results"),
    "mean_reconstruction_error": good_if(
        lambda value, _: value < 1, "below 1, which is what the nearest landmark alone leaves"
    ),
    "unused_landmarks": none_of("they take part in nothing: fewer landmarks would do as well"),
    "near_zero_eigenvalues": NEAR_ZERO,
    "residual": at_most(
        lambda run: run.params.residual if run.params.embedding.by_passes else None,
        "which embedding.residual asks for",
        says="of a solver that makes no pass",
    ),
    "eigengap": eigengap,
    "angle_bound": angle,
    "pieces": good_if(lambda value, _: value == 1, CONNECTED, consequence="no edge says how pieces lie to each other"),
    "small_piece_points": none_of("columns that their piece has no eigenvector for are zero"),
    "far_points": none_of("what they are made of says little of them: raise landmarks.n_landmarks, or leave them out"),
    "settled": good_if(lambda value, _: bool(value), "yes: no centre moved by more than clustering.settled", "short"),
    "stopped": good_if(lambda value, _: value == "converged", "converged, and not max_iterations", "short"),
    "force_error": requested("layout.tolerance"),
    "worst_decile_force_error": requested("layout.tolerance", SINGLE_POINTS),
}
DEGREES: dict[str, str] = {
    "least_degree": "the smallest sum of the affinities of one point",
    "largest_degree": "the largest sum of the affinities of one point",
}
BANDWIDTH: dict[str, str] = {
    "sigma": "the bandwidth of Gaussian affinities",
    "floor_share": "share of the edges that weigh the least there is",
}
SUBSPACE: dict[str, str] = {
    "angle_bound": "the largest angle that there can be between the embedding and the exact one, in radians, as long "
    "as no eigenvalue is missing among those kept; none where the gap is not resolved",
    "eigenvalue_error_bound": "no eigenvalue kept is farther from an exact one, which is that of its rank as long as "
    "none is missing",
    "resolved_components": "first columns, at most, that residuals tell from all others",
    "resolved_angle_bound": "the largest angle that there can be between these and the exact ones, in radians",
}
TEXTS: dict[str, dict[str, str]] = {
    "points": {
        "points": "points that were read, all of them finite",
        "constant_features": "columns that are the same in all points and add nothing to any distance",
    },
    "partition": {
        "cells": "cells of nearby points, in whose order points are stored and searched",
        "largest_cell": "points of the fullest cell",
        "empty_cells": "cells that no point is nearest to",
    },
    "neighbors": {
        "method": "how the neighbours were found",
        "recall": "share of the true nearest neighbours that the graph has, by exact search",
        "recall_error": "standard error of the recall, which is measured on a sample",
        "given_recall": "the share that was in the neighbour lists that accompany the points, before any was completed",
        "given_recall_error": "standard error of it",
        "incomplete_lists": "lists of these that missed entries, and were completed",
        "rounds": "rounds that refined the first lists",
        "probes": "cells that a point looked through in the first round",
        "draws": "how often leaders were drawn, and all points compared that share one",
        "sampled_queries": "points whose true neighbours were searched for to measure the recall",
    },
    "given_lists": {
        "missing_entries": "neighbours that the search of another library did not find",
        "distances_given": "what its distances are, by those between the points",
        "typical_difference": "how far they typically are from that, relative to it",
    },
    "graph": {"recall": "that of the neighbours"},
    "affinities": {
        "largest_entropy_residual": "how far the entropy of the stored affinities of any point is "
        "from log(perplexity), in nats",
        "largest_solver_residual": "the same before affinities are rounded to float32",
        "mean_iterations": "steps of the root finder for a point",
        "saturated_points": "points with as many equally near neighbours as the perplexity, "
        "which is out of their reach",
        "duplicated_points": "points whose nearest neighbour lies on them",
        **BANDWIDTH,
        "effective_neighbors": "neighbours of a point that count, by the entropy of their weights",
    },
    "components": {
        "components": "connected components of the neighbour graph",
        "largest_components": "points of the largest ones",
        "bridges": "edges that were added to join components",
        "left_out": "points of other components than the largest",
    },
    "duplicates": {
        "rows": "rows given, of which equal ones are one point",
        "duplicate_rows": "rows that repeat an earlier one",
        "most_rows_a_point": "rows of the point that has most of them",
        "rows_left_out": "rows that were left out, those with a gap among them",
        "columns_with_gaps": "columns with gaps, and how many rows have one there",
    },
    "weights": {
        "total_weight": "sum of the weights of the points",
        "largest_weight": "the largest weight of a point",
    },
    "symmetric_affinities": {"nonzeros": "nonzeros of W = (P + P^T) / 2", **DEGREES, **BANDWIDTH},
    "normalized_affinities": DEGREES,
    "landmarks": {
        "landmarks": "landmarks chosen",
        "geometry": "where landmarks lie under the metric of the run",
        "mean_distance_to_nearest_point": "of landmarks that lie off the data",
        "first_objective": "of a process: squares of the first landmark's feature, a point, where its search ends",
        "last_objective": "the same of the last landmark, less what those before it explain",
        "joint_gain": "by how much sweeps raised the logarithm of the kernel's determinant, a landmark",
    },
    "landmark_weights": {
        "mean_reconstruction_error": "what combinations of landmarks leave of a point, "
        "relative to its nearest landmark alone",
        "largest_reconstruction_error": "the same of the worst point",
        "unused_landmarks": "landmarks that are near to no point",
    },
    "reduced": {
        "nonzeros": "nonzeros of Z^T L Z, on the landmarks",
        "density": "share of its entries that are not zero",
    },
    "landmark_embedding": {
        "largest_residual": "|A v - lambda B v| / |A| of the reduced eigenproblem, solved to rounding",
        "following_eigenvalue": "the eigenvalue behind those kept",
        "near_zero_eigenvalues": "eigenvalues that are zero to rounding",
        "unused_landmarks": "landmarks that were left out of the eigenproblem",
    },
    "coarse_graphs": {
        "levels": "coarser and coarser graphs that the solver starts from",
        "nodes": "nodes of each",
        "nonzeros": "nonzeros of each, where weight within a node is on the diagonal",
        "made_of": "points that these graphs were made of; those appended since have joined their nodes",
    },
    "coarse_embedding": {"vectors": "vectors that start the refinement"},
    "embedding": {
        "residual": "|S u - theta u| of the worst eigenvector, over all points; of solvers that embed a graph of the "
        "landmarks alone, for its kernel between all points, by sampled ones",
        "residual_error": "standard error of it, where points are sampled",
        "passes": "passes over the graph that refined the eigenvectors",
        "eigengap": "how far the next eigenvalue is from the last one kept",
        "eigengap_error_bound": "the gap between the exact eigenvalues differs from that by at most this",
        **SUBSPACE,
        "near_zero_eigenvalues": "eigenvalues that are zero to rounding",
        "pieces": "pieces of the graph, each embedded by itself",
        "largest_pieces": "points of the largest ones",
        "small_piece_points": "points of pieces that have too few for all columns",
        "far_points": "points more than twice as far from a landmark as 98 % of the points, by the spacing there",
    },
    "diffusion_coordinates": {"scales": "what each eigenvector was multiplied by: |1 - lambda|^time"},
    "classes": {
        "classes": "classes of the labels",
        "smallest_class": "points of the smallest class",
        "unlabelled": "points without a label, whose affinities stay as they are",
    },
    "clustering": {
        "passes": "passes of k-means over all points",
        "columns": "eigenvectors that clusters are found in: of K the last is left out beyond a gap of the eigenvalues",
        "settled": "whether the centres came to rest",
        "sizes": "points of each cluster",
        "pieces": "pieces of the graph, which clusters are made of",
        "clusters_of_largest_piece": "clusters that the largest piece is cut into, 1 where it is not",
    },
    "doubt": {
        "null_points": "points of the map without structure, a sample with permuted columns; 0 where there is none",
        "believable_p_value": "the largest share of points without structure that agree as well with the data, of "
        "believable points",
        "believable": "share of the points that agree with the data better than points without structure, of which at "
        "most a share doubt.rate is expected not to",
        "moved_beyond": "share of the points that could as well lie beyond two of their neighbours' distances",
        "median_perturbation": "how far the other place of half of the points is at most, in these distances",
        "median_preservation": "share of its nearest points in the data that half of the points have kept in the map",
        "median_spread": "how far half of the points lie at most from their places, in maps of halves of the points "
        "that are brought onto the map, over the root mean square distance of all points from their mean",
        "mean_stable": "share of the nearest points of a point in a half of the points that are as near in a map of it",
    },
    "layout": {
        "iterations": "iterations of the descent",
        "stopped": "why the descent ended",
        "objective": "the objective at the end",
        "gradient_norm": "the norm of its gradient at the end",
        "repulsion": "how the repulsion of all pairs was summed",
        "pairs": "pairs of points that repel each other by a weight of the user's; the repulsion is over these alone",
        "reference_distance": "root mean square distance of points from the reference map at the size of this one, "
        "relative to that: 0 where both are the same, 1.4 where they have nothing in common",
        "pulled": "points that have a place in the reference map, and are pulled there",
        "repulsion_tolerance": "relative error for which its sums were set at the end; layout.tolerance is the target",
        "force_error": "relative error of the repulsion at the end, against exact sums",
        "force_standard_error": "standard error of it, which is measured on a sample",
        "worst_decile_force_error": "the error that the repulsion of nine in ten single points does not exceed, "
        "relative to its own norm",
        "worst_decile_standard_error": "standard error of it",
        "force_error_bound": "what force_error cannot exceed, by bounds of the fast Gauss transform; none where it is "
        "as large as the forces",
        "sum_error_bound": "what no sum of the kernel errs by more than, by the same bounds",
        "hermite_bound": "the bound (5.5) of what Hermite series of so many terms leave out of a sum",
        "taylor_bound": "the bound (5.6), of Taylor series",
        "translated_bound": "the bound (5.7), of Hermite series made into Taylor series",
        "rate": "by which factor unit steps bring a map nearer to its minimum, the norm of B^-1 H - I; below 1 they do",
        "rate_residual": "within this of the rate there is one of B^-1 H - I",
        "least_curvature": "the least eigenvalue of B^-1 H, apart from motions of the whole map: below 0 at no minimum",
        "largest_curvature": "the largest one",
        "last_step": "length of the last step",
        "predicted_decrease": "factor by which steps of that length bring the objective nearer to its end; none where "
        "they do not",
        "measured_decrease": "the factor of the last falls of the objective",
    },
}
MEANINGS = {
    stage: {name: Meaning(text, SCALES.get(name)) for name, text in texts.items()} for stage, texts in TEXTS.items()
}


def subspace_meanings(residual: str) -> dict[str, Meaning]:
    """Return the meanings of `certified_pairs`, of a method whose `residual` is said in words."""
    texts = {"residual": residual, "eigengap": TEXTS["embedding"]["eigengap"], **SUBSPACE}
    scales = {"eigengap": eigengap, "angle_bound": angle}
    return {name: Meaning(text, scales.get(name)) for name, text in texts.items()}


def meanings_of(stage: str) -> dict[str, Meaning]:
    """Return the meanings of the certificates of a stage, by their names."""
    extension = extensions(MeaningsExtension).get(stage)
    meanings: Meanings = MEANINGS if extension is None else extension.load()
    return meanings.get(stage, {})


def judged_certificates(run: Run) -> Iterator[Certificate]:
    """Yield the certificates of the finished stages, in the order in which these ran."""
    for stage, certificates in run.certificates.items():
        known = meanings_of(stage)
        for name in sorted(certificates, key=list({**known, **certificates}).index):
            value, meaning = certificates[name], known.get(name, Meaning(name.replace("_", " ")))
            try:
                judged = Judged("says") if meaning.scale is None else meaning.scale(value, certificates, run)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                raise damaged_object(f"{run.store.root}: certificate {name} of {stage}", repr(value)) from error
            yield Certificate(stage, name, value, meaning.text, judged)


def counted(certificates: list[Certificate]) -> dict[str, int]:
    """Return how many certificates have each verdict."""
    return {verdict: sum(one.judged.verdict == verdict for one in certificates) for verdict in VERDICTS}
