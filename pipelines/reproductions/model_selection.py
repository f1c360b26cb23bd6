"""Figure 4.7 of [LLL 4.8.1]: errors of landmarks and of exact eigenmaps over sigma, L and K_W.

    python pipelines/reproductions/model_selection.py FOLDER                      # 4,000 points, as in the thesis
    python pipelines/reproductions/model_selection.py FOLDER --landmarks 600 --landmark-neighbors 3
    python pipelines/reproductions/model_selection.py FOLDER --points 1000 --landmarks 100 --neighbors 40 --repeats 2

A Swiss roll, its height multiplied by 4, which makes it as high as long: of a longer roll, both leading eigenvectors
run along it. One of the three parameters varies, the others are sigma = 1.6, L = 300, K_W = 150. Errors are those after
Procrustes alignment to the true coordinates, arc length and height: means and standard deviations over `--repeats`,
each with other points of the roll and other landmarks; where some fail, the table counts those that do not. Seconds are
those of the stages that cells do not share: affinities, W and eigenproblem. FOLDER holds the runs and gets
`model-selection.png`.
"""

import argparse
from pathlib import Path

import numpy as np

import scalemani as sm
from scalemani.datasets import generator

SIGMA, LANDMARKS, NEIGHBORS = 1.6, 300, 150
SIGMAS = (0.4, 0.8, 1.2, 1.6, 2.4, 3.2, 6.4)
LANDMARK_SHARES = (0.2, 0.5, 1.0, 1.5, 2.0, 10 / 3)  # of the usual number
NEIGHBOR_SHARES = (0.2, 0.5, 1.0, 1.5, 2.0)
SOLVERS = ("exact", "lll", "variational-nystrom")


def roll_and_truth(arguments: argparse.Namespace, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points (N, 3) of the roll, its height stretched, and their arc length along it and height (N, 2)."""
    data = generator("swiss-roll", arguments.points, seed=seed)
    points, angle = np.array(data.read(0, arguments.points), np.float64), data.labels(0, arguments.points)
    points[:, 1] *= arguments.stretch
    length = 0.5 * (angle * np.sqrt(1 + angle**2) + np.arcsinh(angle))
    return points, np.column_stack([length, points[:, 1]])


def curve(solver: str, name: str, values: list[float], arguments: argparse.Namespace) -> tuple[np.ndarray, float]:
    """Return the errors (repeats, n) of a solver over the values of one parameter, and the mean seconds of a repeat."""
    errors, seconds = [], []
    for seed in range(arguments.repeats):
        points, truth = roll_and_truth(arguments, seed)
        maps = sm.LaplacianEigenmaps(
            solver=solver,
            affinity="gaussian",
            settings={"affinities.sigma": SIGMA, "landmark_weights.n_neighbors": arguments.landmark_neighbors},
            n_landmarks=arguments.landmarks,
            n_neighbors=arguments.neighbors,
            random_state=seed,
            store=arguments.folder / f"runs-{seed}",
        )
        results = sm.tune(maps, {name: values}, points, reference=truth, scoring="procrustes-error").results_
        errors.append(results["procrustes-error"])
        seconds.append(np.nansum(results["seconds"]))
    return np.array(errors), float(np.mean(seconds))


def mean_and_deviation(errors: np.ndarray) -> str:
    """Return a cell of the table, with the share of the runs that succeeded where some failed."""
    good = errors[np.isfinite(errors)]
    if len(good) < 2:
        return f"fails ({len(good)} of {len(errors)})"
    share = "" if len(good) == len(errors) else f" ({len(good)} of {len(errors)})"
    return f"{good.mean():.3f} ± {good.std(ddof=1):.3f}{share}"


def draw(curves: dict[str, dict[str, tuple[list[float], np.ndarray]]], path: Path) -> None:
    """Draw the errors over each parameter, with a standard deviation to either side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.6), layout="constrained")
    for axes, (name, solvers) in zip(figure.subplots(1, len(curves), sharey=True), curves.items(), strict=True):
        for solver, (values, errors) in solvers.items():
            means, deviations = np.nanmean(errors, axis=0), np.nanstd(errors, axis=0, ddof=1)
            axes.errorbar(values, means, deviations, marker="o", ms=3, capsize=2, label=solver)
        values = next(iter(solvers.values()))[0]
        axes.set(xlabel=name, xscale="log", ylim=(0, None))
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()
        axes.grid(color="0.9")
    figure.axes[0].set_ylabel("error to the true coordinates")
    figure.axes[-1].legend(frameon=False)
    figure.savefig(path, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=4000)
    parser.add_argument("--landmarks", type=int, default=LANDMARKS)
    parser.add_argument("--landmark-neighbors", type=int, default=5, help="K_Z of locally linear landmarks")
    parser.add_argument("--neighbors", type=int, default=NEIGHBORS)
    parser.add_argument("--stretch", type=float, default=4.0, help="of the height: 4 makes the roll as high as long")
    parser.add_argument("--repeats", type=int, default=5, help="at least 2")
    arguments = parser.parse_args()
    grids: dict[str, list[float]] = {
        "affinities.sigma": list(SIGMAS),
        "n_landmarks": [round(share * arguments.landmarks) for share in LANDMARK_SHARES],
        "n_neighbors": [round(share * arguments.neighbors) for share in NEIGHBOR_SHARES],
    }
    curves: dict[str, dict[str, tuple[list[float], np.ndarray]]] = {}
    for name, values in grids.items():
        print(f"\n| {name} | {' | '.join(f'{value:g}' for value in values)} | seconds |")
        print("| --- |" + " --- |" * (len(values) + 1))
        for solver in SOLVERS:
            errors, seconds = curve(solver, name, values, arguments)
            curves.setdefault(name, {})[solver] = values, errors
            print(f"| {solver} | {' | '.join(map(mean_and_deviation, errors.T))} | {seconds:.1f} |", flush=True)
    draw(curves, arguments.folder / "model-selection.png")


if __name__ == "__main__":
    main()
