"""The main job on real input, by the Python interface, with the commands that do the same.

python pipelines/quickstart.py [FOLDER] [--n-points N]

20,000 elastically deformed handwritten digits are embedded by Laplacian eigenmaps and, on the same graph, by t-SNE;
FOLDER (default quickstart) gets both, a picture, the certificates and a report. Completed stages are reused.
"""

import argparse
import json
import webbrowser
from pathlib import Path

import numpy as np

import scalemani as sm
from scalemani import datasets

PERPLEXITY = 10


def say(what, *commands):
    """Print what comes next, and the commands that do it."""
    print(f"\n# {what}", *(f"    scalemani {command}" for command in commands), sep="\n", flush=True)


def main():
    """Embed digits twice, and show the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("quickstart"))
    parser.add_argument("--n-points", type=int, default=20_000)
    parser.add_argument("--open", action="store_true", help="show the report in a browser")
    arguments = parser.parse_args()
    folder, n_points = arguments.folder, arguments.n_points
    folder.mkdir(parents=True, exist_ok=True)
    points, labels, run = folder / "digits.npy", folder / "digits.labels.npy", folder / "run"

    say(
        f"{n_points:,} handwritten digits, made from those of scikit-learn",
        f"generate deformed-digits {points} --n-points {n_points}",
    )
    if not points.exists():
        datasets.write(datasets.generator("deformed-digits", n_points), points)

    numbers = f"--set affinities.perplexity={PERPLEXITY}"
    say(
        "Laplacian eigenmaps: eigenvectors of the graph of neighbours",
        f"embed {points} {run} {numbers}",
        f"export {run} {folder}/eigenmaps.npy",
    )
    eigenmaps = sm.LaplacianEigenmaps(perplexity=PERPLEXITY, store=run, verbose=True).fit(str(points))
    np.save(folder / "eigenmaps.npy", eigenmaps.embedding_)

    say(
        "t-SNE, on the same graph, from the eigenmaps",
        f"embed {points} {run} --method t-sne {numbers}",
        f"export {run} {folder}/t-sne.npy",
    )
    t_sne = sm.TSNE(perplexity=PERPLEXITY, store=run, verbose=True).fit(str(points))
    np.save(folder / "t-sne.npy", t_sne.embedding_)

    say("a picture, coloured by the digit that each point shows", f"plot {run} {folder}/digits.png --labels {labels}")
    finished = sm.open_run(run)
    finished.plot(str(labels), path=folder / "digits.png")

    say("how exact the results are, measured", f"info {run} --json")
    described = {"method": finished.method, "params": finished.params.as_dict(), "stages": finished.records()}
    (folder / "certificates.json").write_text(json.dumps(described, indent=1))

    say(
        "one page with the map, the certificates and the settings",
        f"report {run} {folder}/report.html --labels {labels}",
    )
    report = finished.report(folder / "report.html", labels=str(labels))
    print(f"\nopen {report}; the embeddings are in {folder}/eigenmaps.npy and t-sne.npy, a picture in digits.png")
    if arguments.open:
        webbrowser.open(report.resolve().as_uri())


if __name__ == "__main__":
    main()
