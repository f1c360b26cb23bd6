"""openTSNE's interpolated repulsion, on request: repulsion.py starts this where openTSNE is installed.

    python repulsion_peers.py POINTS.npy

Reads a line of JSON a run from standard input, {"n_interpolation_points", "ints_in_interval", "clock", "rows"}, and
answers with one: milliseconds, and the gradients of S = sum 1 / (1 + d^2) at those rows.
"""

import json
import sys
import time
from importlib.metadata import version

import numpy as np
from openTSNE import _tsne

LEAST_INTERVALS = 50  # the default of openTSNE


def main():
    points = np.load(sys.argv[1])
    print(json.dumps({"openTSNE": version("openTSNE")}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        gradient = np.zeros_like(points)
        clock = getattr(time, request["clock"])
        start = clock()
        normaliser = _tsne.estimate_negative_gradient_fft_2d(
            points, gradient, request["n_interpolation_points"], LEAST_INTERVALS, request["ints_in_interval"], 1.0
        )
        seconds = clock() - start
        # What it writes is sum (y - x) / (1 + d^2)^2 over the normaliser: half of grad S, up to sign.
        sampled = 2.0 * normaliser * gradient[request["rows"]]
        print(json.dumps({"milliseconds": 1e3 * seconds, "gradients": sampled.tolist()}), flush=True)


if __name__ == "__main__":
    main()
