"""Requested parameters, and what a method does where nothing is requested."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from scalemani.config.objectives import OBJECTIVES
from scalemani.config.other_names import name_here, with_note
from scalemani.config.params.by_stage import AffinitiesParams, EmbeddingParams
from scalemani.config.params.fields import names_of, parameters, values_in
from scalemani.config.params.layout import LayoutParams
from scalemani.config.params.parsing import by_name, checked
from scalemani.config.params.resolved import RESOLVED_TABLES, Resolved, ResolvedLayout
from scalemani.config.params.tables import Tables
from scalemani.config.routes import ROUTES, goes_by_distances, takes_kernel
from scalemani.config.stages import INPUT_START
from scalemani.errors import ConfigError, nearest_name

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
PAIRS, PAIRS_AFTER_SPECTRAL = 100, 10  # of L-BFGS, which has less to learn where the spectral direction comes first


def decided_values(
    requested: "Parameters",
    method: str,
    n_points: int | None,
    distinct_points: int | None,
    most_components: int | None = None,
) -> dict[str, Any]:
    """Return values by name for parameters without a requested value."""
    n_neighbors, perplexity = decided_neighbors(requested, method, n_points)
    most = LANDMARKS if distinct_points is None else min(LANDMARKS, distinct_points)
    n_landmarks = requested.landmarks.n_landmarks or max(2, most)
    components = requested.landmark_embedding.n_components
    if components is None:
        clusters = min(requested.clustering.n_clusters, n_landmarks - 1)  # one eigenvector more is the constant one
        components = clusters if method == "spectral-clustering" else COMPONENTS
        if most_components is not None:
            components = max(1, min(components, most_components, n_landmarks - 1))
    weighted, kind = requested.affinities.n_neighbors, decided_kind(requested, method)
    affinities = requested.with_values({"affinities": {"kind": kind}}).affinities
    nth = affinities.bandwidth_neighbor
    if nth == AffinitiesParams.bandwidth_neighbor and affinities.takes_bandwidth_neighbor:
        nth = max(1, min(nth, weighted or n_neighbors))  # where the points are few
    decided = {
        "neighbors.n_neighbors": n_neighbors,
        "affinities.perplexity": perplexity,
        "affinities.kind": kind,
        "affinities.bandwidth_neighbor": nth,
        # All of them is what None stands for: one key holds both.
        "affinities.n_neighbors": None if weighted == n_neighbors else weighted,
        "landmarks.n_landmarks": n_landmarks,
        "landmark_weights.n_neighbors": requested.landmark_weights.n_neighbors or min(LANDMARK_NEIGHBORS, n_landmarks),
        "landmark_embedding.n_components": components,
        "embedding.solver": requested.embedding.resolved_solver,
        "embedding.residual": decided_residual(requested.embedding, method),
    }
    return decided | decided_layout(requested.layout, method) if method in OBJECTIVES else decided


def decided_neighbors(requested: "Parameters", method: str, n_points: int | None) -> tuple[int, float]:
    """Return the neighbours a point and the perplexity: each follows the other, and the points where these are few."""
    if requested.pixels and n_points is not None:
        return requested.pixels.n_neighbors(requested, n_points), PERPLEXITY
    n_neighbors, perplexity = requested.neighbors.n_neighbors, requested.affinities.perplexity
    weighted = requested.affinities.n_neighbors or n_neighbors
    most = math.inf if n_points is None else n_points - 1
    if perplexity is None:
        perplexity = float(min(PERPLEXITY, max(LEAST_PERPLEXITY, (weighted or most) / NEIGHBORS_PER_PERPLEXITY)))
    if n_neighbors is None:
        few = goes_by_distances(method) and requested.affinities.perplexity is None
        wanted = FEW_NEIGHBORS if few else max(round(NEIGHBORS_PER_PERPLEXITY * perplexity), weighted or 0)
        n_neighbors = int(max(1, min(wanted, most)))
    # Other affinities have none; the number that stands for none is the same whatever the neighbours.
    return n_neighbors, perplexity if decided_kind(requested, method) == "entropic" else PERPLEXITY


def decided_kind(requested: "Parameters", method: str) -> str:
    """Return the kind of the affinities: entropic, or Gaussian where they are a kernel or those of pixels."""
    return requested.affinities.kind or (
        "gaussian" if takes_kernel(method) or requested.neighbors.of_pixels else "entropic"
    )


def decided_residual(requested: EmbeddingParams, method: str) -> float:
    """Return the residual to which the embedding is refined; that of a solver that refines nothing stands for none."""
    if requested.residual is not None:
        return requested.residual
    return START_RESIDUAL if requested.by_passes and method in OBJECTIVES else RESIDUAL


def decided_layout(requested: LayoutParams, method: str) -> dict[str, Any]:
    """Return the descent of a method by name; None stays where its direction has no use for a number."""
    objective = OBJECTIVES[method]
    direction = objective.direction if requested.direction == "auto" else requested.direction
    momentum, followed, input_start = direction == "momentum", requested.homotopy > 1, requested.init == INPUT_START
    # An exaggeration draws a map together; one that is given is to keep its arrangement and its scale.
    exaggerates = momentum and not followed and not input_start
    usual = (objective.exaggeration, objective.exaggerated_iterations) if exaggerates else (1.0, 0)
    converged, window = HOMOTOPY_ENDS if followed else MOMENTUM_ENDS if momentum else SEARCH_ENDS
    decided = {
        "objective": method,
        "direction": direction,
        "strength": objective.strength,
        "start_deviation": None if input_start else MOMENTUM_START if momentum else SEARCH_START,
        "early_exaggeration": usual[0],
        "exaggerated_iterations": usual[1],
        "converged": converged,
        "window": window,
        "pairs": {"l-bfgs": PAIRS, "spectral+l-bfgs": PAIRS_AFTER_SPECTRAL}.get(direction),
    }
    if momentum:
        decided["momentum"] = MOMENTUM
        decided["exaggerated_momentum"] = MOMENTUM if requested.momentum is None else requested.momentum
    answers = ("objective", "direction")  # to what was asked; of the others those are decided that were left open
    return {
        f"layout.{name}": value
        for name, value in decided.items()
        if name in answers or getattr(requested, name) is None
    }


OPTIONS = ("method", "memory", "workers", "scheduler", "weights", "labels")  # of a command, which results do not keep


@parameters()
class Parameters(Tables):
    """Parameters as they are requested: None where they follow the method and the points."""

    @classmethod
    def of(cls, used: Resolved) -> "Parameters":
        """Return parameters that request what a run used."""
        return cls().with_values(used.as_dict())

    @property
    def usual_neighbors(self) -> int:
        """The neighbours a point that the perplexity asks for."""
        perplexity = PERPLEXITY if self.affinities.perplexity is None else self.affinities.perplexity
        return round(NEIGHBORS_PER_PERPLEXITY * perplexity)

    def decided(
        self,
        method: str,
        n_points: int | None = None,
        distinct_points: int | None = None,
        most_components: int | None = None,
    ) -> "Parameters":
        """Return a copy in which what was left open is decided, by the method and the points where these are few.

        Parameters
        ----------
        method : one of `scalemani.config.routes.ROUTES`
        n_points, distinct_points : points, and those with distinct coordinates; None: more than any default needs
        most_components : what a linear method can have; None: as many as landmarks allow
        """
        return self.with_values(decided_values(self, method, n_points, distinct_points, most_components))

    def resolved(
        self,
        method: str,
        n_points: int | None = None,
        distinct_points: int | None = None,
        most_components: int | None = None,
    ) -> Resolved:
        """Return the parameters that a run uses, decided as `decided` says."""
        return self.decided(method, n_points, distinct_points, most_components).as_resolved(method)

    def as_resolved(self, method: str) -> Resolved:
        """Return decided parameters of a method as resolved ones; raise ConfigError where something is open."""
        kinds = {**RESOLVED_TABLES, "layout": ResolvedLayout} if method in OBJECTIVES else RESOLVED_TABLES
        made = {name: checked(name, kind, values_in(getattr(self, name))) for name, kind in kinds.items()}
        return checked("", Resolved, {**values_in(self), **made})

    def with_values(self, values: Mapping[str, Any]) -> "Parameters":
        """Return a copy with values replaced: {"seed": 1, "neighbors": {"n_neighbors": 15}, "layout.pairs": 20, ...}.

        Raises ConfigError for an unknown stage or parameter, with the nearest name, and for a value not allowed.
        """
        tables, changed = values_in(self), dict[str, dict[str, Any]]()
        for name, raw in by_name(values).items():
            stage, dot, parameter = name.partition(".")
            if stage not in tables:
                raise ConfigError(f"unknown stage {stage!r}: {place_of(stage) or nearest_name(stage, tables)}")
            known = [] if stage == "seed" else names_of(tables[stage])
            value = raw.item() if isinstance(raw, np.generic) else raw
            if parameter in known:
                changed.setdefault(stage, {})[parameter] = value
            elif dot:
                meant = place_of(parameter) if name_here(parameter) else nearest_name(parameter, known)
                raise ConfigError(f"unknown parameter {name}: {meant if known else 'none'}")
            elif stage == "seed":
                tables[stage] = value
            elif not isinstance(value, Mapping):  # an empty table of a configuration changes nothing
                raise ConfigError(f"{stage} takes a table of parameters, got {value!r}")
        for stage, numbers in changed.items():
            tables[stage] = checked(stage, type(tables[stage]), {**values_in(tables[stage]), **numbers})
        return checked("", Parameters, tables)


def names_of_parameters() -> list[str]:
    """Return the names that all parameters have on the command line: `seed`, then `stage.parameter`."""
    return [name for name, value in by_name(Parameters().as_dict()).items() if value != {}]


def known_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by name, without parameters that an earlier version had and this has not."""
    names = names_of_parameters()
    return {name: value for name, value in by_name(values).items() if name in names}


def place_of(name: str) -> str:
    """Return where a name that is no stage belongs: a parameter, an option of the command line, a method; else ""."""
    if ours := name_here(name):
        return with_note(ours.name, ours) + (
            "" if "." in ours.name else ", an argument of estimators, and an option of commands where these have it"
        )
    if homes := [full for full in names_of_parameters() if full.endswith(f".{name}")]:
        return f"it is a parameter, {' or '.join(homes)}"
    if name in OPTIONS:
        return f"it is no parameter of a stage, but an option: --{name}"
    plain = {method.replace("-", ""): method for method in ROUTES}
    if method := plain.get(name.replace("-", "").replace("_", "").lower()):
        return f"it is a method, --method {method}; parameters are those of its stages, which `scalemani params` lists"
    return ""
