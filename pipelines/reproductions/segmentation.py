"""Figures 4.3, 4.12, 4.13, 4.15 and 4.16 of the thesis: images and a video segmented by landmarks.

`cameraman`: projection and clustering error over landmarks, of LLL and of Nystrom's formula, against the exact
spectral clustering of 128 x 128 pixels (the mean of every 2 x 2 of the picture), sigma 20, windows of 41 x 41 pixels
(the 1681 of the paper, with the pixel itself), K_Z = K + 1, random landmarks. `house`: Gaussian affinities and an
ensemble of minimum spanning trees. `video`: 41 frames of a walking figure, generated, 963 neighbours a pixel.
`nystrom`: the same video by LLL, and by Nystrom's formula from affinities to all landmarks and to those in windows; the
last two need the landmarks' columns of W alone. `--landmarks` are those of the three in this order, 0 leaves one out.
`warm`: k-means of the embedding of that video (figure 4.3), from random centres and from the centres of the landmarks.

    python pipelines/reproductions/segmentation.py cameraman FOLDER
    python pipelines/reproductions/segmentation.py house FOLDER
    python pipelines/reproductions/segmentation.py house FOLDER --picture boat512 --size 512
    python pipelines/reproductions/segmentation.py video FOLDER --memory 8GB
    python pipelines/reproductions/segmentation.py nystrom FOLDER --memory 8GB --runs 3
    python pipelines/reproductions/segmentation.py nystrom FOLDER --frames 10 --landmarks 1250 750 2500
    python pipelines/reproductions/segmentation.py warm FOLDER --frames 3

Pictures are those of SCALEMANI_DATA/images.npz. `--size`, `--window`, `--landmarks`, `--runs` and `--frames` make runs
smaller.

M. Vladymyrov, Large-Scale Methods for Nonlinear Manifold Learning, thesis 2014, section 4.8.4.
"""

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, lobpcg, splu
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from walking_figure import COLUMNS, ROWS, WalkingFigure

import scalemani as sm
from scalemani.io.figures import label_picture, line_figure
from scalemani.io.figures.charts import new_figure, save_figure
from scalemani.kernels.arrays.draws import sample_rows

RESTARTS = 20
MOST_STEPS, SETTLED, SAME = 300, 1e-6, 1e-3  # of k-means, counted: steps, the fall that ends them, what counts as equal
REACHED = (0.10, 0.01)  # clustering errors, to which the fewest landmarks are looked for
LANDMARKS = (20, 50, 100, 200, 400, 800, 1600, 3200)
VIDEO_METHODS = ("LLL", "Nystrom, all", "Nystrom, windows")  # by affinities with all landmarks, or those in windows
ROWS_AT_ONCE = 4096  # of affinities with all landmarks
ABOVE_ONE = 1e-4  # by which a shift lies above the largest eigenvalue of a normalised affinity matrix
MORE, SOLVED = 3, 1e-6  # eigenvectors of a sparse matrix: more than are needed, to this residual


class Segments(NamedTuple):
    """An embedding (N, K), its clusters (N,), and how many pixels it has no coordinates for."""

    embedding: np.ndarray
    labels: np.ndarray
    missing: int = 0


