"""Figures 1, 4(a) and 5, the lower half of table 1 and landmarks as pictures, of Gaussian-process landmarks.

`digits`: accuracy of logistic regression on n landmark features of MNIST, by landmarks of the process, of active
learning among 5,000 digits, and at random. 50,000 digits train, 10,000 choose the regularization, 10,000 test. The
features are those of the paper, with pixels from 0 to 1; landmarks of the process stay in the positive orthant.
Numbers are means over `--draws` with their standard deviations: another seed of the process, another subset for active
learning, other random digits. The standard error of 10,000 tests, 0.2 points at 95 %, is not among them.
`words`: the first landmarks of 20 Newsgroups with their five most probable words, in a vocabulary of 1,545 words: those
in most documents, without scikit-learn's list of stop words, since the paper does not give one, and without words
of more than 19 documents in 100: the paper's first landmark, the mean of all documents, is `good make ve work back`, so
that its vocabulary has no word of more documents than `good`, which is in 18.8 of 100. It has words of two letters.
`pictures`: the first landmarks of the digits and of the objects of COIL-20.
`toys`: 15 landmarks of two circles and of a spiral in the plane, 1,000 points with noise, by the same three choices,
and how evenly they lie along the curve. The paper gives neither shapes nor eta: here the sum of the variances, and a
tenth of it.
`seconds`: of the processor for a landmark by how many there are, of images of 32 x 32 and 64 x 64, which are cut
from the grey pictures of SCALEMANI_DATA at random places, in the place of the faces.

    python pipelines/reproductions/gp.py FOLDER digits
    python pipelines/reproductions/gp.py FOLDER digits --points 5000 --steps 200 --sizes 20 50
    python pipelines/reproductions/gp.py FOLDER words pictures
    python pipelines/reproductions/gp.py FOLDER toys --draws 20
    python pipelines/reproductions/gp.py FOLDER seconds --sizes 5 20 50 --steps 100 --draws 3

D. Liang and J. Paisley, Landmarking manifolds with Gaussian processes, ICML 2015.
"""

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from PIL import Image
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import scalemani as sm
from scalemani.io.figures.charts import line_figure, new_figure, save_figure
from scalemani.methods.gaussian_process.joint import exchanged_landmarks
from scalemani.methods.gaussian_process.kernels import active_landmarks

SIZES, ACTIVE_POINTS = (20, 50, 100, 150, 200), 5000
METHODS = ("active", "random", "process")
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
TRAINING, VALIDATION = 50_000, 60_000  # where the digits of each part end
VOCABULARY, LEAST_LETTERS, TOPICS, SHOWN_WORDS = 1545, 2, 12, 5
MOST_DOCUMENTS = 0.19  # of all, that a word of the vocabulary is in
PICTURES, A_ROW = 16, 8
COIL_SIDE, COIL_COARSER = 128, 4
TOY_POINTS, TOY_LANDMARKS, NOISE, ETA_SHARES = 1000, 15, 0.03, (1.0, 0.1)
TOY_SWEEPS = 5  # over landmarks that are improved jointly
SIDES = (32, 64)  # pixels along a side of the images of PIE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where pictures go")
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--points", type=int, default=TRAINING, help="digits that train, of 50,000")
    parser.add_argument("--steps", type=int, default=1000, help="of the ascent of each landmark")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of landmarks")
    parser.add_argument("--penalties", type=float, nargs="+", default=PENALTIES)
    parser.add_argument("--draws", type=int, default=5, help="of landmarks by each method")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--images", type=int, default=11_554, help="images that landmarks are timed on, those of PIE")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):
        for part in arguments.parts:
            PARTS[part](arguments)


def data(name: str) -> np.lib.npyio.NpzFile:
    path = Path(os.environ.get("SCALEMANI_DATA", ".")) / name
    if not path.exists():
        raise SystemExit(f"set SCALEMANI_DATA to the folder that holds {name}")
    return np.load(path, allow_pickle=False)


def digits(arguments: argparse.Namespace) -> None:
    images, labels = data("mnist.npz")["X"], data("mnist.npz")["y"]
    points = images.astype(np.float32) / 255
    train = points[: arguments.points]
    eta = float(train.var(axis=0, dtype=np.float64).sum())
    parts = (slice(0, arguments.points), slice(TRAINING, VALIDATION), slice(VALIDATION, None))
    results: dict[str, list[list[float]]] = {}
    print(f"eta {eta:.2f}\n| draw | landmarks | " + " | ".join(map(str, arguments.sizes)) + " |", flush=True)
    for seed in range(arguments.seed, arguments.seed + arguments.draws):
        for name, landmarks in digit_landmarks(train, eta, seed, arguments):
            features = sm.landmark_features(points, landmarks, eta)
            results.setdefault(name, []).append([])
            for size in arguments.sizes:
                sets = [(features[part, :size], labels[part]) for part in parts]
                results[name][-1].append(100 * test_accuracy(sets, arguments.penalties))
            print(f"| {seed} | {name} | {' | '.join(f'{value:.2f}' for value in results[name][-1])} |", flush=True)
    print("\n| landmarks | " + " | ".join(map(str, arguments.sizes)) + " |\n| --- |" + " --- |" * len(arguments.sizes))
    for name, accuracies in results.items():
        print(f"| {name} | {' | '.join(map(mean_and_deviation, np.array(accuracies).T))} |", flush=True)


