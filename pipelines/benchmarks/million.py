"""1,020,000 digits of 784 pixels to two dimensions within 4 GB, from raw pixels: seconds, peak memory, certificates.

python pipelines/benchmarks/million.py WORK_FOLDER [--points 1020000] [--memory 4GB]
python pipelines/benchmarks/million.py WORK_FOLDER --points 10200000 --memory 8GB --workers 2 --solver lll --refined

With --workers tasks run on a LocalCluster of so many processes; the driver and each of them have an equal share of the
memory. By lll, a process needs at most 17 bytes for each pair of landmarks: 1.7 GB at 10,000, 6.6 GB at 20,000. With
--refined the same W is refined too: residuals, seconds from W on, and the angle between the embeddings.
"""

import argparse
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from digits import million_digits
from measuring import records, scalemani, settings, show, stage_rows

import scalemani as sm
from scalemani.runs.opened import open_run

PAPER_SETTING = settings(
    affinities__perplexity=5,
    neighbors__n_neighbors=15,
    landmarks__n_landmarks=10_000,
    landmark_weights__n_neighbors=5,
    embedding__solver="refine",
    embedding__residual=1e-3,
)
BY_SOLVER = {
    "lll": ("landmarks", "landmark_weights", "reduced", "landmark_embedding", "embedding"),
    "refine": ("coarse_graphs", "coarse_embedding", "embedding"),
}


def found_by(run: Path, solver: str) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the embedding (N, d) of a run, and what it took from W on."""
    stages = records(run)["stages"]
    seconds = sum(float(stages[name]["seconds"]) for name in BY_SOLVER[solver])
    residual = stages["embedding"]["certificates"]["residual"]
    return np.asarray(open_run(run).embedding[...]), {"solver": solver, "from W on": seconds, "residual": residual}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=1_020_000)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--solver", default="refine", choices=["refine", "lll"])
    parser.add_argument("--landmarks", type=int, default=10_000)
    parser.add_argument("--workers", type=int, help="processes of a LocalCluster; default: threads of one process")
    parser.add_argument("--refined", action="store_true", help="refine as well, from the same W")
    arguments = parser.parse_args()
    points, run = million_digits(arguments.folder, arguments.points), arguments.folder / "million"
    shutil.rmtree(run, ignore_errors=True)
    chosen = settings(embedding__solver=arguments.solver, landmarks__n_landmarks=arguments.landmarks)
    where = [] if arguments.workers is None else ["--scheduler", "processes", "--workers", str(arguments.workers)]
    common = ["embed", str(points), str(run), "--memory", arguments.memory, *where, *PAPER_SETTING, *chosen]
    show(stage_rows(run, scalemani(*common), arguments.points))
    if arguments.refined:
        found, row = found_by(run, arguments.solver)
        scalemani(*common, *settings(embedding__solver="refine"))
        refined, other = found_by(run, "refine")
        show([{**row, "angle to the refined one": sm.measures.subspace_angle(found, refined)}, other])


if __name__ == "__main__":
    main()
