"""Repulsion of a million points in 2-D: time and measured error of each method, beside openTSNE's at equal error.

    python pipelines/benchmarks/repulsion.py [--peer-python PYTHON] [--points N] [--threads 1 2] [--function]

The map is a mixture of 200 clusters over an extent of about 160. Errors are of the gradient of S, over 1,000 sampled
points against exact sums, relative in the Frobenius norm. PYTHON is an interpreter of an environment with openTSNE,
whose interpolation points and intervals are swept, so that methods are compared where they err alike; it has Student's
kernel only, and its time for that stands beside our Gaussian too. All settings run once a round, the rounds repeat,
and the least time of each counts: CPU time for one thread, which other work on the machine disturbs little, and time
on the wall for more. Prints tables, then lines of JSON. With `--function`, `sm.repulsion` at its defaults, which
measures its errors, is compared instead: processor time, on as many threads as there are processors.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import measuring
import numpy as np

import scalemani as sm
from scalemani.kernels.arrays.workspace import threads
from scalemani.kernels.machine.control_groups import usable_processors
from scalemani.kernels.repulsion.particle_mesh import ParticleMesh

N_POINTS = 1_000_000
N_CLUSTERS = 200
EXTENT = 160.0
N_SAMPLED = 1000
ROUNDS = 7
KERNELS = ("student", "gaussian")
MESH_TOLERANCES = (1e-1, 1e-2, 4e-3, 1e-3, 1e-4, 1e-5)
PEER_SETTINGS = ((3, 1.0), (3, 0.5), (4, 1.0), (4, 0.5), (5, 1.0), (5, 0.5))
PEER_ROUNDS = 3
CLOCKS = ("process_time", "perf_counter")  # of one thread, of several
TARGETS = (1e-2, 1e-3, 1e-4)
WANTED_RATIO, WANTED_AT = 10.0, 1e-3


def map_of_clusters(n_points, seed=0):
    """Return points as t-SNE leaves them: clusters of many sizes and widths, some of them drawn out."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-0.44 * EXTENT, 0.44 * EXTENT, (N_CLUSTERS, 2))
    widths = rng.uniform(0.6, 4.0, (N_CLUSTERS, 2))
    sizes = rng.dirichlet(np.full(N_CLUSTERS, 1.5))
    own = rng.choice(N_CLUSTERS, n_points, p=sizes)
    points = centres[own] + widths[own] * rng.normal(size=(n_points, 2))
    return points * (EXTENT / np.ptp(points, axis=0).max())


def exact_gradients(kernel, points, rows):
    """Return the gradient of S at some of the points."""
    gradients = np.empty((len(rows), 2))
    for place, row in enumerate(rows):
        offsets = points[row] - points
        squares = np.einsum("ij,ij->i", offsets, offsets)
        slopes = 1.0 / (1.0 + squares) ** 2 if kernel == "student" else np.exp(-squares)
        gradients[place] = -2.0 * slopes @ offsets
    return gradients


def error_of(gradients, exact):
    return float(np.linalg.norm(gradients - exact) / np.linalg.norm(exact))


class Methods:
    """Our methods: name, kernel and setting, with a function from points to S and its gradient."""

    def __init__(self, over):
        self.runs = {
            ("grid", kernel, f"tolerance {tolerance:g}"): ParticleMesh(kernel, tolerance, over).field
            for kernel in KERNELS
            for tolerance in MESH_TOLERANCES
        }


