"""What certificates cost: processor seconds of the work that only measures, over those of what it certifies.

    python pipelines/benchmarks/certificate_cost.py [--points N] [--repeats N]

Runs of the 70,000 digits by each method, with one worker in this process, and functions on arrays in memory. Functions
that measure are timed where a stage calls them; the rest of the stage is what they certify. What falls out of the
computation itself costs nothing and has no row: residuals of refinement, which decide when it ends, entropies as
solved. The first run of a method compiles kernels or loads them; the least seconds of the repeats count.
"""

import argparse
import functools
import importlib
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from digits import mnist_file
from measuring import settings, show
from scipy.spatial import cKDTree

import scalemani as sm
from scalemani.descents.force_errors import SampledForces
from scalemani.interfaces.cli.process import app
from scalemani.runs import walk

METHODS = "scalemani.methods"
# What measures, by the module that calls it and its name there: see `Clock.watched`.
MEASURES = {
    ("scalemani.stages.neighbors", "find_truth"): "recall: true neighbours of the sample",
    ("scalemani.stages.neighbors", "measured_recall"): "recall: lists compared",
    ("scalemani.stages.neighbors", "compared_recall"): "recall of an exact search",
    ("scalemani.stages.affinities", "block_of_entropic"): "entropy residuals as stored",
    ("scalemani.stages.landmark_weights", "block_errors"): "reconstruction errors",
    ("scalemani.stages.embedding.solvers", "residuals_of"): "residuals of landmarks' vectors",
    ("scalemani.stages.layout", "sums_at_end"): "force errors at the end",
    ("scalemani.descents.phases", "adapt_tolerance"): "force errors every 50 iterations",
    ("scalemani.interfaces.functions.nonlinear", "sums_at_end"): "force errors at the end",
    ("scalemani.interfaces.functions.nonlinear", "sampled_gradients"): "force errors",
    (f"{METHODS}.landmark_graph.solver", "residual_of"): "residual of all points",
    (f"{METHODS}.pca.principal_components", "residuals_of_tiles"): "residuals of all points",
    (f"{METHODS}.kernel_pca.kernel_components", "residuals_of_tiles"): "residuals of all points",
    (f"{METHODS}.kernel_lda.kernel_discriminants", "residuals_of"): "residuals of all points",
    (f"{METHODS}.lda.discriminants", "images_of_tiles"): "residuals of all points",
    (f"{METHODS}.lle.local_reconstruction", "residuals_of"): "residuals of all points",
    (f"{METHODS}.isomap.isomap", "certified_by_sample"): "paths from sampled points",
}
LANDMARKS = settings(landmarks__n_landmarks=1000)
RUNS = {
    "t-sne": (),
    "t-sne, exact search": settings(neighbors__method="exact"),
    "laplacian-eigenmaps": settings(embedding__solver="refine"),
    **{
        f"laplacian-eigenmaps, {solver}": settings(embedding__solver=solver)
        for solver in ("lll", "nystrom", "le-z", "variational-nystrom")
    },
    "pca": (),
    "kernel-pca": LANDMARKS,
    "locally-linear-embedding": LANDMARKS,
    "isomap": LANDMARKS,
    "lda": LANDMARKS,
    "kernel-lda": LANDMARKS,
}
EXTENT, N_NEIGHBORS = 60.0, 30  # half of a map of `functions`, and the neighbours that it has
BY_CLASSES = ("lda", "kernel-lda")


class Clock:
    """Processor seconds of this process in stages or functions, and within them in what measures."""

    def __init__(self) -> None:
        self.totals: dict[str, float] = defaultdict(float)
        self.measures: dict[tuple[str, str], float] = defaultdict(float)
        self._now: str | None = None
        self._measuring = False

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """Add what happens in a block to the total of a stage or function."""
        self._now, started = name, time.process_time()
        try:
            yield
        finally:
            self.totals[name] += time.process_time() - started
            self._now = None

    def watched(self, measure: Callable[..., Any], label: str) -> Callable[..., Any]:
        """Return a function that measures, timed where a stage or function is on its way; not twice where nested."""

        @functools.wraps(measure)
        def timed(*arguments: Any, **named: Any) -> Any:
            if self._now is None or self._measuring:
                return measure(*arguments, **named)
            self._measuring, started = True, time.process_time()
            try:
                return measure(*arguments, **named)
            finally:
                self._measuring = False
                self.measures[self._now, label] += time.process_time() - started

        return timed


