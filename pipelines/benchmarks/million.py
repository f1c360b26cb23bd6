"""1,020,000 digits of 784 pixels to two dimensions within 4 GB, from raw pixels: seconds, peak memory, certificates.

python pipelines/benchmarks/million.py WORK_FOLDER [--points 1020000] [--memory 4GB]
python pipelines/benchmarks/million.py WORK_FOLDER --points 10200000 --memory 8GB --workers 2 --solver lll

With --workers tasks run on a LocalCluster of so many processes; the driver and each of them have an equal share of the
memory. By lll, a process needs 56 bytes for each pair of landmarks: 2.1 GB at 5,000, 6.3 GB at 10,000.
"""

import argparse
import shutil
from pathlib import Path

from digits import million_digits
from measuring import scalemani, settings, show, stage_rows

PAPER_SETTING = settings(
    affinities__perplexity=5,
    neighbors__n_neighbors=15,
    landmarks__n_landmarks=10_000,
    landmark_weights__n_neighbors=5,
    embedding__solver="refine",
    embedding__residual=1e-3,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=1_020_000)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--solver", default="refine", choices=["refine", "lll"])
    parser.add_argument("--landmarks", type=int, default=10_000)
    parser.add_argument("--workers", type=int, help="processes of a LocalCluster; default: threads of one process")
    arguments = parser.parse_args()
    points, run = million_digits(arguments.folder, arguments.points), arguments.folder / "million"
    shutil.rmtree(run, ignore_errors=True)
    chosen = settings(embedding__solver=arguments.solver, landmarks__n_landmarks=arguments.landmarks)
    where = [] if arguments.workers is None else ["--scheduler", "processes", "--workers", str(arguments.workers)]
    total = scalemani("embed", str(points), str(run), "--memory", arguments.memory, *where, *PAPER_SETTING, *chosen)
    show(stage_rows(run, total, arguments.points))


if __name__ == "__main__":
    main()
