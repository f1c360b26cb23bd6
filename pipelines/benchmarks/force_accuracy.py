"""How far approximate forces err on 20 maps that no rule of theirs was measured on, beside what was requested of them.

    python pipelines/benchmarks/force_accuracy.py

For each map, kernel, method and tolerance: the relative error of all gradients, and that which nine in ten single
gradients do not exceed, each relative to its own norm (or to 1e-3 where that is less), over all points against exact
sums. Requested are the tolerance and ten times the tolerance. An error beyond it is either told by a warning ("told")
or silent ("SILENT"); the last line counts both, and the status is 1 where any was silent.
"""

import sys
import time
import warnings

import numpy as np

import scalemani as sm
from scalemani.errors import ScalemaniError, ShortfallWarning

TOLERANCES = (1e-1, 1e-2, 1e-3)
METHODS = {"student": ("grid", "barnes-hut", "auto"), "gaussian": ("grid", "barnes-hut", "fgt", "auto")}
LEAST_FORCE, SINGLE_POINTS = 1e-3, 10


def maps():
    """Return the maps by name, 2,500 to 6,000 points each."""
    draws = np.random.default_rng(3)
    normal, uniform = draws.normal, draws.uniform
    angles = np.linspace(0, 2 * np.pi, 4000, endpoint=False)
    axis, cube = np.arange(64.0), np.arange(15.0)
    along = uniform(0, 200, (4000, 1))
    centers = normal(0, 30, (20, 2))[draws.integers(20, size=6000)]
    return {
        "dense cluster, isolated points": np.r_[normal(0, 0.01, (3000, 2)), uniform(-100, 100, (40, 2))],
        "the same in space": np.r_[normal(0, 0.01, (3000, 3)), uniform(-20, 20, (40, 3))],
        "300 tight clusters": np.repeat(uniform(-150, 150, (300, 2)), 20, axis=0) + normal(0, 3e-3, (6000, 2)),
        "100 tight clusters in space": np.repeat(uniform(-20, 20, (100, 3)), 40, axis=0) + normal(0, 3e-3, (4000, 3)),
        "isolated points": uniform(-300, 300, (4000, 2)),
        "wide clusters, isolated points": np.r_[
            np.repeat(uniform(-20, 20, (20, 2)), 150, axis=0) + normal(0, 1, (3000, 2)), uniform(-150, 150, (600, 2))
        ],
        "clusters of many widths": centers + normal(0, 1, (6000, 2)) * uniform(1, 4, (6000, 1)),
        "normal": normal(0, 5, (4000, 2)),
        "normal, wide": normal(0, 30, (4000, 2)),
        "normal in space": normal(0, 5, (4000, 3)),
        "normal, on a line (d = 1)": normal(0, 5, (4000, 1)),
        "tiny": normal(0, 1e-4, (4000, 2)),
        "two scales 1e6 apart": np.r_[normal(0, 1e-4, (2000, 2)), normal(0, 100, (2000, 2))],
        "far from the origin": 1e6 + normal(0, 5, (4000, 2)),
        "one far outlier": np.r_[normal(0, 5, (4000, 2)), [[1e4, 1e4]]],
        "duplicates": np.repeat(normal(0, 20, (400, 2)), 10, axis=0),
        "ring of equal distances": 50 * np.c_[np.cos(angles), np.sin(angles)],
        "lattice": np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2),
        "lattice in space": np.stack(np.meshgrid(cube, cube, cube), axis=-1).reshape(-1, 3),
        "diagonal line": along * [1.0, 1.0],
    }


def errors_of(gradient, exact):
    """Return the relative error of the whole, and that which nine in ten points do not exceed."""
    errors, lengths = np.linalg.norm(gradient - exact, axis=1), np.linalg.norm(exact, axis=1)
    whole = np.linalg.norm(errors) / max(np.linalg.norm(lengths), LEAST_FORCE)
    return whole, np.quantile(errors / np.maximum(lengths, LEAST_FORCE), 0.9)


def measured(positions, kernel, method, tolerance, exact):
    """Return one cell of the table, and whether what was requested holds, was told of, was refused, or is SILENT."""
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            gradient = sm.repulsion(positions, kernel, method, tolerance)[1]
        except ScalemaniError as error:
            return f"{type(error).__name__}", "refused"
    seconds = time.perf_counter() - started
    whole, single = errors_of(gradient, exact)
    holds = whole <= tolerance and single <= SINGLE_POINTS * tolerance
    is_told = any(issubclass(warning.category, ShortfallWarning) for warning in given)
    state = "told" if is_told else "holds" if holds else "SILENT"
    return f"{whole:.1e} {single:.1e} {seconds:.2f} s{'' if state == 'holds' else ' ' + state}", state


def main():
    counts = dict.fromkeys(("holds", "told", "refused", "SILENT"), 0)
    print("| map | kernel | method |", " | ".join(f"{tolerance:g}" for tolerance in TOLERANCES), "|")
    print("| --- | --- | --- |", " | ".join(["---"] * len(TOLERANCES)), "|")
    for name, positions in maps().items():
        for kernel, methods in METHODS.items():
            exact = sm.repulsion(positions, kernel, "exact")[1]
            for method in methods:
                cells = []
                for tolerance in TOLERANCES:
                    cell, state = measured(positions, kernel, method, tolerance, exact)
                    counts[state] += 1
                    cells.append(cell)
                print(f"| {name} | {kernel} | {method} |", " | ".join(cells), "|", flush=True)
    print(", ".join(f"{state}: {count}" for state, count in counts.items()))
    return int(counts["SILENT"] > 0)


if __name__ == "__main__":
    sys.exit(main())
