"""Chapter 2 of the thesis: what entropic affinities look like, their bounds, and orders of the search for bandwidths.

Figures 2.1 and 2.2 (COIL-20 by three bandwidths), 2.3 (seconds of the entropy), 2.4 (entropy over beta and log beta),
2.5 (few neighbours), 2.7 (steps by where a search starts), 2.8, 2.9 and 2.11 (orders, drawn), 2.10 (bounds of theorem
2.2.2), 2.12 (orders by kappa), 2.13 (points by tolerance and steps), 2.14 (beta of an image) and 2.16 (points by steps
and order). Pixels are (row, column, grey) of the picture of 256 x 256, means of 2 x 2.

    python pipelines/reproductions/entropic.py FOLDER
    python pipelines/reproductions/entropic.py FOLDER --figures 2.2 2.7 --side 32

M. Vladymyrov, Large-Scale Methods for Nonlinear Manifold Learning, thesis 2014, chapter 2.
"""

import argparse
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist

import scalemani as sm
from scalemani.io.figures.charts import line_figure, new_figure, save_figure
from scalemani.kernels.affinities.entropy import differences_from_nearest, entropy_and_derivatives

K, OTHERS, FIRST_OBJECTS = 30, 150, 10  # perplexity; neighbours, five times as many; COIL-20's objects of 720 pictures
VIEWS = 72  # of an object, in the order of its turning
COUNTS, TIMED_POINTS, REPEATS = (128, 512, 2048, 8192, 32_768), 100, 30  # neighbours (whole lanes), points, timings
SOLVERS = ("euler", "halley", "newton", "ridder", "brent", "bisection")


def data(name: str) -> Mapping[str, np.ndarray]:
    """Return the arrays of a file of SCALEMANI_DATA."""
    return np.load(Path(os.environ["SCALEMANI_DATA"]) / f"{name}.npz", allow_pickle=False)


def pixels(side: int) -> np.ndarray:
    """Return row, column and grey (N, 3) of the cameraman at side x side."""
    picture = data("images")["cameraman256"].astype(np.float64)
    step = len(picture) // side
    small = picture[: side * step, : side * step].reshape(side, step, side, step).mean(axis=(1, 3))
    return np.column_stack([*(axis.ravel() for axis in np.indices(small.shape)), small.ravel()])


def nearest(points: np.ndarray, n_neighbors: int = OTHERS) -> tuple[np.ndarray, np.ndarray]:
    """Return indices and distances (N, k) of the nearest others."""
    graph = sm.knn_graph(points, n_neighbors=min(n_neighbors, len(points) - 1), method="exact")
    return np.asarray(graph.indices), np.asarray(graph.distances, np.float64)


def table(title: str, columns: tuple[str, ...], rows: Mapping[str, tuple[float, ...]], form: str = "{:.3g}") -> None:
    """Print a table of numbers by row."""
    print(f"\n{title}\n| | " + " | ".join(columns) + " |\n" + "| --- " * (len(columns) + 1) + "|")
    for name, values in rows.items():
        print(f"| {name} | " + " | ".join(form.format(value) for value in values) + " |", flush=True)


def pictures(arrays: Mapping[str, np.ndarray], path: Path) -> None:
    """Draw matrices next to each other."""
    figure = new_figure(3.2 * len(arrays), 3.4)
    for axes, (name, values) in zip(figure.subplots(1, len(arrays), squeeze=False)[0], arrays.items(), strict=True):
        axes.imshow(values, interpolation="nearest")
        axes.set_title(name, fontsize=9)
        axes.axis("off")
    save_figure(figure, path)


def by_bandwidth(distances: np.ndarray, perplexity: float) -> dict[str, np.ndarray]:
    """Return affinities (n, k), each row over its sum, by perplexity, by one sigma, and by the seventh neighbour."""
    entropic = sm.entropic_affinities(distances, perplexity)
    sigma = float(np.mean(1 / np.sqrt(2 * entropic.beta)))
    kinds = {
        "entropic": entropic.values,
        "one sigma": sm.gaussian_affinities(distances, sigma),
        "seventh neighbour": sm.self_tuning_affinities(distances, 7),
    }
    return {name: values / values.sum(axis=1, keepdims=True) for name, values in kinds.items()}


def perplexities(values: np.ndarray) -> np.ndarray:
    """Return the perplexity (n,) of rows that sum to one."""
    return np.exp(-(values * np.log(np.maximum(values, 1e-300))).sum(axis=1))


