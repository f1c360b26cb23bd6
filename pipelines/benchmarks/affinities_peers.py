"""Time the perplexity calibrations of scikit-learn and openTSNE; affinities.py runs this where they are installed."""

import json
import sys
import time
from importlib.metadata import version

import numpy as np
from openTSNE import _tsne
from sklearn.manifold import _utils

REPEATS = 3


def timed(calibrate, squared_distances):
    """Return the least CPU seconds and the affinities."""
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        affinities = calibrate(squared_distances)
        seconds.append(time.process_time() - start)
    return min(seconds), np.asarray(affinities)


def peer_report(squared_distances, perplexity):
    """Return time and error of each peer, in the units of distance given."""
    # Each is handed what its own pipeline hands it: scikit-learn squared distances in float32, openTSNE distances
    # in float64, which it squares.
    calibrations = {
        "scikit-learn": (
            lambda table: _utils._binary_search_perplexity(table, perplexity, 0),
            squared_distances.astype(np.float32),
        ),
        "openTSNE": (
            lambda table: _tsne.compute_gaussian_perplexity(table, np.array([perplexity]), num_threads=1),
            np.sqrt(squared_distances),
        ),
    }
    report = {}
    for name, (calibrate, table) in calibrations.items():
        seconds, affinities = timed(calibrate, table)
        affinities = affinities / affinities.sum(axis=1, keepdims=True)
        positive = np.where(affinities > 0.0, affinities, 1.0)
        residuals = np.abs(-(positive * np.log(positive)).sum(axis=1) - np.log(perplexity))
        report[name] = {
            "version": version(name),
            "microseconds_per_point": 1e6 * seconds / len(table),
            "max_entropy_error": float(residuals.max()),
            "points_off_by_1e-6": int((residuals > 1e-6).sum()),
        }
    return report


def main():
    path, perplexity, *units = sys.argv[1:]
    squared_distances = np.load(path)
    reports = {unit: peer_report(squared_distances / float(unit) ** 2, float(perplexity)) for unit in units}
    print(json.dumps(reports))


if __name__ == "__main__":
    main()
