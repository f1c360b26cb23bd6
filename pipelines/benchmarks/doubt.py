"""What the doubt of points says, beside maps minimised anew, known truths and other scores; what it takes.

    python pipelines/benchmarks/doubt.py perplexity WORK_FOLDER [--sets digits cells texts coil]
    python pipelines/benchmarks/doubt.py anew WORK_FOLDER [--points 2000 --moved 300]
    python pipelines/benchmarks/doubt.py truth WORK_FOLDER
    python pipelines/benchmarks/doubt.py seconds WORK_FOLDER --points 70000

"perplexity" ranks t-SNE of four sets over perplexities by one grid each, by `scalemani tune`: the share of points that
could as well lie elsewhere, that of believable ones, kept neighbours, and the accuracy of the nearest point's label.
Standard errors are of the points that are looked at. "anew" moves single points of a map of digits to their other place
and minimises the whole map from there, by SciPy's L-BFGS and an objective of its own, as well as from where they lie:
how far they end from where they began, over the distances of their neighbours, is what perturbation stands for.
"truth" asks of sets whose doubtful points are known how well each score ranks these: points between two Gaussian
clusters, points that a map of a Swiss roll tears from their neighbours along it, and stray points. "seconds" divides
the stage `doubt` of one run by its descent.
"""

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from digits import million_digits
from measuring import scalemani, show
from scipy.optimize import minimize
from scipy.spatial import cKDTree, procrustes
from scipy.stats import spearmanr
from sklearn.datasets import make_swiss_roll
from sklearn.metrics import roc_auc_score

import scalemani as sm

PERPLEXITIES = (5, 10, 20, 30, 50, 100)
SCORES = ("doubt", "believable", "neighbor-preservation", "label-accuracy")
CERTAIN = 2.0  # standard errors that tell a score from the best
N_WRITTEN = 70_000  # digits that were written by hand: more of them are deformed ones
N_DIGITS, N_TEXTS = 6000, 6000
MOVED = 0.1  # of the distances of neighbours: what either measure is below tells how well a descent has ended


def read(name: str) -> Any:
    """Return the arrays of a file of SCALEMANI_DATA."""
    return np.load(Path(os.environ.get("SCALEMANI_DATA", ".")) / name, allow_pickle=False)


def digits() -> tuple[Any, np.ndarray, list[str]]:
    """Return handwritten digits, their labels, and the options of a run."""
    file = read("mnist.npz")
    return file["X"][:N_DIGITS], file["y"][:N_DIGITS], []


def coil() -> tuple[Any, np.ndarray, list[str]]:
    """Return pictures of objects from all sides, and the objects."""
    file = read("coil20.npz")
    return file["X"], file["y"], []


def compressed(name: str) -> tuple[Any, sp.csr_matrix]:
    """Return a file of counts, and these as rows."""
    file = read(name)
    return file, sp.csr_matrix((file["data"], file["indices"], file["indptr"]), file["shape"])


def cells() -> tuple[Any, np.ndarray, list[str]]:
    """Return single cells, as logarithms of counts a cell over their mean, and their clusters."""
    file, counts = compressed("sc_paul15.npz")
    totals = np.asarray(counts.sum(axis=1)).ravel()
    scaled = sp.diags(np.median(totals) / totals) @ counts.astype(np.float64)
    return np.log1p(scaled.toarray()).astype(np.float32), file["y"], []


def texts() -> tuple[Any, np.ndarray, list[str]]:
    """Return words of news, compared by Hellinger's distance, and their groups."""
    _, counts = compressed("news20_counts.npz")
    with read("news20_labels.npz") as labels:
        groups = labels["y"]
    known = np.flatnonzero(np.asarray(counts.sum(axis=1)).ravel() > 0)
    rows = np.sort(np.random.default_rng(0).choice(known, N_TEXTS, replace=False))
    return counts[rows].astype(np.float32), groups[rows], ["--metric", "hellinger"]


SETS: dict[str, Callable[[], tuple[Any, np.ndarray, list[str]]]] = {
    "digits": digits,
    "cells": cells,
    "texts": texts,
    "coil": coil,
}


def saved(folder: Path, name: str) -> tuple[Path, Path, list[str]]:
    """Return the files of a set and of its labels, and the options of a run."""
    folder.mkdir(parents=True, exist_ok=True)
    points, labels, options = SETS[name]()
    path = folder / (f"{name}.npz" if sp.issparse(points) else f"{name}.npy")
    if sp.issparse(points):
        sp.save_npz(path, points)
    else:
        np.save(path, points)
    np.save(folder / f"{name}.labels.npy", labels)
    return path, folder / f"{name}.labels.npy", options


