"""Whether a certificate is good, by what the method promises: what was asked for, or a bound that its theory gives."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from scalemani.runs.opened import Run
from scalemani.runs.poor_points import entropy_limit
from scalemani.stages.affinities import MUCH_AT_FLOOR
from scalemani.stages.embedding.telling import MOST_ANGLE

Verdict = Literal["good", "look", "short", "says"]
VERDICTS = {"good": "good", "look": "have a look", "short": "falls short", "says": ""}  # in words
Scale = Callable[[Any, Mapping[str, Any], Run], "Judged"]


class Judged(NamedTuple):
    """How a certificate stands on its scale.

    Attributes
    ----------
    verdict : "good", "look" where nothing that was asked for is missed and something follows all the same, "short"
        where something that was asked for is missed, "says" for what has no scale
    scale : what it was compared with, in words
    """

    verdict: Verdict
    scale: str = ""


def at_most(parameter: str, factor: float = 1.0) -> Scale:
    """Return the scale of what must not exceed a parameter, or a multiple of it."""

    def judge(value: Any, _: Mapping[str, Any], run: Run) -> Judged:
        limit = run.params.value(parameter)
        if limit is None:
            return Judged("says")
        text = f"at most {factor * limit:.3g}, " + ("which" if factor == 1 else f"{factor:g} times what")
        return Judged("good" if value <= factor * limit else "short", f"{text} {parameter} asks for")

    return judge


def none_of(consequence: str) -> Scale:
    """Return the scale of what should not be there at all, and what follows where it is."""

    def judge(value: Any, _: Mapping[str, Any], __: Run) -> Judged:
        return Judged("good", "none is best") if value == 0 else Judged("look", consequence)

    return judge


def recall(value: float, found: Mapping[str, Any], run: Run) -> Judged:
    """Judge a recall by the one asked for, and say how uncertain it is; an exact search has to find all."""
    if found.get("method", "exact") == "exact" and "graph" not in run.keys:
        return Judged("good" if value == 1 else "short", "1: the search is exact")
    asked, n_queries = run.params.neighbors.recall, found.get("sampled_queries")
    error = found.get("recall_error")
    told = f" ± {error:.2g}" if isinstance(error, float) else ""
    sample = f"; {value:.4f}{told} on a sample of {n_queries:,} points" if isinstance(n_queries, int) else ""
    return Judged("good" if value >= asked else "short", f"at least {asked:g}, which neighbors.recall asks for{sample}")


def entropy(value: float, _: Mapping[str, Any], run: Run) -> Judged:
    """Judge the entropy of stored affinities by their rounding."""
    limit = entropy_limit(run.params)
    text = f"at most {limit:.1e} nat: affinities.tolerance, and what float32 rounds off {run.params.n_neighbors} shares"
    return Judged("good" if value <= limit else "short", text)


def least_points(value: int, _: Mapping[str, Any], run: Run) -> Judged:
    """Judge how many points a covariance is of, by how many were requested."""
    text = f"at least {run.params.landmark_graph.neighborhood}, which landmark_graph.neighborhood asks for"
    return Judged("good" if value >= run.params.landmark_graph.neighborhood else "short", text)


def floor_share(value: float, _: Mapping[str, Any], __: Run) -> Judged:
    """Judge how many edges weigh the least there is, as the stage that warns of them does."""
    text = f"at most {MUCH_AT_FLOOR:g}: beyond, edges no longer tell near from far"
    return Judged("good" if value <= MUCH_AT_FLOOR else "look", text)


def components(value: int, _: Mapping[str, Any], run: Run) -> Judged:
    """Judge whether the graph holds together."""
    if value == 1:
        return Judged("good", "1: the graph is connected")
    done = {"connect": "joined by bridges", "largest": "the largest alone is embedded"}
    return Judged("look", f"the graph falls apart: {done.get(run.params.components.disconnected, '')}")


def angle(value: float, _: Mapping[str, Any], run: Run) -> Judged:
    """Judge the bound on the angle between the subspace found and the exact one."""
    if run.params.layout.objective is not None:
        return Judged("says", "the start of a descent, which goes no further from a better one")
    text = f"at most {MOST_ANGLE:g} rad: beyond, residuals do not tell the embedding from its neighbouring eigenvectors"
    return Judged("good" if value <= MOST_ANGLE else "look", text)


def residual(value: float, _: Mapping[str, Any], run: Run) -> Judged:
    """Judge the residual of the embedding by the one asked for, where the solver makes passes."""
    if not run.params.embedding.by_passes:
        return Judged("says", f"of the solver {run.params.embedding.solver}, which makes no pass")
    limit = run.params.residual
    return Judged("good" if value <= limit else "short", f"at most {limit:.3g}, which embedding.residual asks for")


def eigengap(value: float, _: Mapping[str, Any], __: Run) -> Judged:
    """Judge the gap behind the last eigenvalue kept."""
    if value > 0:
        return Judged("says", "the wider, the better the embedding is told from the next eigenvector")
    return Judged("look", "not positive: an eigenvalue is missing among those kept, or two are equal")


def stopped(value: str, _: Mapping[str, Any], __: Run) -> Judged:
    """Judge why a descent ended."""
    text = "converged, and not max_iterations"
    return Judged("good" if value == "converged" else "short", text)


def settled(value: bool, _: Mapping[str, Any], run: Run) -> Judged:
    """Judge whether the centres of the clusters came to rest."""
    text = f"yes: no centre moved by more than clustering.settled, {run.params.clustering.settled:.3g}"
    return Judged("good" if value else "short", text)


def near_zero(value: int, _: Mapping[str, Any], __: Run) -> Judged:
    """Judge how often the eigenvalue zero is there: once for each part into which the graph falls."""
    if value == 1:
        return Judged("good", "1: that of the constant vector")
    text = (
        "1 would be that of the constant vector: the graph falls into parts, and vectors of zero are one basis of many"
    )
    return Judged("look", text)


def reconstruction(value: float, _: Mapping[str, Any], __: Run) -> Judged:
    """Judge what landmarks leave of the points, relative to the nearest landmark alone."""
    return Judged("good" if value < 1 else "look", "below 1, which is what the nearest landmark alone leaves")


def least_eigenvalue(value: float, _: Mapping[str, Any], run: Run) -> Judged:
    """Judge whether the kernel is positive semidefinite as far as its components tell."""
    last = float(run.eigenvalues[-1])
    text = f"not below {-last:.3g}: farther from zero than the last component, the kernel is not positive semidefinite"
    return Judged("good" if -value <= last else "look", text)