def mean_and_deviation(accuracies: np.ndarray) -> str:
    """Return a cell of the table; one accuracy has no deviation."""
    return f"{accuracies.mean():.2f}" + (f" ± {accuracies.std(ddof=1):.2f}%" if len(accuracies) > 1 else "%")


def digit_landmarks(
    train: np.ndarray, eta: float, seed: int, arguments: argparse.Namespace
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield a draw of landmarks by each method, in an order of which each beginning is a smaller choice."""
    most, draws = max(arguments.sizes), np.random.default_rng(seed)
    subset = train[draws.choice(len(train), min(ACTIVE_POINTS, len(train)), replace=False)]
    random = train[draws.choice(len(train), most, replace=False)]
    for method in arguments.methods:
        if method == "active":
            yield "active, of 5,000", subset[active_landmarks(subset, most, eta)]
        elif method == "random":
            yield "random", random
        else:
            settings = {"landmarks.steps": arguments.steps, "landmarks.projection": "orthant", "landmarks.eta": eta}
            yield "process", sm.select_landmarks(train, most, "gp", seed, settings=settings).points


def test_accuracy(parts: list[tuple[np.ndarray, np.ndarray]], penalties: tuple[float, ...]) -> float:
    """Return the accuracy on the last part by the penalty that does best on the second."""
    (train, train_labels), validation, test = parts
    best = (-1.0, 0.0)
    for penalty in penalties:
        model = LogisticRegression(C=1 / penalty, max_iter=500).fit(train, train_labels)
        best = max(best, (float(model.score(*validation)), float(model.score(*test))))
    return best[1]


def words(arguments: argparse.Namespace) -> None:
    counts, vocabulary = counted_words()
    started = time.perf_counter()
    steps = {"landmarks.steps": arguments.steps}
    model = sm.LandmarkFeatures(TOPICS, geometry="hellinger", settings=steps, random_state=arguments.seed).fit(counts)
    seconds = (time.perf_counter() - started) / TOPICS
    print(f"{counts.shape[0]} documents, {counts.shape[1]} words, {seconds:.1f} s a landmark")
    for number, landmark in enumerate(model.landmarks_, 1):
        print(f"t{number}: " + " ".join(vocabulary[np.argsort(-landmark, kind="stable")[:SHOWN_WORDS]]))


def counted_words() -> tuple[sp.csr_matrix, np.ndarray]:
    """Return counts of the vocabulary in all documents that have a word of it, and the vocabulary."""
    parts, vocabulary = data("news20_counts.npz"), data("news20_labels.npz")["vocab"]
    counts = sp.csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))
    usual = np.array([word.isalpha() and len(word) >= LEAST_LETTERS for word in vocabulary])
    usual &= ~np.isin(vocabulary, sorted(ENGLISH_STOP_WORDS))
    documents = np.bincount(counts.indices, minlength=len(vocabulary))
    usual &= documents <= MOST_DOCUMENTS * counts.shape[0]
    documents = np.where(usual, documents, -1)
    chosen = np.sort(np.argsort(-documents, kind="stable")[:VOCABULARY])
    counts = counts[:, chosen]
    return counts[np.asarray(counts.sum(axis=1)).ravel() > 0], vocabulary[chosen]


def pictures(arguments: argparse.Namespace) -> None:
    images = data("mnist.npz")["X"][: arguments.points].astype(np.float32) / 255
    draw(landmarks_of(images, arguments), 28, arguments.folder / "gp-digits.png")
    side = COIL_SIDE // COIL_COARSER
    objects = data("coil20.npz")["X"].reshape(-1, side, COIL_COARSER, side, COIL_COARSER).mean(axis=(2, 4)) / 255
    draw(landmarks_of(objects.reshape(-1, side * side), arguments), side, arguments.folder / "gp-coil.png")


def landmarks_of(images: np.ndarray, arguments: argparse.Namespace) -> np.ndarray:
    settings = {"landmarks.steps": arguments.steps, "landmarks.projection": "orthant"}
    return sm.select_landmarks(images, PICTURES, "gp", arguments.seed, settings=settings).points


def draw(landmarks: np.ndarray, side: int, path: Path) -> None:
    """Write pictures side by side, each from its darkest to its brightest pixel."""
    tiles = landmarks.reshape(-1, A_ROW, side, side)
    tiles = tiles / tiles.max(axis=(2, 3), keepdims=True)
    table = np.concatenate([np.concatenate(list(row), axis=1) for row in tiles])
    Image.fromarray(np.round(255 * np.clip(table, 0, 1)).astype(np.uint8)).resize(
        (4 * table.shape[1], 4 * table.shape[0]), Image.Resampling.NEAREST
    ).save(path)
    print(f"{path}: {len(landmarks)} landmarks")


def toys(arguments: argparse.Namespace) -> None:
    """Figure 1: landmarks of two circles and of a spiral; how evenly they lie, and how far off the curve."""
    print("| curve | eta | landmarks | deviation of gaps over their mean | distance from the curve | farthest point |")
    print("| --- " * 6 + "|")
    for name, pieces in curves().items():
        for share in ETA_SHARES:
            results: dict[str, list[tuple[float, ...]]] = {}
            for seed in range(arguments.seed, arguments.seed + arguments.draws):
                points = noisy(pieces, seed)
                eta = share * float(points.var(axis=0).sum())
                for method, landmarks in toy_landmarks(points, eta, seed, arguments.steps).items():
                    results.setdefault(method, []).append(evenness(landmarks, pieces, points))
            for method, draws in results.items():
                cells = [f"{np.mean(one):.3f} ± {np.std(one, ddof=1):.3f}" for one in zip(*draws, strict=True)]
                print(f"| {name} | {share:g} of the variances | {method} | {' | '.join(cells)} |", flush=True)
            draw_toys(
                points, toy_landmarks(points, eta, seed, arguments.steps), arguments.folder / f"{name}-{share:g}.png"
            )


def curves() -> dict[str, list[np.ndarray]]:
    """Return curves by name, each in pieces: points (n, 2) evenly spaced along it."""
    turn = np.exp(1j * np.linspace(0, 2 * np.pi, 5001))
    angle = np.linspace(0, 4 * np.pi, 20_001)
    spiral = (0.2 + angle / (4 * np.pi)) * np.exp(1j * angle)
    length = np.concatenate([[0], np.cumsum(np.abs(np.diff(spiral)))])
    even = np.interp(np.linspace(0, length[-1], 5001), length, np.arange(len(spiral)))
    pieces = {"circles": [turn, 2 * turn], "spiral": [spiral[np.round(even).astype(int)]]}
    return {name: [np.column_stack([one.real, one.imag]) for one in parts] for name, parts in pieces.items()}


def lengths(pieces: list[np.ndarray]) -> np.ndarray:
    return np.array([np.linalg.norm(np.diff(one, axis=0), axis=1).sum() for one in pieces])


def noisy(pieces: list[np.ndarray], seed: int) -> np.ndarray:
    """Return points (1000, 2) drawn evenly along the pieces, with noise."""
    draws, shares = np.random.default_rng(seed), lengths(pieces) / lengths(pieces).sum()
    piece = draws.choice(len(pieces), TOY_POINTS, p=shares)
    places = draws.integers(len(pieces[0]), size=TOY_POINTS)
    return np.stack(pieces)[piece, places] + NOISE * draws.normal(size=(TOY_POINTS, 2))


def toy_landmarks(points: np.ndarray, eta: float, seed: int, steps: int) -> dict[str, np.ndarray]:
    """Return 15 landmarks (15, 2) by each method, those of the process and of active learning improved jointly too."""
    draws, settings = np.random.default_rng(seed), {"landmarks.steps": steps, "landmarks.eta": eta}
    jointly = {**settings, "landmarks.sweeps": TOY_SWEEPS}
    active = active_landmarks(points, TOY_LANDMARKS, eta, int(draws.integers(len(points))))
    return {
        "process": sm.select_landmarks(points, TOY_LANDMARKS, "gp", seed, settings=settings).points,
        "process, jointly": sm.select_landmarks(points, TOY_LANDMARKS, "gp", seed, settings=jointly).points,
        "active": points[active],
        "active, jointly": points[exchanged_landmarks(points, active, TOY_SWEEPS, eta)[0]],
        "random": points[draws.choice(len(points), TOY_LANDMARKS, replace=False)],
    }


def evenness(landmarks: np.ndarray, pieces: list[np.ndarray], points: np.ndarray) -> tuple[float, float, float]:
    """Return the deviation of gaps along the curve over their mean, the distance from it, and the farthest point's.

    Gaps are between landmarks that follow each other along a piece; a closed one has that of the last and the first.
    """
    away = np.array([np.linalg.norm(landmarks[:, np.newaxis] - one, axis=2) for one in pieces])
    nearest, off, gaps = away.min(axis=2).argmin(axis=0), away.min(axis=(0, 2)), []
    for number, (piece, length) in enumerate(zip(pieces, lengths(pieces), strict=True)):
        places = np.sort(away[number, nearest == number].argmin(axis=1)) * length / (len(piece) - 1)
        closed = np.allclose(piece[0], piece[-1])
        gaps += list(np.diff(np.append(places, places[:1] + length) if closed else places))
    farthest = np.linalg.norm(points[:, np.newaxis] - landmarks, axis=2).min(axis=1).max()
    return float(np.std(gaps) / np.mean(gaps)), float(off.mean()), float(farthest)


def draw_toys(points: np.ndarray, chosen: dict[str, np.ndarray], path: Path) -> None:
    """Draw the points and the landmarks of each method by their numbers."""
    figure = new_figure(4 * len(chosen), 4)
    for axes, (name, landmarks) in zip(figure.subplots(1, len(chosen)), chosen.items(), strict=True):
        axes.scatter(*points.T, s=2, color="0.7")
        for number, place in enumerate(landmarks, 1):
            axes.annotate(str(number), place, ha="center", va="center", color="red", fontsize=9)
        axes.set_title(name, fontsize=9)
        axes.set_aspect("equal")
    save_figure(figure, path)


def seconds(arguments: argparse.Namespace) -> None:
    """Figure 4(a): processor seconds of a landmark by how many there are before it, for two sizes of image."""
    faces = cut_pictures(arguments.images, arguments.seed)
    found: dict[str, np.ndarray] = {}
    for side in SIDES:
        step = faces.shape[1] // side
        images = faces.reshape(len(faces), side, step, side, step).mean(axis=(2, 4)).reshape(len(faces), -1)
        sm.select_landmarks(images[:2000], 2, "gp", settings={"landmarks.steps": 2})  # compiled
        spent = np.array(
            [[taken(images, n, seed, arguments) for n in arguments.sizes] for seed in range(arguments.draws)]
        )
        found[f"{side} x {side}"] = np.diff(spent, axis=1) / np.diff(arguments.sizes)
    middles = (np.array(arguments.sizes[:-1]) + np.array(arguments.sizes[1:])) / 2
    print("| images, seconds of a landmark after | " + " | ".join(f"{n:g}" for n in middles) + " | last over first |")
    print("| --- " * (len(middles) + 2) + "|")
    for name, of_draws in found.items():
        ratios = of_draws[:, -1] / of_draws[:, 0]
        cells = [f"{a:.3f} ± {b:.3f}" for a, b in zip(of_draws.mean(axis=0), of_draws.std(axis=0, ddof=1), strict=True)]
        print(f"| {name} | {' | '.join(cells)} | {ratios.mean():.2f} ± {ratios.std(ddof=1):.2f} |", flush=True)
    ratios = found[f"{SIDES[1]} x {SIDES[1]}"] / found[f"{SIDES[0]} x {SIDES[0]}"]
    cells = [f"{a:.2f} ± {b:.2f}" for a, b in zip(ratios.mean(axis=0), ratios.std(axis=0, ddof=1), strict=True)]
    print(f"| 64 over 32, ratio | {' | '.join(cells)} | |")
    curves_of = {name: (middles, values.mean(axis=0)) for name, values in found.items()}
    line_figure(curves_of, arguments.folder / "gp-seconds.png", "landmarks before", "seconds of a landmark")


def taken(images: np.ndarray, n_landmarks: int, seed: int, arguments: argparse.Namespace) -> float:
    """Return the processor seconds of so many landmarks of images (N, D)."""
    settings = {"landmarks.steps": arguments.steps, "landmarks.projection": "orthant"}
    started = time.process_time()
    sm.select_landmarks(images, n_landmarks, "gp", seed, settings=settings)
    return time.process_time() - started


def cut_pictures(n_images: int, seed: int) -> np.ndarray:
    """Return images (N, 64, 64) float32 from 0 to 1, cut from the grey pictures at random places."""
    draws, file = np.random.default_rng(seed), data("images.npz")
    grey = [file[name] for name in file.files if file[name].ndim == 2]
    side, cut = SIDES[-1], np.empty((n_images, SIDES[-1], SIDES[-1]), np.float32)
    for number in range(n_images):
        picture = grey[draws.integers(len(grey))]
        row, column = (int(draws.integers(extent - side + 1)) for extent in picture.shape)
        cut[number] = picture[row : row + side, column : column + side] / np.float32(255)
    return cut


PARTS = {"digits": digits, "words": words, "pictures": pictures, "toys": toys, "seconds": seconds}

if __name__ == "__main__":
    main()
