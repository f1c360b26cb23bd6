"""A hundred million pixels of 64 bytes on two cores: graph, spectral map by landmarks and clusters within 8 GB.

The points are `scalemani generate planet-pixels`. One line a stage: seconds, microseconds a point, peak memory,
certificates; then what the run takes on the disk. The same command goes on where an interrupted one stopped. With
--by-stage each stage is a command, as Airflow has it, and its room on the disk is looked at when its turn comes: the
whole run is refused beforehand where not all that it may write at most is free.

    python pipelines/benchmarks/hundred_million.py WORK_FOLDER [--points 100000000] [--memory 8GB] [--by-stage]
"""

import argparse
import time
from pathlib import Path

from measuring import Measured, machine, scalemani, settings, show, stage_rows

METHOD = "spectral-clustering"
STAGES = (
    *("points", "partition", "work_points", "neighbors", "affinities", "components", "symmetric_affinities"),
    *("landmarks", "landmark_weights", "reduced", "landmark_embedding", "embedding", "clustering"),
)
SETTINGS = settings(
    neighbors__n_neighbors=15,
    neighbors__recall=0.9,
    affinities__perplexity=5,
    embedding__solver="lll",
    landmark_embedding__n_components=4,
    clustering__n_clusters=30,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=100_000_000)
    parser.add_argument("--memory", default="8GB")
    parser.add_argument("--by-stage", action="store_true")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    points = arguments.folder / f"pixels-{arguments.points}.zarr"
    run = arguments.folder / f"run-{arguments.points}"
    if not points.exists():
        scalemani("generate", "planet-pixels", str(points), "--n-points", str(arguments.points))
    common = [str(points), str(run), "--method", METHOD, "--memory", arguments.memory, *SETTINGS]
    if arguments.by_stage:
        started = time.perf_counter()
        parts = [scalemani("stage", stage, *common) for stage in STAGES]
        total = Measured(
            time.perf_counter() - started,
            max(part.peak_bytes for part in parts),
            "",
            sum(part.processor_seconds for part in parts),
        )
    else:
        total = scalemani("embed", *common)
    show(stage_rows(run, total, arguments.points))
    stored = sum(file.stat().st_size for file in run.rglob("*") if file.is_file())
    print(f"{stored / 1e9:.1f} GB in {run}, {total.processor_seconds:.0f} processor seconds; {machine()}")


if __name__ == "__main__":
    main()