@contextmanager
def measured() -> Iterator[Clock]:
    """Yield a clock that runs in all stages, and in what measures, of runs of this process."""
    clock = Clock()
    places = [(importlib.import_module(module), name, label) for (module, name), label in MEASURES.items()]
    places.append((SampledForces, "errors", "force errors"))
    before = [getattr(owner, name) for owner, name, _ in places]
    run_stage = walk.run_stage

    def timed_stage(plan: Any, planned: Any, executor: Any) -> None:
        with clock.within(planned.stage.name):
            run_stage(plan, planned, executor)

    walk.run_stage = timed_stage
    for (owner, name, label), function in zip(places, before, strict=True):
        setattr(owner, name, clock.watched(function, label))
    try:
        yield clock
    finally:
        walk.run_stage = run_stage
        for (owner, name, _), function in zip(places, before, strict=True):
            setattr(owner, name, function)


def rows_of(what: str, repeats: list[Clock]) -> list[dict[str, Any]]:
    """Return a row for each certificate: its seconds, those of the rest, and their ratio, the least of repeats."""
    table = []
    for where, label in sorted({key for clock in repeats for key in clock.measures}):
        seconds = min(clock.measures[where, label] for clock in repeats)
        rest = min(
            clock.totals[where] - sum(value for (name, _), value in clock.measures.items() if name == where)
            for clock in repeats
        )
        row = {"what": what, "stage or function": where, "certificate": label}
        table.append({**row, "its seconds": seconds, "seconds of the rest": rest, "ratio": seconds / max(rest, 1e-9)})
    return table


def runs(points: Path, labels: Path, repeats: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of the runs of all methods."""
    for what, options in RUNS.items():
        method, clocks = what.partition(",")[0], []
        classes = ("--labels", str(labels)) if method in BY_CLASSES else ()
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as folder, measured() as clock:
                words = ["embed", str(points), f"{folder}/run", "--method", method, "--workers", "1", *classes]
                app([*words, *options], standalone_mode=False)
            clocks.append(clock)
        yield from rows_of(what, clocks)


def functions(points: np.ndarray, repeats: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of functions on arrays: a map of two principal components, joined to its neighbours there."""
    centered = points - points.mean(axis=0)
    start = centered @ np.linalg.eigh(centered.T @ centered)[1][:, -2:]
    start *= EXTENT / np.abs(start).max()
    neighbors = cKDTree(start).query(start, N_NEIGHBORS + 1)[1][:, 1:]
    rows = np.repeat(np.arange(len(start)), N_NEIGHBORS)
    half = sp.csr_matrix((np.ones(neighbors.size), (rows, neighbors.ravel())), (len(start), len(start)))
    affinities = half + half.T
    calls: dict[str, Callable[[], Any]] = {
        "sm.repulsion": lambda: sm.repulsion(start, method="grid"),
        "sm.objective": lambda: sm.objective(start, affinities, "t-sne", repulsion="grid"),
        "sm.minimize": lambda: sm.minimize(affinities, "t-sne", start),
    }
    for name, call in calls.items():
        clocks = []
        for _ in range(repeats):
            with measured() as clock, clock.within(name):
                call()
            clocks.append(clock)
        yield from rows_of("arrays", clocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=70_000)
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    with np.load(mnist_file(), allow_pickle=False) as file:
        digits, shown = file["X"][: arguments.points].astype(np.float32), file["y"][: arguments.points]
    with tempfile.TemporaryDirectory() as folder:
        points, labels = Path(folder) / "points.npy", Path(folder) / "labels.npy"
        np.save(points, digits)
        np.save(labels, shown)
        show([*functions(digits, arguments.repeats), *runs(points, labels, arguments.repeats)])


if __name__ == "__main__":
    main()