def picture(name: str, size: int) -> np.ndarray:
    """Return a square picture, averaged and cut to `size` x `size`."""
    with np.load(Path(os.environ["SCALEMANI_DATA"]) / "images.npz", allow_pickle=False) as file:
        pixels = file[name].astype(np.float64)
    step = max(1, len(pixels) // size)
    rows = pixels[: size * step, : size * step].reshape(size, step, size, step)
    return rows.mean(axis=(1, 3)).astype(np.float32)


def clustered(embedding: np.ndarray, landmarks: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the clusters (N,) of unit rows: k-means with restarts on the landmarks, then once from their centres."""
    rows = embedding / np.maximum(np.linalg.norm(embedding, axis=1, keepdims=True), 1e-300)
    centers = KMeans(n_clusters, n_init=RESTARTS, random_state=0).fit(rows[landmarks]).cluster_centers_
    return KMeans(n_clusters, init=centers, n_init=1).fit_predict(rows)


def leading(matrix: np.ndarray | sp.csr_matrix, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues (count,) of a symmetric matrix whose largest is one, ascending, and vectors."""
    if sp.issparse(matrix):  # by blocks, since one is an eigenvalue for every piece of its graph
        solve = splu(sp.csc_matrix((1 + ABOVE_ONE) * sp.eye_array(matrix.shape[0]) - matrix)).solve
        start = np.random.default_rng(0).normal(size=(matrix.shape[0], count + MORE))
        inverse = LinearOperator(matrix.shape, matvec=solve, matmat=solve)
        values, vectors = lobpcg(matrix, start, M=inverse, tol=SOLVED, maxiter=MOST_STEPS)
        order = values.argsort()[-count:]
        return values[order], vectors[:, order]
    return scipy.linalg.eigh(matrix, subset_by_index=(len(matrix) - count, len(matrix) - 1))


def by_nystrom(
    columns: Iterable[np.ndarray | sp.csr_matrix],
    among: np.ndarray | sp.csr_matrix,
    landmarks: np.ndarray,
    n_clusters: int,
) -> Segments:
    """Return the eigenvectors of the affinities among landmarks, carried to all pixels by Nystrom's formula.

    A pixel within no landmark's window has no coordinates: it stays at zero.

    Parameters
    ----------
    columns : (n, L) each, the affinities of all pixels with the landmarks, a block of pixels after another
    among : (L, L), those among landmarks
    landmarks : (L,), numbers of pixels
    """
    roots = sp.diags_array(1 / np.sqrt(np.asarray(among.sum(axis=1)).ravel()))
    values, vectors = (part[..., :-1] for part in leading(roots @ among @ roots, n_clusters + 1))
    carried = roots @ vectors / np.maximum(values, 1e-12)
    places, degrees = [], []
    for block in columns:
        sums = np.asarray(block.sum(axis=1)).ravel()
        # As Laplacian eigenmaps have them: eigenvectors of the random walk, the slowest first.
        places.append((block @ carried)[:, ::-1] / np.where(sums > 0, sums, np.inf)[:, np.newaxis])
        degrees.append(sums)
    embedding, missing = np.concatenate(places), int(np.count_nonzero(np.concatenate(degrees) == 0))
    return Segments(embedding, clustered(embedding, landmarks, n_clusters), missing)


def by_landmarks(image: np.ndarray, options: dict[str, Any], n_landmarks: int, seed: int, n_clusters: int) -> Segments:
    """Return the spectral clustering of an image by locally linear landmarks."""
    settings = {**options["settings"], "landmark_weights.n_neighbors": min(n_clusters + 1, n_landmarks)}
    options = {**options, "settings": settings}
    model = sm.SpectralClustering(n_clusters, **options, solver="lll", n_landmarks=n_landmarks, random_state=seed).fit(
        image
    )
    landmarks = sample_rows(seed, "reproduction", image.size, n_landmarks)
    return Segments(model.embedding_, clustered(model.embedding_, landmarks, n_clusters))


def cameraman(arguments: argparse.Namespace) -> None:
    """Print the errors over landmarks, and draw them and the clusters."""
    image, n_clusters = picture("cameraman256", arguments.size), arguments.clusters
    options = {"affinity": "gaussian", "settings": {**windows(arguments), "affinities.sigma": arguments.sigma}}
    with tempfile.TemporaryDirectory() as store:
        started = time.perf_counter()
        exact = sm.SpectralClustering(n_clusters, **options, solver="exact", n_landmarks=400, store=store).fit(image)
        print(f"exact: {time.perf_counter() - started:.1f} s")
        affinities = sp.csr_matrix(exact.run_.affinities.tocsr() + sp.eye_array(image.size, format="csr"))
    some = np.arange(0, image.size, max(1, image.size // 4000))
    reference = Segments(exact.embedding_, clustered(exact.embedding_, some, n_clusters))
    draw(reference, image, arguments.folder / "cameraman-exact.png")
    rows = {"LLL": [], "Nystrom": []}
    print("| landmarks | method | projection error | clustering error | pixels missing | seconds |")
    print("| --- | --- | --- | --- | --- | --- |")
    for n_landmarks in arguments.landmarks:
        for method, of_method in rows.items():
            draws = []
            for seed in range(arguments.runs):
                started = time.perf_counter()
                if method == "LLL":
                    one = by_landmarks(image, options, n_landmarks, seed, n_clusters)
                else:
                    landmarks = sample_rows(seed, "nystrom", image.size, n_landmarks)
                    columns = affinities[:, landmarks]
                    one = by_nystrom([columns], columns[landmarks].toarray(), landmarks, n_clusters)
                seconds = time.perf_counter() - started
                projection = sm.measures.procrustes_error(one.embedding, reference.embedding)
                error = sm.measures.clustering_error(one.labels, reference.labels)
                draws.append((projection, error, one.missing, seconds))
            of_method.append(np.array(draws))
            (projection, error, missing, seconds), spread = of_method[-1].mean(axis=0), of_method[-1].std(axis=0)
            print(
                f"| {n_landmarks} | {method} | {projection:.3f} ± {spread[0]:.3f} | {error:.3f} ± {spread[1]:.3f} | "
                f"{missing:.0f} | {seconds:.1f} |",
                flush=True,
            )
            if n_landmarks == max(arguments.landmarks):
                draw(one, image, arguments.folder / f"cameraman-{method.lower()}.png")
    report_errors(arguments, rows)


def report_errors(arguments: argparse.Namespace, rows: dict[str, list[np.ndarray]]) -> None:
    """Print how few landmarks reach 10 and 1 %, and draw the errors."""
    for limit, paper in zip(REACHED, ("7 times fewer by LLL", "2.2 times fewer by LLL"), strict=True):
        fewest = {
            method: next(
                (n for n, one in zip(arguments.landmarks, errors, strict=True) if one[:, 1].mean() <= limit), None
            )
            for method, errors in rows.items()
        }
        print(f"{limit:.0%} clustering error from: {fewest}; paper: {paper}")
    for column, name in enumerate(("projection", "clustering")):
        curves = {
            method: (arguments.landmarks, [one[:, column].mean() for one in errors]) for method, errors in rows.items()
        }
        path = arguments.folder / f"cameraman-{name}.png"
        line_figure(curves, path, "landmarks", f"{name} error", log_axes="x")


def windows(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the settings by which the neighbours of a pixel are those of its window."""
    return {"neighbors.method": "window", "neighbors.window": arguments.window}


def draw(segments: Segments, image: np.ndarray, path: Path) -> None:
    """Draw clusters as a picture."""
    label_picture(segments.labels, (1, *image.shape), path)


def house(arguments: argparse.Namespace) -> None:
    """Draw the clusters of Gaussian and of ensemble affinities side by side: two files."""
    image = picture(arguments.picture, arguments.size)
    options = {"n_landmarks": min(arguments.landmarks), "solver": "lll"}
    labels = {}
    for affinity, sigma in (("gaussian", arguments.sigma), ("ensemble", None)):
        started = time.perf_counter()
        settings = {**windows(arguments), "landmark_weights.n_neighbors": 5, "affinities.sigma": sigma}
        model = sm.SpectralClustering(arguments.clusters, **options, affinity=affinity, settings=settings).fit(image)
        labels[affinity] = model.labels_
        sizes = np.bincount(model.labels_).tolist()
        certified = model.certificates_["symmetric_affinities"]
        print(
            f"{affinity}: {time.perf_counter() - started:.1f} s, clusters of {sizes}, {certified['nonzeros']} nonzeros"
        )
        draw(
            Segments(model.embedding_, model.labels_),
            image,
            arguments.folder / f"{arguments.picture[:-3]}-{affinity}.png",
        )
    print(f"they differ in {sm.measures.clustering_error(labels['ensemble'], labels['gaussian']):.1%} of the pixels")


def clustered_video(arguments: argparse.Namespace, seed: int = 0) -> tuple[WalkingFigure, sm.SpectralClustering]:
    """Return the generated video and its spectral clustering by landmarks."""
    data = WalkingFigure(arguments.frames * ROWS * COLUMNS)
    settings = {**windows(arguments), "neighbors.image_rows": ROWS, "neighbors.image_columns": COLUMNS}
    settings |= {"affinities.sigma": arguments.sigma, "landmark_weights.n_neighbors": arguments.clusters + 1}
    model = sm.SpectralClustering(
        arguments.clusters,
        affinity="gaussian",
        solver="lll",
        n_landmarks=arguments.landmarks[0],
        settings=settings,
        store=arguments.folder / "video-run",
        memory=arguments.memory,
        random_state=seed,
    ).fit(data)
    return data, model


def video(arguments: argparse.Namespace) -> None:
    """Segment the generated video; print seconds and memory by stage, and how the clusters agree with what it shows."""
    started = time.perf_counter()
    data, model = clustered_video(arguments)
    print(f"{data.n_points} pixels, {time.perf_counter() - started:.0f} s; paper: 6.8 min for W and 3 min for LLL")
    print("| stage | seconds | GiB |\n| --- | --- | --- |")
    for stage, record in model.run_.records().items():
        print(f"| {stage} | {record['seconds']:.1f} | {record['peak_memory'] / 2**30:.2f} |")
    truth = data.labels(0, data.n_points)
    print(f"normalised mutual information: {sm.measures.normalized_mutual_information(model.labels_, truth):.3f}")
    image = (arguments.frames, ROWS, COLUMNS)
    label_picture(model.labels_, image, arguments.folder / "video-clusters.png")
    label_picture(truth, image, arguments.folder / "video-truth.png")


def with_all(pixels: np.ndarray, landmarks: np.ndarray, sigma: float) -> Iterator[np.ndarray]:
    """Yield the Gaussian affinities (n, L) of blocks of pixels (N, D) with all landmarks (L,)."""
    for start in range(0, len(pixels), ROWS_AT_ONCE):
        squares = cdist(pixels[start : start + ROWS_AT_ONCE], pixels[landmarks], "sqeuclidean")
        yield np.exp(squares / (-2 * sigma**2))


def within_windows(pixels: np.ndarray, landmarks: np.ndarray, sigma: float, window: int) -> sp.csr_matrix:
    """Return the Gaussian affinities (N, L) of pixels with the landmarks whose window they are in, and with themselves.

    A window is a square of the landmark's frame, and its pixel in the frames before and after.
    """
    half = window // 2
    row, column = (part.ravel() for part in np.mgrid[-half : half + 1, -half : half + 1])
    offsets = np.stack([np.append(row, (0, 0)), np.append(column, (0, 0)), np.append(0 * row, (-1, 1))])
    shape = (ROWS, COLUMNS, len(pixels) // (ROWS * COLUMNS))
    parts = []
    for number, landmark in enumerate(landmarks):
        frame, place = divmod(int(landmark), ROWS * COLUMNS)
        near = offsets + np.array([*divmod(place, COLUMNS), frame])[:, np.newaxis]
        near = near[:, ((near >= 0) & (near < np.array(shape)[:, np.newaxis])).all(axis=0)]
        numbers = (near[2] * ROWS + near[0]) * COLUMNS + near[1]
        squares = np.square(pixels[numbers] - pixels[landmark]).sum(axis=1)
        parts.append((numbers, np.full(len(numbers), number), np.exp(squares / (-2 * sigma**2))))
    numbers, of, values = map(np.concatenate, zip(*parts, strict=True))
    return sp.csr_matrix((values, (numbers, of)), (len(pixels), len(landmarks)))


def segments_of(
    method: str, arguments: argparse.Namespace, pixels: np.ndarray, landmarks: np.ndarray, seed: int
) -> Segments:
    """Return the clusters of the generated video (N, 6) by a method of `VIDEO_METHODS`."""
    if method == "LLL":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of eigenvalues close to each other
            embedding = clustered_video(arguments, seed)[1].embedding_
        return Segments(embedding, clustered(embedding, landmarks, arguments.clusters))
    if method == "Nystrom, all":
        among = np.concatenate(list(with_all(pixels[landmarks], np.arange(len(landmarks)), arguments.sigma)))
        columns = with_all(pixels, landmarks, arguments.sigma)
        return by_nystrom(columns, among, landmarks, arguments.clusters)
    columns = within_windows(pixels, landmarks, arguments.sigma, arguments.window)
    return by_nystrom([columns], columns[landmarks], landmarks, arguments.clusters)


def nystrom(arguments: argparse.Namespace) -> None:
    """Print how clusters of the generated video by three methods agree with what it shows, and draw them."""
    data = WalkingFigure(arguments.frames * ROWS * COLUMNS)
    pixels, truth = data.block(0, data.n_points).astype(np.float64), data.labels(0, data.n_points)
    print("| method, landmarks | mutual information | pixels missing | processor seconds |\n" + "| --- " * 4 + "|")
    for method, n_landmarks in zip(VIDEO_METHODS, arguments.landmarks, strict=True):
        if not n_landmarks:
            continue
        draws = []
        for seed in range(arguments.runs):
            started = time.process_time()
            landmarks = sample_rows(seed, "nystrom", len(pixels), n_landmarks)
            one = segments_of(method, arguments, pixels, landmarks, seed)
            spent = time.process_time() - started
            draws.append((sm.measures.normalized_mutual_information(one.labels, truth), one.missing, spent))
            if not seed:
                path = arguments.folder / f"video-{method.lower().replace(', ', '-')}.png"
                label_picture(one.labels, (arguments.frames, ROWS, COLUMNS), path)
        means, spreads = np.mean(draws, axis=0), np.std(draws, axis=0, ddof=min(1, len(draws) - 1))
        cells = [f"{m:.{k}f} ± {s:.{k}f}" for m, s, k in zip(means, spreads, (3, 0, 0), strict=True)]
        print(f"| {method}, {n_landmarks} | " + " | ".join(cells) + " |", flush=True)


def descended(rows: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """Return the centres (K, d) that Lloyd's steps lead to, and the mean squared distance before each step.

    A centre without rows stays where it is. Steps end where no distance falls by more than a millionth.
    """
    squares, objectives = np.einsum("ij,ij->i", rows, rows), []
    while len(objectives) < MOST_STEPS:
        away = squares[:, np.newaxis] - 2 * rows @ centers.T + np.einsum("ij,ij->i", centers, centers)
        labels = away.argmin(axis=1)
        objectives.append(float(away.min(axis=1).mean()))
        if len(objectives) > 1 and objectives[-2] - objectives[-1] <= SETTLED * objectives[-1]:
            break
        members = np.bincount(labels, minlength=len(centers))
        sums = np.stack([np.bincount(labels, column, len(centers)) for column in rows.T], axis=1)
        centers = np.where(members[:, np.newaxis] > 0, sums / np.maximum(members, 1)[:, np.newaxis], centers)
    return centers, objectives


def restarted(rows: np.ndarray, n_clusters: int, seed: int) -> list[tuple[np.ndarray, list[float]]]:
    """Return `descended` from 20 draws of rows."""
    draws = np.random.default_rng(seed)
    return [descended(rows, rows[draws.choice(len(rows), n_clusters, replace=False)]) for _ in range(RESTARTS)]


def warm(arguments: argparse.Namespace) -> None:
    """Print and draw the objective of k-means by its steps, from random centres and from those of landmarks."""
    _, model = clustered_video(arguments)
    rows = model.embedding_ / np.maximum(np.linalg.norm(model.embedding_, axis=1, keepdims=True), 1e-300)
    marks = [time.process_time()]
    cold = restarted(rows, arguments.clusters, 0)
    marks.append(time.process_time())
    results = []
    for seed in range(arguments.runs):
        landmarks = sample_rows(seed, "reproduction", len(rows), min(arguments.landmarks))
        started = time.process_time()
        centers, _ = min(restarted(rows[landmarks], arguments.clusters, seed), key=lambda one: one[1][-1])
        between = time.process_time()
        _, steps = descended(rows, centers)
        results.append((steps[-1], len(steps), between - started, time.process_time() - between))
    finals = np.array([steps[-1] for _, steps in cold])
    best = min(finals.min(), min(one[0] for one in results))
    (final, n_steps, of_landmarks, of_all), spread = np.mean(results, axis=0), np.std(results, axis=0, ddof=1)
    print(
        f"{len(rows)} pixels, {RESTARTS} random starts, {arguments.runs} draws of {min(arguments.landmarks)} landmarks"
    )
    print("| start | objective over the best | steps | seconds of the processor |\n| --- | --- | --- | --- |")
    counts = np.array([len(steps) for _, steps in cold])
    over, seconds = finals / best, marks[1] - marks[0]
    print(
        f"| random | {over.mean():.4f} ± {over.std(ddof=1):.4f} | {counts.mean():.1f} ± {counts.std(ddof=1):.1f} | ",
        end="",
    )
    print(f"{seconds:.2f} for all {RESTARTS} |")
    print(f"| landmarks | {final / best:.4f} ± {spread[0] / best:.4f} | {n_steps:.1f} ± {spread[1]:.1f} | ", end="")
    print(f"{of_landmarks:.2f} ± {spread[2]:.2f} and {of_all:.2f} ± {spread[3]:.2f} |")
    print(f"{np.count_nonzero(over < 1 + SAME)} of {RESTARTS} random starts are within {SAME:g} of the best")
    figure = new_figure(6.4, 4.2)
    axes = figure.add_subplot(xlabel="steps", ylabel="mean squared distance")
    for number, (_, objectives) in enumerate(cold):
        axes.plot(objectives, color="tab:red", linewidth=0.8, label=None if number else "random starts")
    axes.plot(steps, color="tab:green", linewidth=2, label="from landmarks")
    axes.legend(frameon=False)
    save_figure(figure, arguments.folder / "warm-k-means.png")


# Size, window, sigma, clusters and landmarks of each, by default.
CASES = {
    "cameraman": (cameraman, 128, 41, 20.0, 5, LANDMARKS),
    "house": (house, 256, 21, 5.0, 4, (3000,)),
    "video": (video, 0, 31, 15.0, 6, (5000,)),
    "nystrom": (nystrom, 0, 31, 15.0, 6, (5000, 3000, 10_000)),
    "warm": (warm, 0, 31, 15.0, 6, (5000,)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, (function, size, window, sigma, clusters, landmarks) in CASES.items():
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        command.add_argument("folder", type=Path)
        command.add_argument("--size", type=int, default=size, help="rows and columns of the picture")
        command.add_argument("--picture", default="house256", help="of images.npz, for `house`")
        command.add_argument("--window", type=int, default=window)
        command.add_argument("--sigma", type=float, default=sigma)
        command.add_argument("--clusters", type=int, default=clusters)
        command.add_argument("--landmarks", type=int, nargs="+", default=landmarks)
        command.add_argument("--runs", type=int, default=5)
        command.add_argument("--frames", type=int, default=41)
        command.add_argument("--memory", default=None)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    arguments.function(arguments)


if __name__ == "__main__":
    main()
