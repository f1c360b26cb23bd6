"""Figure 6 of the paper on determinantal landmarks: a Swiss roll unrolled by the graph of its landmarks alone.

Landmarks by efficient determinantal sampling are joined to their nearest neighbours by the Euclidean distance, or by
the Bhattacharyya distance of the points around them, and their eigenmaps are carried to all points by Nystrom's
formula. The table holds the correlation of the first coordinate with the length along the roll. The paper has
10,000,000 points, 2,500 landmarks and 25 to 500 neighbours.

    python pipelines/reproductions/dpp_graphs.py WORK_FOLDER --points 100000
    python pipelines/reproductions/dpp_graphs.py WORK_FOLDER --points 10000000 --memory 4GB
    python pipelines/reproductions/dpp_graphs.py WORK_FOLDER --data roll.npy --memory 4GB

All cells are runs of one store, in which the points and the landmarks are written once.

C. Wachinger and P. Golland, Diverse landmark sampling from determinantal point processes, arXiv:1503.03506, 2015.
"""

import argparse
from pathlib import Path

import numpy as np

import scalemani as sm
from scalemani.datasets import generator, write
from scalemani.errors import DisconnectedGraphError
from scalemani.io.figures import line_figure

KINDS = ("euclidean", "bhattacharyya")
JUDGED_POINTS = 100_000  # by whose coordinates the correlation is measured
# Whose seconds and peak memory are printed; covariances are measured once, and listed with every graph of them.
STAGES = ("landmarks", "landmark_covariances", "landmark_graph", "embedding")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where points, runs and the figure go")
    parser.add_argument("--points", type=int, default=100_000, help="of a roll that is generated")
    parser.add_argument("--data", type=Path, help="a roll that `scalemani generate swiss-roll` wrote, instead of it")
    parser.add_argument("--landmarks", type=int, default=2500)
    parser.add_argument("--neighbors", type=int, nargs="+", default=(25, 50, 100, 200, 300, 400, 500))
    parser.add_argument("--neighborhood", type=int, default=100, help="points around a landmark")
    parser.add_argument("--memory", default=None, help="budget of a run, such as 4GB")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    points = arguments.data or generated_roll(arguments)
    stages = " | ".join(f"{stage}: s | GB" for stage in STAGES)
    print(f"| neighbours | graph | correlation | {stages} |")
    print("| --- | --- | --- |" + " --- | --- |" * len(STAGES))
    correlations: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for n_neighbors in arguments.neighbors:
        for kind in KINDS:
            correlations[kind].append(correlation(points, kind, n_neighbors, arguments))
    curves = {kind: (np.array(arguments.neighbors), np.array(values)) for kind, values in correlations.items()}
    line_figure(curves, arguments.folder / "dpp-figure-6.png", "neighbours of a landmark", "correlation with the roll")


def generated_roll(arguments: argparse.Namespace) -> Path:
    path: Path = arguments.folder / f"roll-{arguments.points}.npy"
    if not path.exists():
        write(generator("swiss-roll", arguments.points, 0), path)
    return path


def correlation(points: Path, kind: str, n_neighbors: int, arguments: argparse.Namespace) -> float:
    """Embed by one graph, print its line, and return the correlation; not a number for a graph in pieces."""
    settings = {"landmark_graph.n_neighbors": n_neighbors, "landmark_graph.neighborhood": arguments.neighborhood}
    model = sm.LaplacianEigenmaps(
        1,
        solver="nystrom",
        settings={**settings, "landmark_graph.kind": kind},
        landmarks="dpp",
        n_landmarks=arguments.landmarks,
        store=arguments.folder / f"run-{points.stem}-{arguments.landmarks}",
        memory=arguments.memory,
    )
    try:
        embedding = model.fit(str(points)).embedding_[:, 0]
    except DisconnectedGraphError:
        print(f"| {n_neighbors} | {kind} | in pieces |" + " | |" * len(STAGES), flush=True)
        return float("nan")
    roll = np.load(points, mmap_mode="r")
    rows = np.arange(0, len(roll), -(-len(roll) // JUDGED_POINTS))
    value = abs(float(np.corrcoef(embedding[rows], length_along(roll[rows]))[0, 1]))
    records = [model.run_.records().get(stage) for stage in STAGES]
    costs = " | ".join(
        f"{record['seconds']:.1f} | {record['peak_memory'] / 1e9:.2f}" if record else " | " for record in records
    )
    print(f"| {n_neighbors} | {kind} | {value:.4f} | {costs} |", flush=True)
    return value


def length_along(roll: np.ndarray) -> np.ndarray:
    """Return the length (n,) along the spiral of points (n, 3) of a Swiss roll, whose radius is its angle."""
    angle = np.hypot(roll[:, 0], roll[:, 2]).astype(np.float64)
    return 0.5 * (angle * np.sqrt(1 + angle**2) + np.arcsinh(angle))


if __name__ == "__main__":
    main()