def perplexities(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return a line a perplexity: each score with its standard error, the best and what is not told from it marked."""
    points, labels, options = saved(folder, name)
    run = folder / f"{name}-run"
    lists = f"affinities.perplexity={','.join(map(str, PERPLEXITIES))}"
    scores = [part for score in SCORES for part in ("--score", score)]
    given = ("--method", "t-sne", "--labels", str(labels), "--set", lists)
    scalemani("tune", str(points), str(run), *given, *scores, *options)
    table = json.loads((run / "tuning" / "tuning.json").read_text())
    lines: list[dict[str, Any]] = [{"set": name, "perplexity": one} for one in PERPLEXITIES]
    for score in SCORES:
        found = [cell["scores"][score] for cell in table["cells"]]
        best = (min if score == "doubt" else max)(found, key=lambda one: one["value"])
        for line, one in zip(lines, found, strict=True):
            tied = abs(one["value"] - best["value"]) < CERTAIN * np.hypot(one["error"], best["error"])
            mark = " best" if one is best else " =" if tied else ""
            line[score] = f"{one['value']:.4f} ({one['error']:.4f}){mark}"
    return lines


@numba.njit(fastmath=True)
def divergence(places: np.ndarray, indptr: np.ndarray, indices: np.ndarray, p: np.ndarray) -> tuple[float, np.ndarray]:
    """Return sum p log(1 + |y_i - y_j|^2) + log sum 1 / (1 + |y_i - y_j|^2) of places (N, 2), and its gradient."""
    n_points, value, total = len(places), 0.0, 0.0
    pull, push = np.zeros((n_points, 2)), np.zeros((n_points, 2))
    for i in range(n_points):
        for at in range(indptr[i], indptr[i + 1]):
            x, y = places[i, 0] - places[indices[at], 0], places[i, 1] - places[indices[at], 1]
            near = 1.0 / (1.0 + x * x + y * y)
            value -= p[at] * np.log(near)
            pull[i, 0] += 4.0 * p[at] * near * x
            pull[i, 1] += 4.0 * p[at] * near * y
        for j in range(i):
            x, y = places[i, 0] - places[j, 0], places[i, 1] - places[j, 1]
            near = 1.0 / (1.0 + x * x + y * y)
            total += 2.0 * near
            push[i, 0] += near * near * x
            push[i, 1] += near * near * y
            push[j, 0] -= near * near * x
            push[j, 1] -= near * near * y
    return value + np.log(total), pull - 4.0 * push / total


def minimised(places: np.ndarray, affinities: sp.csr_matrix) -> np.ndarray:
    """Return the minimum (N, 2) of the divergence from affinities of sum one, from places on."""

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = divergence(flat.reshape(-1, 2), affinities.indptr, affinities.indices, affinities.data)
        return value, gradient.ravel()

    options = {"maxiter": 500, "maxfun": 1000, "ftol": 1e-13, "gtol": 1e-8, "maxcor": 20}
    return np.asarray(minimize(objective, places.ravel(), jac=True, method="L-BFGS-B", options=options).x).reshape(
        -1, 2
    )


def anew(folder: Path, n_points: int, n_moved: int) -> list[dict[str, Any]]:
    """Return how perturbation ranks points beside what whole maps say, and how far the two are from each other."""
    model = sm.TSNE(settings={"doubt.null_points": 0}, max_iter=2000, store=folder / f"anew-{n_points}")
    model.fit(read("mnist.npz")["X"][:n_points])
    run = sm.open_run(folder / f"anew-{n_points}")
    affinities = run.affinities.tocsr().astype(np.float64)
    affinities /= affinities.sum()
    settled = minimised(np.asarray(run.embedding[...], np.float64), affinities)
    # The map that is doubted is the minimum itself: a descent that has not ended moves by itself.
    again = sm.TSNE(
        init=settled, settings={"doubt.measured": True, "doubt.null_points": 0}, max_iter=1, store=folder / "settled"
    )
    doubt = again.fit(read("mnist.npz")["X"][:n_points]).doubt_
    base = np.asarray(again.embedding_, np.float64)
    most = np.argsort(-doubt.perturbation)[: n_moved // 3]
    others = np.setdiff1d(np.arange(n_points), most)
    rows = np.concatenate([most, np.random.default_rng(0).choice(others, n_moved - len(most), replace=False)])
    units = cKDTree(base).query(base, 16)[0][:, 1:].mean(axis=1)
    whole = np.empty(len(rows))
    for number, row in enumerate(rows):
        start = base.copy()
        start[row] = doubt.places[row]
        there, here, _ = procrustes(base, minimised(start, affinities))
        scale = np.linalg.norm(base - base.mean(axis=0))
        whole[number] = scale * np.linalg.norm(there[row] - here[row]) / units[row]
    alone = doubt.perturbation[rows]
    far, moved = alone > 2, np.maximum(alone, whole) > MOVED
    return [
        {
            "points": n_points,
            "moved": len(rows),
            "doubtful": int(far.sum()),
            "doubtful that stay away": float(np.mean(whole[far] > 2)) if far.any() else "",
            "others that come back": float(np.mean(whole[~far] <= 2)),
            "rank correlation": float(spearmanr(alone, whole).statistic),
            "that moved": int(moved.sum()),
            "of those": float(spearmanr(alone[moved], whole[moved]).statistic) if moved.sum() > 2 else "",
            "of doubtful ones": float(spearmanr(alone[far], whole[far]).statistic) if far.sum() > 2 else "",
        }
    ]


def between_clusters(draws: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return two Gaussian clusters that overlap, and which points lie about as near to either centre."""
    points = draws.normal(size=(2000, 10))
    points[:, 0] += np.where(np.arange(2000) % 2, 1.75, -1.75)
    log_odds = 2 * 1.75 * points[:, 0]
    return points, np.abs(log_odds) < np.log(9)  # neither cluster has more than nine tenths


def torn_roll(draws: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a Swiss roll, and its coordinates (N, 2) on the sheet; what is torn follows from a map."""
    points, along = make_swiss_roll(2000, random_state=int(draws.integers(2**31)))
    arc = 0.5 * (along * np.sqrt(1 + along**2) + np.arcsinh(along))
    return points, np.column_stack([arc, points[:, 1]])


def stray(draws: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return six clusters with stray points, and which these are."""
    centers = 6 * draws.normal(size=(6, 10))
    inside = centers[np.arange(1800) % 6] + draws.normal(size=(1800, 10))
    strays = np.column_stack([draws.permutation(column)[:200] for column in inside.T])
    return np.concatenate([inside, strays]), np.arange(2000) >= 1800


def truths(repeats: int = 3) -> list[dict[str, Any]]:
    """Return the area under the curve of each score for the points that are doubtful in truth, means over maps."""
    scores = ("perturbation", "singularity", "preservation", "agreement", "spread", "stable")
    lower = {"singularity", "preservation", "agreement", "stable"}  # of which less is more doubtful
    lines = []
    for name, made in (("between two clusters", between_clusters), ("torn roll", torn_roll), ("stray points", stray)):
        areas: dict[str, list[float]] = {score: [] for score in scores}
        shares = []
        for repeat in range(repeats):
            points, truth = made(np.random.default_rng(repeat))
            settings = {"doubt.measured": True, "doubt.null_points": 0, "doubt.halves": 2}
            model = sm.TSNE(settings=settings, random_state=repeat).fit(points)
            if truth.ndim == 2:  # torn: more than a third of the nearest on the sheet lie far off in the map
                near = cKDTree(truth).query(truth, 16)[1][:, 1:]
                away = np.linalg.norm(model.embedding_[near] - model.embedding_[:, np.newaxis], axis=2)
                usual = np.median(away)
                truth = (away > 5 * usual).mean(axis=1) > 1 / 3
            shares.append(truth.mean())
            for score in scores:
                values = getattr(model.doubt_, score)
                signed = -values if score in lower else values
                areas[score].append(roc_auc_score(truth, signed) if 0 < truth.sum() < len(truth) else np.nan)
        lines.append(
            {"set": name, "doubtful in truth": float(np.mean(shares))}
            | {score: f"{np.mean(found):.2f} ({np.std(found):.2f})" for score, found in areas.items()}
        )
    return lines


def seconds(folder: Path, n_points: int) -> dict[str, Any]:
    """Return the seconds of the descent and of the doubt of one map of digits, and their peak memory."""
    folder.mkdir(parents=True, exist_ok=True)
    run = folder / f"doubt-{n_points}"
    if n_points > N_WRITTEN:
        points = million_digits(folder, n_points)
    else:
        points = folder / f"digits-{n_points}.npy"
        np.save(points, read("mnist.npz")["X"][:n_points])
    scalemani("embed", str(points), str(run), "--method", "t-sne", "--set", "doubt.measured=true")
    stages = json.loads(scalemani("info", str(run), "--json").output)["stages"]
    return {
        "points": n_points,
        **{f"{name} s": stages[name]["seconds"] for name in ("layout", "doubt")},
        "ratio": stages["doubt"]["seconds"] / stages["layout"]["seconds"],
        **{f"{name} GB": stages[name]["peak_memory"] / 1e9 for name in ("layout", "doubt")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("perplexity", "anew", "truth", "seconds"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--points", type=int, help="default: 2000 of maps minimised anew, 70000 of seconds")
    parser.add_argument("--moved", type=int, default=300)
    given = parser.parse_args()
    if given.what == "seconds":
        show([seconds(given.folder, given.points or 70_000)])
    elif given.what == "anew":
        show(anew(given.folder, given.points or 2000, given.moved))
    elif given.what == "truth":
        show(truths())
    else:
        show([line for name in given.sets for line in perplexities(given.folder, name)])


if __name__ == "__main__":
    main()
