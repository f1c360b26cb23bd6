"""How time and memory grow with the number of points, from 100,000 to 1,000,000, within a budget of memory.

The slope of log seconds in log N, the peak of the largest run over that of the smallest, and the stage of each peak.

python pipelines/benchmarks/growth.py WORK_FOLDER --memory 1GB
"""

import argparse
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from digits import million_digits
from measuring import records, scalemani, settings, show

SIZES = (100_000, 200_000, 400_000, 1_000_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--memory", default="4GB")
    arguments = parser.parse_args()
    points = np.load(million_digits(arguments.folder), mmap_mode="r")
    rows: list[dict[str, Any]] = []
    for size in SIZES:
        part, run = arguments.folder / f"first-{size}.npy", arguments.folder / f"growth-{size}"
        if not part.exists():
            # Every n-th digit: the same mixture of originals and deformations at every size.
            np.save(part, points[np.linspace(0, len(points) - 1, size).astype(np.int64)])
        shutil.rmtree(run, ignore_errors=True)
        setting = settings(affinities__perplexity=5, neighbors__n_neighbors=15, landmarks__n_landmarks=2000)
        total = scalemani("embed", str(part), str(run), "--memory", arguments.memory, *setting)
        stages = records(run)["stages"]
        highest = max(stages, key=lambda stage: stages[stage]["peak_memory"])
        rows.append({"points": size, "seconds": total.seconds, "peak GB": total.peak_bytes / 1e9, "in": highest})
    slope = np.polyfit(np.log(SIZES), np.log([row["seconds"] for row in rows]), 1)[0]
    ratio = rows[-1]["peak GB"] / rows[0]["peak GB"]
    show([*rows, {"points": "slope", "seconds": float(slope)}, {"points": "last/first", "peak GB": ratio}])


if __name__ == "__main__":
    main()
