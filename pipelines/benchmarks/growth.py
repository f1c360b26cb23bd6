"""How time and memory grow with the number of points: the slope of log seconds in log N, from 100,000 to 1,000,000.

python pipelines/benchmarks/growth.py WORK_FOLDER
"""

import argparse
import shutil
from pathlib import Path

import numpy as np
from digits import million_digits
from measuring import scalemani, settings, show

SIZES = (100_000, 200_000, 400_000, 1_000_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--memory", default="4GB")
    arguments = parser.parse_args()
    points = np.load(million_digits(arguments.folder), mmap_mode="r")
    rows = []
    for size in SIZES:
        part, run = arguments.folder / f"first-{size}.npy", arguments.folder / f"growth-{size}"
        if not part.exists():
            # Every n-th digit: the same mixture of originals and deformations at every size.
            np.save(part, points[np.linspace(0, len(points) - 1, size).astype(np.int64)])
        shutil.rmtree(run, ignore_errors=True)
        setting = settings(affinities__perplexity=5, neighbors__n_neighbors=15, landmarks__n_landmarks=2000)
        total = scalemani("embed", str(part), str(run), "--memory", arguments.memory, *setting)
        rows.append({"points": size, "seconds": total.seconds, "peak GB": total.peak_bytes / 1e9})
    slope = np.polyfit(np.log([row["points"] for row in rows]), np.log([row["seconds"] for row in rows]), 1)[0]
    show([*rows, {"points": "slope", "seconds": float(slope)}])


if __name__ == "__main__":
    main()
