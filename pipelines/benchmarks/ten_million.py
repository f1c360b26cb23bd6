"""Ten million points of three dimensions, 300 pieces of them cut out: the graph and a spectral embedding within 4 GB.

A Swiss roll or a fish bowl (`scalemani generate`), of which disjoint balls are pushed outwards, each a piece of its own
that `components` has to join. One line a stage: seconds, seconds a point, peak memory, certificates.

    python pipelines/benchmarks/ten_million.py WORK_FOLDER [--data swiss-roll] [--points 10000000] [--perplexity 5]
"""

import argparse
import shutil
from pathlib import Path

import numpy as np
from measuring import scalemani, settings, show, stage_rows

PIECES = 300
ROWS_AT_ONCE = 1_000_000
SHARE = 0.02  # of the width of the points: the radius of a piece
APART = 0.5  # of the width: how far a piece is pushed, so that no neighbour list of k = 90 reaches across


def cut_points(folder: Path, name: str, n_points: int) -> Path:
    """Return the file of the points with their pieces cut out; made once."""
    whole, cut = folder / f"{name}-{n_points}.npy", folder / f"{name}-{n_points}-{PIECES}-pieces.npy"
    if cut.exists():
        return cut
    if not whole.exists():
        scalemani("generate", name, str(whole), "--n-points", str(n_points))
    points = np.load(whole, mmap_mode="r")
    sample = np.asarray(points[:: max(1, n_points // 100_000)], dtype=np.float64)
    width, middle = np.ptp(sample, axis=0).max(), sample.mean(axis=0)
    centers = apart_from_each_other(sample, 2.5 * SHARE * width)
    directions = (centers - middle) / np.linalg.norm(centers - middle, axis=1, keepdims=True)
    partial = folder / "partial.npy"
    written = np.lib.format.open_memmap(partial, mode="w+", dtype=points.dtype, shape=points.shape)
    for start in range(0, n_points, ROWS_AT_ONCE):
        rows = np.array(points[start : start + ROWS_AT_ONCE])
        for number, center in enumerate(centers):
            inside = np.square(rows - center).sum(axis=1) < (SHARE * width) ** 2
            # Each piece by its own distance: two whose directions agree do not meet.
            rows[inside] += (APART * (1 + number / PIECES) * width * directions[number]).astype(rows.dtype)
        written[start : start + len(rows)] = rows
    written.flush()
    partial.rename(cut)
    return cut


def apart_from_each_other(sample: np.ndarray, distance: float) -> np.ndarray:
    """Return centres of pieces among sampled points, each at least so far from the others; fewer where none is left."""
    centers: list[np.ndarray] = []
    for row in np.random.default_rng(0).permutation(sample):
        if all(np.linalg.norm(row - center) > distance for center in centers):
            centers.append(row)
        if len(centers) == PIECES:
            break
    return np.array(centers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", default="swiss-roll", choices=["swiss-roll", "fish-bowl"])
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--perplexity", type=float, default=5)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--solver", default="refine", choices=["refine", "lll"])
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    points = cut_points(arguments.folder, arguments.data, arguments.points)
    run = arguments.folder / f"run-{points.stem}-{arguments.perplexity:g}"
    shutil.rmtree(run, ignore_errors=True)
    solver = {"embedding__solver": arguments.solver}
    if arguments.solver == "refine":
        solver["embedding__residual"] = 1e-3
    asked = settings(affinities__perplexity=arguments.perplexity, **solver)
    total = scalemani("embed", str(points), str(run), "--memory", arguments.memory, *asked)
    show(stage_rows(run, total, arguments.points))


if __name__ == "__main__":
    main()
