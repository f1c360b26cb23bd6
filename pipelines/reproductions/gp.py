"""Figure 5, the lower half of table 1 and landmarks as pictures of the paper on Gaussian-process landmarks.

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

    python pipelines/reproductions/gp.py FOLDER digits
    python pipelines/reproductions/gp.py FOLDER digits --points 5000 --steps 200 --sizes 20 50
    python pipelines/reproductions/gp.py FOLDER words pictures

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
from scalemani.methods.gaussian_process.kernels import active_landmarks

SIZES, ACTIVE_POINTS = (20, 50, 100, 150, 200), 5000
METHODS = ("active", "random", "process")
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
TRAINING, VALIDATION = 50_000, 60_000  # where the digits of each part end
VOCABULARY, LEAST_LETTERS, TOPICS, SHOWN_WORDS = 1545, 2, 12, 5
MOST_DOCUMENTS = 0.19  # of all, that a word of the vocabulary is in
PICTURES, A_ROW = 16, 8
COIL_SIDE, COIL_COARSER = 128, 4


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


PARTS = {"digits": digits, "words": words, "pictures": pictures}

if __name__ == "__main__":
    main()
