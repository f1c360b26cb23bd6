"""What a method does where nothing is asked: the defaults that follow the method, the points or another parameter."""

from typing import TYPE_CHECKING, Any

from scalemani.config.objectives import OBJECTIVES
from scalemani.config.params.by_stage import EmbeddingParams, LayoutParams
from scalemani.config.routes import goes_by_distances, takes_kernel
from scalemani.config.stages import GIVEN_START

if TYPE_CHECKING:
    from scalemani.config.params.parameters import Parameters

PERPLEXITY = 30.0
LEAST_PERPLEXITY = 1.5  # where the points are few
NEIGHBORS_PER_PERPLEXITY = 3  # [EA 2.4]: k = 3K to 5K neighbours carry the distribution
FEW_NEIGHBORS = 15  # where each neighbour counts as much as any other: more reach from sheet to sheet
COMPONENTS = 2
LANDMARKS = 1000
LANDMARK_NEIGHBORS = 5
# Of |S u - theta u|. At a ten thousandth the certified angle is small on most graphs, at a thousandth it seldom is. A
# descent goes no further from a start that is better than a hundredth.
RESIDUAL, START_RESIDUAL = 1e-4, 1e-2
# Of 70,000 MNIST digits by t-SNE: a momentum of 0.9 goes as far in 400 iterations as 0.8 does in 750. While attraction
# is exaggerated, it leaves 50 digits fewer among those of another label, from each of three starts.
MOMENTUM = 0.9
MOMENTUM_START, SEARCH_START = 1e-2, 1.0  # deviation: momentum finds its scale while the attraction is exaggerated
HOMOTOPY_ENDS = 1e-6, 1  # relative fall in one iteration at which [PH] 3.4 goes on to the next strength
MOMENTUM_ENDS = 1e-2, 50
SEARCH_ENDS = 1e-4, 10
# Points that lie in the wrong place do not come through a wide map: 100 iterations sooner, maps of text keep 1 % fewer
# neighbours.
FIRST_DOUBLING = 150  # iterations of a phase before a map is doubled
PAIRS, PAIRS_BESIDE_SPECTRAL = 100, 10  # of L-BFGS, which has less to learn where the spectral direction comes first


def decided_values(
    asked: "Parameters",
    method: str,
    n_points: int | None,
    distinct_points: int | None,
    most_components: int | None = None,
) -> dict[str, dict[str, Any]]:
    """Return values for all that was left open; what was asked stays as it is."""
    n_neighbors, perplexity = decided_neighbors(asked, method, n_points)
    most = LANDMARKS if distinct_points is None else min(LANDMARKS, distinct_points)
    n_landmarks = asked.landmarks.n_landmarks or max(2, most)
    components = asked.landmark_embedding.n_components
    if components is None:
        clusters = min(asked.clustering.n_clusters, n_landmarks - 1)  # one eigenvector more is the constant one
        components = clusters if method == "spectral-clustering" else COMPONENTS
        if most_components is not None:
            components = max(1, min(components, most_components, n_landmarks - 1))
    landmark_neighbors = asked.landmark_weights.n_neighbors or min(LANDMARK_NEIGHBORS, n_landmarks)
    decided: dict[str, dict[str, Any]] = {
        "neighbors": {"n_neighbors": n_neighbors},
        "affinities": {
            "perplexity": perplexity,
            "kind": decided_kind(asked, method),
            # All of them is what None stands for: one key holds both.
            "n_neighbors": None if asked.affinities.n_neighbors == n_neighbors else asked.affinities.n_neighbors,
        },
        "landmarks": {"n_landmarks": n_landmarks},
        "landmark_weights": {"n_neighbors": landmark_neighbors},
        "landmark_embedding": {"n_components": components},
        "embedding": {
            "solver": asked.embedding.resolved_solver,
            "residual": decided_residual(asked.embedding, method),
        },
    }
    if method in OBJECTIVES:
        decided["layout"] = decided_layout(asked.layout, method)
    return decided


def decided_neighbors(asked: "Parameters", method: str, n_points: int | None) -> tuple[int, float]:
    """Return the neighbours a point and the perplexity: each follows the other, and the points where these are few."""
    if asked.neighbors.by_window and n_points is not None:
        return asked.neighbors.neighbors_in_window(n_points), PERPLEXITY
    n_neighbors, perplexity = asked.neighbors.n_neighbors, asked.affinities.perplexity
    weighted = asked.affinities.n_neighbors or n_neighbors
    most = None if n_points is None else n_points - 1
    if perplexity is None:
        reach = most if weighted is None else weighted
        third = PERPLEXITY if reach is None else reach / NEIGHBORS_PER_PERPLEXITY
        perplexity = float(min(PERPLEXITY, max(LEAST_PERPLEXITY, third)))
    if n_neighbors is None and goes_by_distances(method) and asked.affinities.perplexity is None:
        n_neighbors = FEW_NEIGHBORS if most is None else max(1, min(FEW_NEIGHBORS, most))
    if n_neighbors is None:
        wanted = max(round(NEIGHBORS_PER_PERPLEXITY * perplexity), weighted or 0)
        n_neighbors = max(1, wanted if most is None else min(wanted, most))
    # Other affinities have none; the number that stands for none is the same whatever the neighbours.
    return n_neighbors, perplexity if decided_kind(asked, method) == "entropic" else PERPLEXITY


def decided_kind(asked: "Parameters", method: str) -> str:
    """Return the kind of the affinities: entropic, or Gaussian where they are a kernel or those of pixels."""
    return asked.affinities.kind or ("gaussian" if takes_kernel(method) or asked.neighbors.by_window else "entropic")


def decided_residual(asked: EmbeddingParams, method: str) -> float:
    """Return the residual to which the embedding is refined; that of a solver that refines nothing stands for none."""
    if asked.residual is not None:
        return asked.residual
    return START_RESIDUAL if asked.by_passes and method in OBJECTIVES else RESIDUAL


def decided_layout(asked: LayoutParams, method: str) -> dict[str, Any]:
    """Return the descent of a method; None stays where its direction has no use for a number."""
    objective = OBJECTIVES[method]
    direction = objective.direction if asked.direction == "auto" else asked.direction
    momentum, followed, given_start = direction == "momentum", asked.homotopy > 1, asked.init == GIVEN_START
    # An exaggeration draws a map together; one that is given is to keep its arrangement and its scale.
    exaggerates = momentum and not followed and not given_start
    usual = (objective.exaggeration, objective.exaggerated_iterations) if exaggerates else (1.0, 0)
    converged, window = HOMOTOPY_ENDS if followed else MOMENTUM_ENDS if momentum else SEARCH_ENDS
    decided = {
        "strength": objective.strength,
        "start_deviation": None if given_start else MOMENTUM_START if momentum else SEARCH_START,
        "exaggeration": usual[0],
        "exaggerated_iterations": usual[1],
        "converged": converged,
        "window": window,
        "pairs": {"l-bfgs": PAIRS, "spectral+l-bfgs": PAIRS_BESIDE_SPECTRAL}.get(direction),
    }
    if momentum:
        decided["momentum"] = MOMENTUM
        decided["exaggerated_momentum"] = MOMENTUM if asked.momentum is None else asked.momentum
    given = {name: getattr(asked, name) for name in decided}
    open_values = {name: value for name, value in decided.items() if given[name] is None}
    return {"objective": method, "direction": direction, **open_values}