def coil_matrices(folder: Path, side: int) -> None:
    """Figure 2.2: affinities of all pairs of 144 pictures of two objects, K = 10."""
    points = data("coil20")["X"][: 2 * VIEWS].astype(np.float64) / 255
    away = cdist(points, points)
    order = np.argsort(away, axis=1, kind="stable")[:, 1:]
    angle = np.arange(len(points))
    turn = np.abs(angle[:, np.newaxis] - angle) % VIEWS
    near = (np.minimum(turn, VIEWS - turn) <= 3) & (angle[:, np.newaxis] // VIEWS == angle // VIEWS)
    rows, shown = {}, {}
    for name, values in by_bandwidth(np.take_along_axis(away, order, axis=1), 10).items():
        matrix = np.zeros_like(away)
        np.put_along_axis(matrix, order, values, axis=1)
        of_rows = perplexities(values)
        shown[name] = np.sqrt(matrix)
        rows[name] = (
            of_rows.min(),
            of_rows.max(),
            (matrix * near).sum(axis=1).mean(),
            (matrix * near).sum(axis=1).min(),
        )
    columns = ("least perplexity", "largest", "share within three views, mean", "least")
    table("Figure 2.2: two objects of COIL-20, K = 10", columns, rows)
    pictures(shown, folder / "affinity-matrices.png")


def coil_embeddings(folder: Path, side: int) -> None:
    """Figure 2.1: elastic embeddings of 720 pictures by three bandwidths, K = 20, strength 100."""
    file = data("coil20")
    chosen = file["y"] < FIRST_OBJECTS
    points, labels = file["X"][chosen].astype(np.float64) / 255, file["y"][chosen]
    indices, distances = nearest(points, len(points) - 1)
    figure, rows = new_figure(10, 3.4), {}
    kinds = by_bandwidth(distances, 20)
    for axes, (name, values) in zip(figure.subplots(1, len(kinds)), kinds.items(), strict=True):
        weights = sm.symmetric_affinities(indices, values / len(points))
        settings = {"layout.max_iterations": 300, "layout.repulsion": "exact", "layout.strength": 100.0}
        found = sm.ElasticEmbedding(2, affinity="precomputed", settings=settings, random_state=0).fit(weights)
        of_rows = perplexities(values)
        accuracy = sm.measures.knn_accuracy(found.embedding_, labels, n_neighbors=1)
        rows[name] = (of_rows.min(), np.median(of_rows), of_rows.max(), float(np.asarray(accuracy).flat[0]))
        axes.scatter(*found.embedding_.T, c=labels, s=4, cmap="tab10")
        axes.set_title(name, fontsize=9)
        axes.axis("off")
    save_figure(figure, folder / "coil-bandwidths.png")
    table(
        "Figure 2.1: ten objects of COIL-20, K = 20", ("least perplexity", "median", "largest", "1-NN accuracy"), rows
    )


def entropy_curves(folder: Path, side: int) -> None:
    """Figure 2.4: the entropy of a pixel over beta and over its logarithm, with root and bounds."""
    _, distances = nearest(pixels(side))
    row = distances[len(distances) // 2 + side // 2]
    found = sm.entropic_affinities(row[np.newaxis], K)
    grid = np.logspace(np.log10(found.bounds[0, 0]) - 2, np.log10(found.bounds[0, 1]) + 2, 400)
    shares = np.exp(-np.outer(grid, row**2 - row[0] ** 2))
    shares /= shares.sum(axis=1, keepdims=True)
    curve = np.log(perplexities(shares))
    rows = {"beta": (found.bounds[0, 0], found.beta[0], found.bounds[0, 1])}
    table("Figure 2.4: a pixel, K = 30", ("lower bound", "root", "upper bound"), rows)
    for name, axes in (("linear", ""), ("logarithmic", "x")):
        part = slice(None) if axes else grid < 4 * found.beta[0]
        line_figure(
            {"entropy": (grid[part], curve[part])}, folder / f"entropy-{name}.png", "beta", "nats", log_axes=axes
        )


def seconds_of_entropy(folder: Path, side: int) -> None:
    """Figure 2.3: processor seconds of Z, of a moment, and of the entropy and its derivatives, of 100 digits."""
    digits = data("mnist")["X"][: COUNTS[-1] + TIMED_POINTS].astype(np.float32) / 255
    points, others = digits[:TIMED_POINTS], digits[TIMED_POINTS:]
    squares = np.sort(cdist(points, others, "sqeuclidean"), axis=1)
    parts = ("Z", "first moment", "second moment", "third moment", "compiled, all of them")
    rows = {}
    for count in COUNTS:
        few = squares[:, :count] - squares[:, :1]
        spent = np.array([seconds_of_parts(few) for _ in range(REPEATS + 1)][1:]) * 1e3
        ratios = spent[:, :1] / spent[:, 1:4].mean(axis=1, keepdims=True)
        rows[f"{count}"] = (*np.median(spent, axis=0), float(np.median(ratios)))
        rows[f"{count}, deviation"] = (*spent.std(axis=0, ddof=1), float(ratios.std(ddof=1)))
    table("Figure 2.3: ms of the processor, 100 digits, by neighbours", (*parts, "Z over a moment"), rows)
    medians = np.array([rows[f"{count}"] for count in COUNTS])
    slopes = np.polyfit(np.log(COUNTS[1:]), np.log(medians[1:, : len(parts)]), 1)[0]
    growth = {name: (slope,) for name, slope in zip(parts, slopes, strict=True)}
    table(f"Figure 2.3: exponent of the growth from {COUNTS[1]} neighbours", ("exponent",), growth)
    entropy = medians[:, :2].sum(axis=1)
    curves = {"entropy": entropy, "with H'": entropy + medians[:, 2], "with H' and H''": medians[:, :4].sum(axis=1)}
    shown = {name: (np.array(COUNTS), values) for name, values in {**curves, parts[-1]: medians[:, 4]}.items()}
    line_figure(shown, folder / "entropy-seconds.png", "neighbours", "ms", log_axes="xy")


def seconds_of_parts(squares: np.ndarray) -> list[float]:
    """Return processor seconds of Z and of three moments by NumPy, and of the compiled pass, of squares (n, k)."""
    beta = 1 / squares.mean()
    marks = [time.process_time()]
    shares = np.exp(squares * -beta)
    total = shares.sum(axis=1)
    marks.append(time.process_time())
    for _ in range(3):
        shares *= squares
        moment = shares.sum(axis=1) / total
        marks.append(time.process_time())
    assert np.isfinite(moment).all()
    rows = np.empty_like(squares)
    for row, differences in zip(squares, rows, strict=True):
        differences_from_nearest(row, differences)
    scratch = np.empty(squares.shape[1])
    marks.append(time.process_time())
    for row in rows:
        entropy_and_derivatives(row, scratch, None, beta)
    return [*np.diff(marks[:5]), time.process_time() - marks[5]]


def steps_by_start(folder: Path, side: int) -> None:
    """Figure 2.7: steps from starts all over the bounds, of a pixel (K = 30) and of two far clusters (K = 99)."""
    clusters = np.random.default_rng(0).uniform(size=(200, 2)) + 50 * (np.arange(200) // 100)[:, np.newaxis]
    cases = {
        "pixel": (nearest(pixels(side))[1][len(pixels(side)) // 2], 30),
        "clusters": (nearest(clusters, 199)[1][0], 99),
    }
    for name, (row, perplexity) in cases.items():
        found = sm.entropic_affinities(row[np.newaxis], perplexity)
        starts = np.geomspace(*found.bounds[0], 202)[1:-1]
        # A row of other distances has its root where the search is to start from.
        others = row * np.sqrt(found.beta[0] / starts)[:, np.newaxis]
        both = np.concatenate([others, np.tile(row, (len(starts), 1))])
        order = np.concatenate([np.full(len(starts), -1), np.arange(len(starts))])
        steps = {
            solver: sm.affinities_in_order(both, order, perplexity, solver=solver).iterations[len(starts) :]
            for solver in ("newton", "euler", "halley")
        }
        columns = ("mean steps", "largest", "share of starts with one step", "with at most three")
        rows = {s: (n.mean(), n.max(), (n <= 1).mean(), (n <= 3).mean()) for s, n in steps.items()}
        table(f"Figure 2.7: {name}, K = {perplexity}, starts over the bounds", columns, rows)
        curves = {solver: (starts, counts) for solver, counts in steps.items()}
        line_figure(curves, folder / f"steps-{name}.png", "beta at the start", "steps", log_axes="x")


def bounds_of_points(folder: Path, side: int) -> None:
    """Figure 2.10: bounds and roots of an image (K = 50) and of three clusters of 500 points (K = 10)."""
    rng = np.random.default_rng(0)
    centres, deviations = np.array([[0.0, 0], [12, 0], [0, 14]]), np.repeat([0.5, 1.0, 2.0], 500)[:, np.newaxis]
    clusters = np.repeat(centres, 500, axis=0) + deviations * rng.normal(size=(1500, 2))
    rows = {}
    for name, points, perplexity, others in (("image", pixels(side), 50, 250), ("clusters", clusters, 10, 1499)):
        found = sm.entropic_affinities(nearest(points, others)[1], perplexity)
        usual = ~found.saturated
        lower, upper = found.bounds[usual].T
        beta = found.beta[usual]
        holds, correlations = (lower <= beta) & (beta <= upper), np.corrcoef(np.log([lower, upper, beta]))[2, :2]
        rows[name] = (holds.mean(), *np.median([beta / lower, upper / beta], axis=1), *correlations)
        order = np.argsort(beta)
        curves = {n: (np.arange(len(beta)), v[order]) for n, v in (("lower", lower), ("root", beta), ("upper", upper))}
        line_figure(curves, folder / f"bounds-{name}.png", "points by beta", "beta", log_axes="y")
    columns = (
        "share within",
        "root over lower, median",
        "upper over root",
        "correlation of log root and lower",
        "and upper",
    )
    table("Figure 2.10: bounds of theorem 2.2.2", columns, rows)


def roots_and_orders(points: np.ndarray, side: int | None) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Return distances, beta, and orders over all rows with kappa = K: as the thesis names them."""
    indices, distances = nearest(points)
    beta = sm.entropic_affinities(distances, K).beta
    sequence = np.argsort(beta, kind="stable")
    oracle = np.full(len(beta), -1)
    oracle[sequence[1:]] = sequence[:-1]
    orders = {
        "oracle": oracle,
        **{name: sm.affinity_order(distances, name, indices=indices, kappa=K) for name in ("density", "mst", "path")},
        "bounds": np.full(len(beta), -1),
        "random": sm.affinity_order(distances, "random"),
    }
    if side:
        orders["raster"] = sm.affinity_order(distances, "raster", image_columns=side)
    return distances, beta, orders


def few_neighbors(folder: Path, side: int) -> None:
    """Figure 2.5: log beta by the number of neighbours that the entropy is computed of, against all of them."""
    clusters = np.random.default_rng(0).uniform(size=(100, 2)) + 5 * (np.arange(100) // 50)[:, np.newaxis]
    rows, counts = {}, (2, 3, 5)
    for name, points, perplexity in (("image", pixels(32), 10), ("clusters", clusters, 10)):
        distances = nearest(points, len(points) - 1)[1]
        whole = sm.entropic_affinities(distances, perplexity).beta
        few = [sm.entropic_affinities(distances[:, : n * perplexity], perplexity).beta for n in counts]
        rows[name] = tuple(np.abs(np.log(beta / whole)).max() for beta in few)
    columns = tuple(f"k = {n} K" for n in counts)
    table("Figure 2.5: largest |log beta - log beta of all neighbours|, K = 10", columns, rows)


def drawn_orders(folder: Path, side: int) -> None:
    """Figures 2.8, 2.9 and 2.11: orders of 2,000 points in the plane and of an image, and sigma."""
    points = np.random.default_rng(0).uniform(size=(2000, 2)) ** 2
    indices, distances = nearest(points)
    sigma = 1 / np.sqrt(2 * sm.entropic_affinities(distances, K).beta)
    figure = new_figure(13, 3.6)
    panels = {"mst": 30, "path": 100, "sigma": 0, "distance to the 30th": 0}
    for axes, (name, kappa) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        if kappa:
            order = sm.affinity_order(distances, name, indices=indices, kappa=kappa)
            rows = np.flatnonzero(order >= 0)
            axes.plot(*points[np.stack([rows, order[rows]])].transpose(2, 0, 1), color="0.7", linewidth=0.4)
        axes.scatter(*points.T, c=distances[:, K - 1] if name.startswith("distance") else sigma, s=3)
        axes.set_title(name, fontsize=9)
        axes.axis("off")
    save_figure(figure, folder / "plane-orders.png")
    ranks = np.corrcoef(np.argsort(np.argsort(sigma)), np.argsort(np.argsort(distances[:, K - 1])))[0, 1]
    table("Figures 2.8 and 2.9", ("rank correlation of sigma and the 30th distance",), {"2,000 points": (ranks,)})
    _, _, orders = roots_and_orders(pixels(side), side)
    places = {name: place_in(order).reshape(side, side) for name, order in orders.items() if name != "bounds"}
    pictures(places, folder / "image-orders.png")


def place_in(order: np.ndarray) -> np.ndarray:
    """Return how many rows (n,) lie between each row and the first that it leads back to."""
    places, ancestors = np.zeros(len(order), np.int64), order.copy()
    while (ancestors >= 0).any():
        places += ancestors >= 0
        ancestors = np.where(ancestors >= 0, order[ancestors], -1)
    return places


def orders_by_kappa(folder: Path, side: int) -> None:
    """Figure 2.12: S_beta and S_y of orders over kappa."""
    points = pixels(side)
    indices, distances = nearest(points)
    _, beta, fixed = roots_and_orders(points, side)
    kappas, lengths = (2, 5, 10, 20, 30, 50, 100, 150), {}
    for method in ("mst", "path", "density"):
        orders = [sm.affinity_order(distances, method, indices=indices, kappa=kappa) for kappa in kappas]
        lengths[method] = [sm.order_lengths(order, beta, points) for order in orders]
    for part in ("log_beta", "points"):
        rows = {name: tuple(getattr(one, part) for one in found) for name, found in lengths.items()}
        table(f"Figure 2.12: {'S_beta' if part == 'log_beta' else 'S_y'} over kappa", tuple(map(str, kappas)), rows)
        curves = {name: (np.array(kappas), np.array(values)) for name, values in rows.items()}
        line_figure(curves, folder / f"orders-{part}.png", "kappa", part, log_axes="xy")
    others = {name: tuple(sm.order_lengths(fixed[name], beta, points)) for name in ("oracle", "raster", "random")}
    table("Without kappa", ("S_beta", "S_y"), others)


def points_by_tolerance(folder: Path, side: int) -> None:
    """Figure 2.13: the share of points within a tolerance after some steps, order mst."""
    distances, _, orders = roots_and_orders(pixels(side), side)
    for tol in (1e-3, 1e-6, 1e-10):
        steps = {s: sm.affinities_in_order(distances, orders["mst"], K, solver=s, tol=tol).iterations for s in SOLVERS}
        rows = {solver: tuple((counts <= n).mean() for n in (0, 2, 4, 6, 20)) for solver, counts in steps.items()}
        table(f"Figure 2.13: within {tol:g} after steps", ("0", "2", "4", "6", "20"), rows)


def beta_of_image(folder: Path, side: int) -> None:
    """Figure 2.14: beta of every pixel."""
    points = pixels(side)
    beta = sm.entropic_affinities(nearest(points)[1], K).beta
    shown = {"image": points[:, 2].reshape(side, side), "log beta": np.log(beta).reshape(side, side)}
    pictures(shown, folder / "image-beta.png")
    edges = np.hypot(*np.gradient(shown["image"])).ravel()
    correlation = np.corrcoef(np.argsort(np.argsort(edges)), np.argsort(np.argsort(beta)))[0, 1]
    table("Figure 2.14", ("rank correlation of beta and the gradient of grey",), {"pixels": (correlation,)})


def steps_by_order(folder: Path, side: int) -> None:
    """Figure 2.16: mean steps, and the share of points with at most one to four, by order."""
    digits = data("mnist")["X"][:10_000].astype(np.float32)
    for name, points, columns in (("image", pixels(side), side), ("10,000 digits", digits, None)):
        distances, _, orders = roots_and_orders(points, columns)
        for solver in ("newton", "euler"):
            rows = {}
            for order, parents in orders.items():
                steps = sm.affinities_in_order(distances, parents, K, solver=solver).iterations
                rows[order] = (steps.mean(), *((steps <= n).mean() for n in (1, 2, 3, 4)))
            table(f"Figure 2.16: {name}, {solver}, K = 30", ("mean steps", "1", "2", "3", "4"), rows)


FIGURES: dict[str, Callable[[Path, int], None]] = {
    "2.1": coil_embeddings,
    "2.2": coil_matrices,
    "2.3": seconds_of_entropy,
    "2.4": entropy_curves,
    "2.5": few_neighbors,
    "2.7": steps_by_start,
    "2.8": drawn_orders,
    "2.10": bounds_of_points,
    "2.12": orders_by_kappa,
    "2.13": points_by_tolerance,
    "2.14": beta_of_image,
    "2.16": steps_by_order,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--figures", choices=FIGURES, nargs="+", default=tuple(FIGURES))
    parser.add_argument("--side", type=int, default=128, help="pixels a side of the image")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.figures:
        FIGURES[name](arguments.folder, arguments.side)


if __name__ == "__main__":
    main()
