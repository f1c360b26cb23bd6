"""Digests of every stored array of runs whose parameters are all given: the same before and after a change of the code.

    python pipelines/benchmarks/same_bits.py WORK [--data FOLDER] [--only NAME ...] > digests.json

Runs the command line of the `scalemani` that Python imports on digits, COIL views, a Swiss roll and word counts, by
the spectral and the t-SNE route, and prints a digest for every array of every stage. Two versions of the code that
print the same digests compute the same bits. Points are made once in WORK, so that both read the same files.
"""

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import zarr

# Every parameter that has a default is named: a default that moves must not show here.
PARAMETERS = {
    "seed": 3,
    "partition": {"sketch_dimensions": 48, "cell_points": 300, "sample_points": 20_000},
    "neighbors": {"n_neighbors": 15, "recall": 0.95, "max_rounds": 3, "sampled_queries": 500},
    "affinities": {"kind": "entropic", "perplexity": 5.0, "solver": "halley", "order": "density", "tolerance": 1e-10},
    "components": {"disconnected": "connect"},
    "landmarks": {"n_landmarks": 500, "method": "random", "sample_points": 20_000},
    "landmark_weights": {"n_neighbors": 5},
    "landmark_embedding": {"n_components": 2},
    "embedding": {"solver": "lll+refine", "residual": 1e-4, "max_passes": 60},
    "layout": {
        "strength": 1.0, "direction": "momentum", "learning_rate": 200.0, "momentum": 0.8, "early_exaggeration": 12.0,
        "exaggerated_iterations": 20, "start_deviation": 1e-4, "homotopy": 1, "max_iterations": 60, "converged": 0.0,
        "window": 50, "repulsion": "grid", "tolerance": 1e-3, "schedule": 0, "kappa": 7, "pairs": 100, "snapshots": 25,
    },
}  # fmt: skip
# What differs from these by case, so that every method of a stage is met once.
CASES = {
    "digits": {"neighbors": {"method": "partition"}, "landmarks": {"method": "kmeans++ seeding"}},
    "coil": {"neighbors": {"method": "exact"}, "landmarks": {"method": "spread"}},
    "roll": {"neighbors": {"method": "partition"}, "landmarks": {"method": "minmax"}},
    "counts": {"neighbors": {"method": "exact"}, "affinities": {"solver": "newton", "order": "bounds"}},
}
METHODS = ("laplacian-eigenmaps", "spectral-clustering", "t-sne")


def made_points(name: str, data: Path, folder: Path) -> Path:
    """Return the file of a case's points, made from the real data where it is not there."""
    out = folder / f"{name}.np{'z' if name == 'counts' else 'y'}"
    if out.exists():
        return out
    if name == "digits":
        np.save(out, np.load(data / "mnist.npz")["X"][:30_000])
    elif name == "coil":
        np.save(out, np.load(data / "coil20.npz")["X"])
    elif name == "roll":
        subprocess.run([*scalemani(), "generate", "swiss-roll", str(out), "--n-points", "25000"], check=True)
    else:
        sp.save_npz(out, sp.csr_matrix(sp.load_npz(data / "news20_counts.npz")[:3000, :2000]).astype(np.float32))
    return out


def scalemani() -> list[str]:
    """Return the command of the package that this Python imports."""
    return [sys.executable, "-m", "scalemani"]


def configuration(case: str, out: Path) -> Path:
    """Write the configuration of a case and return its file."""
    lines = [f"seed = {PARAMETERS['seed']}"]
    for stage, values in PARAMETERS.items():
        if isinstance(values, dict):
            chosen = {**values, **CASES[case].get(stage, {})}
            lines += [f"[{stage}]", *(f"{name} = {json.dumps(value)}" for name, value in chosen.items())]
    out.write_text("\n".join(lines) + "\n")
    return out


def digests(run: Path) -> dict[str, str]:
    """Return a digest of type, shape and content of every array of a run."""
    found = {}
    for stage in sorted((run / "stages").iterdir()):
        for key in sorted(stage.iterdir()):
            root = zarr.open_group(key / "arrays", mode="r")
            for name, array in sorted(root.members(max_depth=None)):
                if isinstance(array, zarr.Array):
                    values = np.ascontiguousarray(array[...])
                    text = hashlib.sha256(f"{values.dtype} {values.shape}".encode() + values.tobytes()).hexdigest()
                    found[f"{run.name}/{stage.name}/{name}"] = text[:16]
    return found


def main() -> None:
    """Run every case by every method and print the digests."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path, help="folder for points and runs")
    parser.add_argument("--data", type=Path, required=True, help="folder with mnist.npz and others")
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--points", type=Path, help="folder with the points, where they are not made in WORK")
    asked = parser.parse_args()
    points_folder = asked.points or asked.work
    for folder in (asked.work, points_folder):
        folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, str] = {}
    for case in asked.only:
        points, run = made_points(case, asked.data, points_folder), asked.work / case
        settings = configuration(case, asked.work / f"{case}.toml")
        for method in METHODS:
            words = ["embed", str(points), str(run), "--method", method, "--config", str(settings)]
            print(f"{case} {method}", file=sys.stderr)
            subprocess.run([*scalemani(), *words], check=True, stdout=subprocess.DEVNULL)
        found |= digests(run)
    json.dump(found, sys.stdout, indent=1, sort_keys=True)
    print()


if __name__ == "__main__":
    main()
