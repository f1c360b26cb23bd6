"""1,020,000 digits of 784 pixels to two dimensions within 4 GB, from raw pixels: seconds, peak memory, certificates.

python pipelines/benchmarks/million.py WORK_FOLDER [--points 1020000] [--memory 4GB]
"""

import argparse
import shutil
from pathlib import Path

from digits import million_digits
from measuring import records, scalemani, settings, show

PAPER_SETTING = settings(
    affinities__perplexity=5,
    neighbors__n_neighbors=15,
    landmarks__n_landmarks=10_000,
    landmark_weights__n_neighbors=5,
    embedding__residual=1e-3,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=1_020_000)
    parser.add_argument("--memory", default="4GB")
    arguments = parser.parse_args()
    points, run = million_digits(arguments.folder, arguments.points), arguments.folder / "million"
    shutil.rmtree(run, ignore_errors=True)
    total = scalemani("embed", str(points), str(run), "--memory", arguments.memory, *PAPER_SETTING)
    rows = [{"stage": "whole", "seconds": total.seconds, "peak GB": total.peak_bytes / 1e9}]
    for stage, record in records(run)["stages"].items():
        peak = record["peak_memory"] / 1e9
        per_point = 1e6 * record["seconds"] / arguments.points
        row = {"stage": stage, "seconds": record["seconds"], "us a point": per_point, "peak GB": peak}
        rows.append({**row, "found": record["certificates"]})
    show(rows)


if __name__ == "__main__":
    main()
