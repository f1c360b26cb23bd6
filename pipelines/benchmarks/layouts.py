"""What the benchmarks of descents share: the affinities and the start of a finished run, and figures of a map."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scalemani.config.objectives import objective_of
from scalemani.descents.problem import Problem
from scalemani.descents.problem import problem_of as problem_of_objective
from scalemani.kernels.arrays.workspace import threads as side_by_side
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.repulsion.pair_sums import ExactSums
from scalemani.runs.opened import open_run
from scalemani.stages.arrays.affinities import StoredSymmetricAffinities
from scalemani.stages.arrays.embeddings import StoredEmbedding
from scalemani.stages.arrays.points import StoredWorkPoints

JITTER = 1e-4


@dataclass(frozen=True)
class Graph:
    """Symmetric affinities in work order, the input row of each, and the spectral embedding at unit deviation."""

    rows: AffinityRows
    order: np.ndarray
    spectral: np.ndarray

    def start(self, deviation: float, seed: int = 0) -> np.ndarray:
        """Return the start of a descent: the spectral embedding with a little noise, at a deviation."""
        noise = JITTER * np.random.default_rng(seed).uniform(-1, 1, self.spectral.shape)
        return deviation * (self.spectral + noise)

    def in_input_order(self, positions: np.ndarray) -> np.ndarray:
        """Return positions of work order in input order."""
        ordered = np.empty_like(positions)
        ordered[self.order] = positions
        return ordered


def graph_of(run: Path) -> Graph:
    """Return the graph of a finished run."""
    opened = open_run(run)
    rows = StoredSymmetricAffinities(opened.group("symmetric_affinities")).read_all_rows(opened.dimensions.n_blocks)
    order = StoredWorkPoints(opened.group("work_points")).input_rows.read()
    spectral = StoredEmbedding(opened.group("embedding")).embedding.read()[order]
    return Graph(rows, order, (spectral - spectral.mean(axis=0)) / spectral.std(axis=0))


def problem_of(rows: AffinityRows, method: str, over: Callable, strength: float = 1.0) -> Problem:
    """Return the objective of a method over affinities; values of normalised ones are divergences."""
    return problem_of_objective(rows, objective_of(method), strength, over)


def exact_value(problem: Problem, positions: np.ndarray) -> float:
    """Return the objective with the repulsion summed over all pairs."""
    return problem.value(positions, ExactSums(problem.objective.kernel, problem.workspace.over))


@contextmanager
def threads(count: int) -> Iterator[Callable]:
    """Yield a map over panels on so many threads."""
    with side_by_side(count) as some:
        yield some.over


def slope(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the slope of log seconds over log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
