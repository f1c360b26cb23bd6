"""Landmarks of other libraries beside ours at equal numbers of landmarks: sude, and landmark Isomap and MDS of tapkee.

    python pipelines/benchmarks/landmark_peers.py WORK_FOLDER --peer-python PYTHON [--sets SET ...] [--patience SECONDS]

PYTHON is an interpreter of an environment with sude and tapkee. sude finds its number of landmarks itself; all others
get the same, or `--landmarks` where it does not get to its end. Ours are `isomap`, `laplacian-eigenmaps` with
`solver=lll`, and `t-sne`, whole commands from the file to the map on disk; a peer's seconds are its fit alone, with
points in memory. Preservation is the share of the true 15 neighbours that are among the 15 in the map, of 5,000 points;
accuracy is that of 15-NN labels in the map, over all points.
"""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from digits import mnist_file
from measuring import THREAD_VARIABLES, measured_within, records, scalemani, settings, show

import scalemani as sm
from scalemani.runs.opened import open_run

SETS = ("swiss-roll", "mnist")
SWISS_ROLL_POINTS = 20_000
PRESERVED, N_NEIGHBORS = 5000, 15
LANDMARKS = 2000
PATIENCE = 900.0  # seconds after which a peer is stopped

PEER = """
import json, sys, time
import numpy as np
points, method, landmarks = np.load(sys.argv[1]).astype(np.float64), sys.argv[2], int(sys.argv[3])
begun = time.perf_counter()
if method == "sude":
    import sude
    model = sude.SUDE()
    found = model.fit_transform(points)
    landmarks = len(model.X_landmarks_)
else:
    import tapkee
    ratio = landmarks / len(points)
    found = tapkee.embed(np.asfortranarray(points.T), method=method, landmark_ratio=ratio, num_neighbors=15)
seconds = time.perf_counter() - begun
np.save(sys.argv[4], found)
print(json.dumps({"seconds": seconds, "landmarks": landmarks}))
"""


def points_of(name: str, folder: Path) -> tuple[Path, np.ndarray | None]:
    """Return the file of a set and its labels, if it has any."""
    path = folder / f"{name}.npy"
    if name == "swiss-roll":
        if not path.exists():
            scalemani("generate", name, str(path), "--n-points", str(SWISS_ROLL_POINTS))
        return path, None
    with np.load(mnist_file(), allow_pickle=False) as file:
        if not path.exists():
            np.save(path, file["X"])
        return path, file["y"]


def figures(points: np.ndarray, labels: np.ndarray | None, found: np.ndarray) -> dict[str, float]:
    """Return how good a map is."""
    preserved = sm.measures.neighbor_preservation(points, found, N_NEIGHBORS, n_sampled=PRESERVED).value
    trusted = sm.measures.trustworthiness(points, found, N_NEIGHBORS, n_sampled=PRESERVED).value
    row = {"preservation": preserved, "trustworthiness": trusted}
    if labels is None:
        return row
    return {**row, "accuracy": sm.measures.knn_accuracy(found, labels, N_NEIGHBORS, n_sampled=None).value}


def peer(
    python: Path, path: Path, method: str, n_landmarks: int, patience: float
) -> tuple[dict[str, Any], np.ndarray | None]:
    """Return what a peer took, and its map if it got to its end."""
    target = path.with_suffix(f".{method}.npy")
    command = [str(python), "-c", PEER, str(path), method, str(n_landmarks), str(target)]
    run = measured_within(patience, command, dict.fromkeys(THREAD_VARIABLES, str(os.cpu_count())))
    if isinstance(run, str):
        return {"method": method, "landmarks": n_landmarks, "seconds": run}, None
    found = json.loads(run.output.splitlines()[-1])
    return {"method": method, **found, "peak GB": run.peak_bytes / 1e9}, np.load(target)


def ours(path: Path, method: str, n_landmarks: int) -> tuple[dict[str, Any], np.ndarray]:
    """Return what a command of ours took, and its map."""
    run = path.with_suffix(f".{method}")
    shutil.rmtree(run, ignore_errors=True)
    asked = settings(landmarks__n_landmarks=n_landmarks, landmarks__method="kmeans")
    if method == "laplacian-eigenmaps":
        asked += settings(embedding__solver="lll")
    command = scalemani("embed", str(path), str(run), "--method", method, *asked)
    stages = records(run)["stages"]
    row = {
        "method": f"scalemani {method}",
        "landmarks": n_landmarks if "landmarks" in stages else "",
        "seconds": command.seconds,
        "peak GB": command.peak_bytes / 1e9,
    }
    return row, np.asarray(open_run(run).embedding[...])


def rows_of(name: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of a set of points."""
    path, labels = points_of(name, arguments.folder)
    points, n_landmarks, rows = np.load(path), arguments.landmarks, []
    for method in arguments.peers:
        row, found = peer(arguments.peer_python, path, method, n_landmarks, arguments.patience)
        n_landmarks = int(row["landmarks"])
        rows.append({"points": name, **row, **(figures(points, labels, found) if found is not None else {})})
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    for method in arguments.ours:
        row, found = ours(path, method, n_landmarks)
        rows.append({"points": name, **row, **figures(points, labels, found)})
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peer-python", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--peers", nargs="*", default=["sude", "l-isomap", "l-mds"], help="sude first")
    parser.add_argument("--ours", nargs="*", default=["isomap", "laplacian-eigenmaps", "t-sne"])
    parser.add_argument("--landmarks", type=int, default=LANDMARKS, help="where sude does not say how many")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds after which a peer is stopped")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    show([row for name in arguments.sets for row in rows_of(name, arguments)])


if __name__ == "__main__":
    main()
