"""One evaluation of the Gaussian repulsion by trees and by the fast Gauss transform beside the exact sums.

Thesis section 5.5: on 60,000 digits Barnes-Hut is 100 and the fast Gauss transform 400 times faster than exact, and
times grow like N^1.17 and N^0.89, exact sums like N^2.02. Maps here are mixtures of 60 clusters, as embeddings of
digits are: 60 units wide at 60,000 points, and for other N either as wide (`fixed`: an elastic embedding of one lambda;
in the thesis, uniform points in a square) or wider by sqrt(N / 60,000) (`dense`: as many points in a unit of area).

Times are seconds of one thread on the processor, the least of some repeats; errors are those of the gradient at 2,000
of the points, their norm over its own.

    python pipelines/benchmarks/nbody.py [--largest 1000000] [--growth fixed dense]
"""

import argparse
import time
from typing import Any

import numpy as np
from measuring import show

from scalemani.kernels.repulsion.pair_sums import ExactSums, PairSums
from scalemani.methods.barnes_hut.kernels import BarnesHut
from scalemani.methods.fast_gauss.kernels.fast_gauss import FastGauss

SIZES = (1_000, 3_000, 10_000, 30_000, 60_000, 200_000, 1_000_000)
MEASURED_EXACT = 60_000  # the exact sums stop here: 4 s
EXTENT = 60.0
SAMPLED = 2_000
CLUSTERS = 60
SECONDS_A_METHOD = 2.0  # repeats stop here, with one at the least
REPEATS = 15
METHODS: dict[str, PairSums] = {
    "exact": ExactSums("gaussian"),
    "barnes-hut 1": BarnesHut("gaussian", 1.0),
    "barnes-hut 1/2": BarnesHut("gaussian", 0.5),
    "fgt 3": FastGauss(3),
    "fgt 4": FastGauss(4),
    "fgt 6": FastGauss(6),
    "barnes-hut to 1e-2": BarnesHut.for_tolerance("gaussian", 1e-2),
    "fgt to 1e-2": FastGauss.for_tolerance("gaussian", 1e-2),
    "fgt to 1e-3": FastGauss.for_tolerance("gaussian", 1e-3),
}


def embedding(n_points: int, extent: float) -> np.ndarray:
    """Return a map of clusters of many widths, (N, 2), in random order."""
    random = np.random.default_rng(0)
    centers, widths = random.normal(size=(CLUSTERS, 2)), random.gamma(2.0, 0.07, CLUSTERS)
    member = random.integers(CLUSTERS, size=n_points)
    points = centers[member] + widths[member, None] * random.normal(size=(n_points, 2))
    return points * (extent / np.ptp(points, axis=0).max())


def seconds(method: PairSums, points: np.ndarray) -> float:
    """Return the least time of one evaluation."""
    times: list[float] = []
    while not times or (len(times) < REPEATS and sum(times) < SECONDS_A_METHOD):
        started = time.thread_time()
        method.field(points)
        times.append(time.thread_time() - started)
    return min(times)


def gradient_error(method: PairSums, points: np.ndarray) -> float:
    """Return the relative error of the gradient at the sampled points."""
    rows = np.random.default_rng(1).choice(len(points), min(SAMPLED, len(points)), replace=False)
    exact = ExactSums("gaussian").field(points, points[rows])[1]  # a point adds nothing to its own gradient
    return float(np.linalg.norm(method.field(points)[1][rows] - exact) / np.linalg.norm(exact))


def measure(growth: str, largest: int) -> list[dict[str, Any]]:
    """Return a row a method: seconds by N, slope in log N, error and speed at 60,000."""
    sizes = [n for n in SIZES if n <= largest]
    maps = {n: embedding(n, EXTENT if growth == "fixed" else EXTENT * (n / MEASURED_EXACT) ** 0.5) for n in sizes}
    rows: list[dict[str, Any]] = []
    for name, method in METHODS.items():
        method.field(maps[sizes[0]])
        times = {n: seconds(method, maps[n]) for n in sizes if name != "exact" or n <= MEASURED_EXACT}
        at = min(MEASURED_EXACT, sizes[-1])
        slope = np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0]
        row = {"growth": growth, "method": name, "slope": float(slope), "error": gradient_error(method, maps[at])}
        base = times if name == "exact" else rows[0]
        rows.append({**row, "times faster": base[at if name == "exact" else f"{at:,}"] / times[at]})
        rows[-1].update({f"{n:,}": spent for n, spent in times.items()})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--growth", nargs="+", choices=("fixed", "dense"), default=["fixed", "dense"])
    arguments = parser.parse_args()
    show([row for growth in arguments.growth for row in measure(growth, arguments.largest)])


if __name__ == "__main__":
    main()
