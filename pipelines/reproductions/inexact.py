"""Descents with inexact forces, beside what theorem 5.4.1 says of their end: figure 5.5, right half.

The elastic embedding of a Swiss roll by gradient descent with a fixed step, its repulsion by the fast Gauss transform
with 1 to 10 terms along each axis and by exact sums. A step errs by xi in each coordinate, the step length times the
root mean square of the errors of the gradient at the end; E then ends mu / (1 - r) above where exact forces end,
mu = xi^2 tr(H) / 2 with the Hessian H there, and r the factor by which falls of E shrink in an iteration.

    python pipelines/reproductions/inexact.py FOLDER
    python pipelines/reproductions/inexact.py FOLDER --points 4000

M. Vladymyrov, Large-Scale Methods for Nonlinear Manifold Learning, thesis 2014, section 5.4.
"""

import argparse
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from matplotlib.figure import Figure
from sklearn.datasets import make_swiss_roll

import scalemani as sm

PERPLEXITY, NEIGHBORS, LAST = 20, 60, 20


def affinities_of(points: np.ndarray) -> sp.csr_matrix:
    """Return W of entropic affinities."""
    graph = sm.knn_graph(points, n_neighbors=NEIGHBORS)
    rows = sm.entropic_affinities(graph.distances, PERPLEXITY).values
    return sm.symmetric_affinities(graph.indices, rows)


class Descent:
    """The elastic embedding of affinities: values and gradients, exact or by the transform with so many terms."""

    def __init__(self, affinities: sp.csr_matrix, strength: float) -> None:
        self.affinities, self.strength = affinities, strength
        self.degrees = np.asarray(affinities.sum(axis=1))

    def repulsion(self, positions: np.ndarray, order: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Return sums and gradients; None stands for exact ones."""
        if order is None:
            return sm.repulsion(positions, "gaussian", "exact")
        return sm.repulsion(positions, "gaussian", "fgt", 1e-9, order=order)

    def gradient(self, positions: np.ndarray, order: int | None) -> np.ndarray:
        """Return the gradient (N, d)."""
        pull = 4 * (self.degrees * positions - self.affinities @ positions)
        return pull + 2 * self.strength * self.repulsion(positions, order)[1]

    def value(self, positions: np.ndarray) -> float:
        """Return E by exact sums."""
        pull = 2 * float((positions * (self.degrees * positions - self.affinities @ positions)).sum())
        return pull + self.strength * float(self.repulsion(positions, None)[0].sum())

    def trace(self, positions: np.ndarray) -> float:
        """Return the trace of the Hessian: 4 d degrees, and of each pair 4 strength (2 t - d) exp(-t), t = d_nm^2."""
        n_dims, total = positions.shape[1], 4 * positions.shape[1] * float(self.degrees.sum())
        for n in range(len(positions)):
            squares = np.square(positions[n] - positions).sum(axis=1)
            terms = (2 * squares - n_dims) * np.exp(-squares)
            total += 4 * self.strength * float(terms.sum() + n_dims)  # a point does not meet itself
        return total

    def path(self, start: np.ndarray, order: int | None, length: float, iterations: int) -> tuple[np.ndarray, list]:
        """Return where a descent ends, and E after each iteration, and after an exact step instead of it."""
        positions, values = start.copy(), []
        for _ in range(iterations):
            exact = self.value(positions - length * self.gradient(positions, None)) if order else np.nan
            positions = positions - length * self.gradient(positions, order)
            values.append((self.value(positions), exact))
        return positions, values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--iterations", type=int, default=500)
    parser.add_argument("--step", type=float, default=0.3)
    parser.add_argument("--strength", type=float, default=1e-4)
    parser.add_argument("--orders", type=int, nargs="+", default=list(range(1, 11)))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    points, _ = make_swiss_roll(arguments.points, random_state=0)
    descent = Descent(affinities_of(points), arguments.strength)
    start = 0.1 * np.random.default_rng(1).normal(size=(arguments.points, 2))
    at_end, exact = descent.path(start, None, arguments.step, arguments.iterations)
    best = np.array(exact)[:, 0]
    falls = -np.diff(best[-LAST - 1 :])
    rate = float((falls[-1] / falls[0]) ** (1 / (len(falls) - 1)))
    trace = descent.trace(at_end)
    figure = Figure(figsize=(11, 4.5))
    axes, beside = figure.subplots(1, 2)
    gaps = []
    print(f"exact: E = {best[-1]:.6g}, r = {rate:.5f}, tr H = {trace:.4g}")
    print("| terms | xi | measured E - E exact | mu | mu / (1 - r) |\n| --- | --- | --- | --- | --- |")
    for order in arguments.orders:
        positions, values = descent.path(start, order, arguments.step, arguments.iterations)
        errors = descent.gradient(positions, order) - descent.gradient(positions, None)
        xi = arguments.step * float(np.sqrt(np.mean(errors**2)))
        mu, seen = 0.5 * xi**2 * trace, np.array(values)
        print(f"| {order} | {xi:.2e} | {seen[-1, 0] - best[-1]:.3e} | {mu:.3e} | {mu / (1 - rate):.3e} |", flush=True)
        gaps.append((order, mu / (1 - rate), seen[-1, 0] - best[-1]))
        axes.plot(seen[:, 0], color="C0", linewidth=1)
        axes.plot(seen[:, 1], "k--", linewidth=0.6)
    axes.plot(best, color="C3", label="exact forces")
    axes.set(xlabel="iteration", ylabel="E by exact sums")
    axes.legend()
    shown = [one for one in gaps if one[2] > 0]
    beside.plot([one[1] for one in shown], [one[2] for one in shown], "o")
    for order, predicted, measured in shown:
        beside.annotate(f" p = {order}", (predicted, measured), fontsize=8)
    ends = [one[1] for one in sorted(shown, key=lambda one: one[1])]
    beside.plot(ends, ends, color="0.7", label="equal")
    beside.set(xscale="log", yscale="log", xlabel="predicted, mu / (1 - r)", ylabel="measured, E - E by exact forces")
    beside.legend()
    figure.savefig(arguments.folder / "inexact.png", dpi=150, bbox_inches="tight")


if __name__ == "__main__":
    main()
