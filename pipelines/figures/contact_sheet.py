"""The pictures that `scalemani plot` makes, side by side: few points and millions, few classes and many, values.

    python pipelines/figures/contact_sheet.py [OUT.png] [--most 10000000]

Prints the seconds and the peak memory that each takes; the largest is drawn from a file, block by block.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from scalemani.io.figures import checked_look, drawn_embedding

SIDE, ACROSS, GAP = 720, 3, 24
BLOCK = 1_000_000
ELEMENTS = """
hydrogen helium lithium beryllium boron carbon nitrogen oxygen fluorine neon sodium magnesium aluminium silicon
phosphorus sulfur chlorine argon potassium calcium scandium titanium vanadium chromium manganese iron cobalt nickel
copper zinc gallium germanium arsenic selenium bromine krypton rubidium strontium yttrium zirconium niobium molybdenum
technetium ruthenium rhodium palladium silver cadmium indium tin antimony tellurium iodine xenon caesium barium
lanthanum cerium praseodymium neodymium
"""
Made = tuple[np.ndarray, object, dict[str, object]]


def clusters(
    n_classes: int, n_points: int, seed: int, spread: float = 9.0, part: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return points (N, 2) in clusters of several sizes, bent, and the cluster (N,) of each; parts share clusters."""
    draws, of_part = np.random.default_rng(seed), np.random.default_rng([seed, part])
    centres, widths = draws.normal(size=(n_classes, 2)) * spread, draws.uniform(0.4, 1.3, n_classes)
    bends = draws.uniform(-0.7, 0.7, n_classes)
    classes = of_part.integers(0, n_classes, n_points)
    points = of_part.normal(size=(n_points, 2))
    points[:, 1] += bends[classes] * points[:, 0] ** 2
    return (centres[classes] + points * widths[classes, None]).astype(np.float32), classes


def two_classes() -> Made:
    points, classes = clusters(2, 3000, 1, 2.0)
    return points, np.array(["left", "right"])[classes], {"title": "Two classes, 3,000 points"}


def sixty_classes() -> Made:
    points, classes = clusters(60, 70_000, 2)
    return points, np.array(ELEMENTS.split())[classes], {"title": "Sixty classes, named on their clusters"}


def values() -> Made:
    points, _ = clusters(8, 70_000, 3, 4.0)
    distances = np.hypot(*points.T)
    distances[points[:, 0] > 6] = np.nan
    return points, {"distance from the origin": distances}, {"title": "Values; missing ones pale"}


def five_points() -> Made:
    places = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]])
    return places, list("abcde"), {"title": "Five points, named on the map", "legend": "map"}


def panels() -> Made:
    points, classes = clusters(12, 20_000, 4, 6.0)
    columns = {"cluster": classes, "height": points[:, 1]}
    return points, columns, {"title": "Two sets of labels", "size": (SIDE + 180, SIDE)}


def many_points(n_points: int, folder: Path) -> Made:
    file = np.lib.format.open_memmap(folder / "points.npy", "w+", np.float32, (n_points, 2))
    for start in range(0, n_points, BLOCK):
        part = file[start : start + BLOCK]
        part[:] = clusters(25, len(part), 5, part=start)[0]
    file.flush()
    return folder / "points.npy", None, {"title": f"{n_points:,} points by density"}


def drawn(name: str, make: Callable[[], Made]) -> Image.Image:
    """Return a picture, and print what it took."""
    points, labels, look = make()
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    picture, _ = drawn_embedding(points, labels, checked_look(**{"size": (SIDE, SIDE), **look}))
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{name:<16}{seconds:>8.1f} s, peak memory {after / 1024:.0f} MiB ({before / 1024:.0f} before)", flush=True)
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=Path, default=Path(__file__).parent / "contact-sheet.png")
    parser.add_argument("--most", type=int, default=10_000_000, help="points of the largest picture")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        makers = {made.__name__: made for made in (two_classes, sixty_classes, values, five_points, panels)}
        pictures = [drawn(name, make) for name, make in makers.items()]
        pictures.append(drawn("many_points", lambda: many_points(arguments.most, Path(folder))))
    width, height = max(picture.width for picture in pictures), max(picture.height for picture in pictures)
    rows = -(-len(pictures) // ACROSS)
    sheet = Image.new("RGB", (ACROSS * (width + GAP) - GAP, rows * (height + GAP) - GAP), "white")
    for number, picture in enumerate(pictures):
        sheet.paste(picture, (number % ACROSS * (width + GAP), number // ACROSS * (height + GAP)))
    sheet.save(arguments.out, optimize=True)


if __name__ == "__main__":
    main()