class Peer:
    """openTSNE in an environment of its own, with a number of threads."""

    def __init__(self, python, points_file, n_threads, clock):
        script = Path(__file__).with_name("repulsion_peers.py")
        environment = {**os.environ, **{name: str(n_threads) for name in measuring.THREAD_VARIABLES}}
        if python != sys.executable:
            environment.pop("PYTHONPATH", None)
        self._process = subprocess.Popen(
            [python, str(script), str(points_file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._clock = clock
        self.version = json.loads(self._process.stdout.readline())["openTSNE"]

    def run(self, setting, rows):
        """Return milliseconds, and the gradients at some rows."""
        request = {"n_interpolation_points": setting[0], "ints_in_interval": setting[1], "rows": rows}
        request["clock"] = self._clock
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return answer["milliseconds"], np.array(answer["gradients"])

    def close(self):
        """End the process."""
        self._process.stdin.close()
        self._process.wait()


def measure(points, rows, exact, n_threads, peer):
    """Return rows of the report: every setting of ours and of the peer, in rounds."""
    least, errors, clock = {}, {}, getattr(time, CLOCKS[n_threads > 1])

    def note(key, milliseconds, gradients):
        least[key] = min(least.get(key, np.inf), milliseconds)
        errors[key] = error_of(gradients, exact[key[1]])

    with ExitStack() as stack:
        over = map
        if n_threads > 1:
            over = stack.enter_context(threads(n_threads)).over
        runs = Methods(over).runs
        for run in runs.values():
            run(points)
        for number in range(ROUNDS):
            for key, run in runs.items():
                start = clock()
                gradients = run(points)[1]
                note(key, 1e3 * (clock() - start), gradients[rows])
            for setting in PEER_SETTINGS if peer and number < PEER_ROUNDS else ():
                name = f"{setting[0]} points, interval {setting[1]:g}"
                note(("openTSNE", "student", name), *peer.run(setting, rows.tolist()))
    return [
        {"method": m, "kernel": k, "setting": s, "threads": n_threads, "ms": least[m, k, s], "error": errors[m, k, s]}
        for m, k, s in least
    ]


def measure_function(points, rows, exact, n_threads, peer):
    """Return rows of the report: `sm.repulsion` at its defaults and the peer in turn, processor milliseconds."""
    least, errors = {}, {}

    def note(key, milliseconds, gradients):
        least[key] = min(least.get(key, np.inf), milliseconds)
        errors[key] = error_of(gradients, exact["student"])

    sm.repulsion(points)  # compiles
    for _ in range(PEER_ROUNDS):
        start = time.process_time()
        gradients = sm.repulsion(points)[1]
        note(("sm.repulsion", "defaults, errors measured"), 1e3 * (time.process_time() - start), gradients[rows])
        for setting in PEER_SETTINGS if peer else ():
            name = f"{setting[0]} points, interval {setting[1]:g}"
            note(("openTSNE", name), *peer.run(setting, rows.tolist()))
    return [
        {"method": method, "setting": setting, "threads": n_threads, "processor ms": least[method, setting],
         "error": errors[method, setting]}
        for method, setting in least
    ]  # fmt: skip


def at_equal_error(rows, n_threads):
    """Return, for each kernel and error, the quickest of ours and of openTSNE that err no more."""
    table = []
    for kernel in KERNELS:
        for target in TARGETS:
            ours = [r for r in rows if r["method"] != "openTSNE" and r["kernel"] == kernel and r["error"] <= target]
            peers = [r for r in rows if r["method"] == "openTSNE" and r["error"] <= target]
            if not ours or not peers:
                continue
            best, other = (min(some, key=lambda r: r["ms"]) for some in (ours, peers))
            table.append(
                {
                    "kernel": kernel,
                    "error at most": target,
                    "threads": n_threads,
                    "method": f"{best['method']}, {best['setting']}",
                    "ms": best["ms"],
                    "error": best["error"],
                    "openTSNE (Student)": other["setting"],
                    "its ms": other["ms"],
                    "its error": other["error"],
                    "ratio": other["ms"] / best["ms"],
                }
            )
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", help="interpreter of an environment with openTSNE")
    parser.add_argument("--points", type=int, default=N_POINTS)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--function", action="store_true", help="compare sm.repulsion, on all processors")
    arguments = parser.parse_args()

    points = map_of_clusters(arguments.points)
    rows = np.random.default_rng(1).choice(len(points), N_SAMPLED, replace=False)
    exact = {kernel: exact_gradients(kernel, points, rows) for kernel in KERNELS}
    comparison = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "points.npy"
        np.save(file, points)
        for n_threads in [usable_processors()] if arguments.function else arguments.threads:
            clock = "process_time" if arguments.function else CLOCKS[n_threads > 1]
            peer = Peer(arguments.peer_python, file, n_threads, clock) if arguments.peer_python else None
            if arguments.function:
                report = measure_function(points, rows, exact, n_threads, peer)
            else:
                report = measure(points, rows, exact, n_threads, peer)
                comparison += at_equal_error(report, n_threads)
            measuring.show(report)
            if peer:
                peer.close()
                print(f"openTSNE {peer.version}, {n_threads} threads\n")
    if comparison:
        measuring.show(comparison)
        wanted = [r for r in comparison if r["error at most"] == WANTED_AT]
        met = bool(wanted) and all(r["ratio"] >= WANTED_RATIO for r in wanted)
        print(f"at an error of {WANTED_AT:g}: {WANTED_RATIO:g} times openTSNE {'met' if met else 'MISSED'}")


if __name__ == "__main__":
    main()
