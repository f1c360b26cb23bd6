"""Reproductions: the counts of their table, and what small runs of their commands print."""

import os
import re
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.metrics import recall_score
from sklearn.neighbors import KNeighborsClassifier

FOLDER = Path(__file__).parents[2] / "pipelines" / "reproductions"
PAGE = (FOLDER / "README.md").read_text()
WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
WORDS |= {"eleven": 11, "twelve": 12}


def number(word: str) -> int:
    return WORDS[word] if word in WORDS else int(word)


def verdicts() -> Counter[str]:
    """Count figures and tables by the first word of their verdict: a row says how many it holds, or holds one."""
    counts: Counter[str] = Counter()
    for line in PAGE.split("\n## ")[1].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[1] and cells[4] not in ("verdict", "---"):
            held = re.search(r"\((two|three|four)\)$", cells[1])
            counts[re.match(r"\w+", cells[4])[0]] += number(held[1]) if held else 1
    return counts


def run(script: str, *arguments: str | Path) -> str:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, FOLDER / script, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def printed(script: str, *arguments: str | Path) -> dict[str, list[float]]:
    """Run a script and return the first number of each cell of its tables, by the first cell of a row."""
    text = run(script, *arguments)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {
        cells[0]: [float(re.match(r"[-+.\de]+", cell)[0]) for cell in cells[1:]]
        for cells in rows
        if all(re.match(r"-?\d", cell) for cell in cells[1:])
    }


def test_the_counts_are_those_of_the_table():
    said = re.search(
        r"Of (\w+) figures and tables (\w+) agree in what they conclude, (\w+) are restricted, (\w+) (?:is|are) refuted"
        r".*?and (\w+) are missing",
        PAGE,
    )
    total, *counts = map(number, said.groups())
    found = verdicts()
    assert counts == [found["agrees"], found["restricted"], found["refuted"], found["missing"]]
    assert total == sum(counts) == sum(found.values())


def test_landmarks_of_a_spiral_and_of_two_clusters(tmp_path):
    rows = printed("locally_linear.py", tmp_path, "--figures", "4.1", "4.2", "4.4", "--draws", "10")
    band, variation = rows["evenly spaced, learned"]
    assert band > 0.999
    alone = {name: cells for name, cells in rows.items() if name.startswith("evenly spaced, alone")}
    assert len(alone) == 6
    assert all(share < 0.99 or uneven > 10 * variation for share, uneven in alone.values())
    assert rows["5 evenly spaced"][0] > 50
    assert rows["5 evenly spaced"][1] < 0.5
    assert rows["15 evenly spaced"][1] > 0.99
    assert rows["15 evenly spaced"][2] < 0.1 < 1 < rows["5 evenly spaced"][2]
    assert rows["far from the gap"][0] > 0
    assert rows["on both sides of it"][0] == 0
    assert rows["on both sides of it"][1] < 0.01 < 0.1 < rows["far from the gap"][1]
    assert {"spiral-affinities.png", "spiral-few-landmarks.png", "two-clusters.png"} <= {
        path.name for path in tmp_path.iterdir()
    }


def test_landmarks_of_toy_manifolds(tmp_path):
    """Active learning is even, the process of a narrow kernel lies on the curve, random landmarks are uneven."""
    text = run("gp.py", tmp_path, "toys", "--draws", "2", "--steps", "300")
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]
    found = {
        (curve, eta[:3], method): [float(cell.split()[0]) for cell in cells] for curve, eta, method, *cells in table
    }
    for curve in ("circles", "spiral"):
        assert found[curve, "0.1", "active"][0] < 0.4 < found[curve, "0.1", "random"][0]
        assert found[curve, "0.1", "process"][1] < 0.06 < found[curve, "1 o", "process"][1]
        assert (tmp_path / f"{curve}-0.1.png").exists()


def test_errors_and_speeds_over_theta(tmp_path):
    rows = printed("theta.py", tmp_path, "--points", "600", "--runs", "2")
    errors = np.array([rows[theta] for theta in ("0.05", "0.5", "1", "2")])[:, ::2]
    assert (np.diff(errors, axis=0) > 0).all()
    assert (errors[0] < 1e-4).all()
    assert (errors[3] > 0.02).all()


def test_steps_of_k_means_end_where_those_of_scikit_learn_do(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    module = runpy.run_path(str(FOLDER / "segmentation.py"))
    rows = np.random.default_rng(0).normal(size=(400, 3)) + 3 * np.arange(4).repeat(100)[:, np.newaxis]
    start = rows[[0, 5, 210, 399]]
    centers, objectives = module["descended"](rows, start)
    expected = KMeans(4, init=start, n_init=1, tol=0).fit(rows)
    np.testing.assert_allclose(centers, expected.cluster_centers_, atol=1e-6)
    np.testing.assert_allclose(objectives[-1], expected.inertia_ / 400, rtol=1e-6)
    assert (np.diff(objectives) <= 0).all()
    finals = [steps[-1] for _, steps in module["restarted"](rows, 4, 0)]
    assert len(finals) == 20
    assert min(finals) <= objectives[-1] * (1 + 1e-6)


def test_nystrom_from_all_pixels_has_the_eigenvectors_of_scipy(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    module = runpy.run_path(str(FOLDER / "segmentation.py"))
    points = np.random.default_rng(0).normal(size=(90, 3)) + 2 * np.arange(3).repeat(30)[:, np.newaxis]
    rows = np.arange(90)
    affinities = np.concatenate(list(module["with_all"](points, rows, 1.5)))
    np.testing.assert_allclose(affinities, np.exp(cdist(points, points) ** 2 / -4.5))
    values, vectors = scipy.linalg.eigh(affinities, np.diag(affinities.sum(axis=1)))
    assert values[-5] - values[-6] > 1e-3
    expected = np.linalg.qr(vectors[:, -5:-1])[0]
    for form in (np.asarray, sp.csr_matrix):
        whole = form(affinities)
        found = module["by_nystrom"]([whole[:40], whole[40:]], whole, rows, 4)
        kept = expected @ (expected.T @ found.embedding)
        assert np.linalg.norm(found.embedding - kept) < 1e-4 * np.linalg.norm(found.embedding)
        assert found.missing == 0
    columns = np.vstack([affinities, np.zeros((2, 90))])
    assert module["by_nystrom"]([columns], affinities, rows, 4).missing == 2


def test_affinities_within_windows_are_those_of_a_mask(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    module = runpy.run_path(str(FOLDER / "segmentation.py"))
    shape = (3, module["ROWS"], module["COLUMNS"])
    pixels = np.random.default_rng(0).normal(size=(int(np.prod(shape)), 6))
    landmarks = np.ravel_multi_index(([0, 1, 2], [0, 60, 119], [3, 80, 159]), shape)
    found = module["within_windows"](pixels, landmarks, 1.5, 7).toarray()
    frame, row, column = np.indices(shape).reshape(3, -1)
    for values, one in zip(found.T, landmarks, strict=True):
        aside = np.maximum(abs(row - row[one]), abs(column - column[one]))
        near = ((frame == frame[one]) & (aside <= 3)) | ((abs(frame - frame[one]) == 1) & (aside == 0))
        squares = np.square(pixels - pixels[one]).sum(axis=1)
        np.testing.assert_allclose(values, np.where(near, np.exp(squares / -4.5), 0), atol=1e-300)


def test_recalls_of_digits_are_those_of_scikit_learn(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    module = runpy.run_path(str(FOLDER / "locally_linear.py"))
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 500)
    places = rng.normal(size=(500, 2)) + labels[:, np.newaxis]
    nearest = KNeighborsClassifier(1).fit(places, labels).kneighbors(return_distance=False)[:, 0]
    expected = recall_score(labels, labels[nearest], average=None)
    np.testing.assert_allclose(
        module["recalls"](places, labels), [*expected[[0, 1, 6]], np.mean(labels[nearest] == labels)]
    )


def test_descents_from_a_start_keep_the_least_value(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    module = runpy.run_path(str(FOLDER / "starts.py"))
    rng = np.random.default_rng(0)
    weights = sp.random(80, 80, 0.1, random_state=0)
    weights = sp.csr_matrix(
        weights + weights.T + sp.diags_array(np.ones(79), offsets=1) + sp.diags_array(np.ones(79), offsets=-1)
    )
    weights.setdiag(0)
    weights.eliminate_zeros()
    weights /= weights.sum()
    rows = module["AffinityRows"](weights.indptr.astype(np.int64), weights.indices.astype(np.uint32), weights.data)
    start = 0.01 * rng.normal(size=(80, 2))
    squares = cdist(start, start) ** 2
    kernels = np.exp(-squares) - np.eye(80)
    p = weights.toarray()
    expected = (p * squares).sum() + np.log(kernels.sum()) + (p[p > 0] * np.log(p[p > 0])).sum()
    with module["threads"](1) as workspace:
        problem = module["problem_of"](rows, module["objective_of"]("s-sne"), 1.0, workspace.over)
        for direction in module["DIRECTIONS"].values():
            values, iterations = module["descended"](problem, direction, start, 0.0)
            np.testing.assert_allclose(values, expected, rtol=1e-6)
            assert iterations == 0
            values, iterations = module["descended"](problem, direction, start, 0.1)
            assert (np.diff(values) <= 0).all()
            assert values[-1] < 0.9 * expected
            assert iterations > 3


def test_sections_are_run_once_for_the_same_code_and_data(tmp_path, monkeypatch, capsys):
    module = runpy.run_path(str(FOLDER / "run_all.py"))
    script = tmp_path / "script.py"
    script.write_text("import sys; print(sys.argv[1:]); sys.exit(len(sys.argv) > 3)")
    module["SECTIONS"] |= {"quick": f"{script} FOLDER", "broken": f"{script} FOLDER --points many"}
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one.npz").write_bytes(b"one")
    monkeypatch.setenv("SCALEMANI_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(sys, "argv", ["run_all.py", str(tmp_path), "--only", "broken", "quick"])

    def states() -> list[str]:
        assert module["main"]() == 1
        return [line.split("|")[2].strip().split()[0] for line in capsys.readouterr().out.splitlines()[2:]]

    assert states() == ["failed", "ran"]
    for name, arguments in (("quick", []), ("broken", ["--points", "many"])):
        assert (tmp_path / name / "log.txt").read_text().strip() == str([str(tmp_path / name), *arguments])
    assert states() == ["failed", "reused"]
    (tmp_path / "data" / "one.npz").write_bytes(b"two")
    assert states() == ["failed", "ran"]
    module["SECTIONS"]["quick"] += " --other"
    assert states() == ["failed", "ran"]
    assert states() == ["failed", "reused"]


def test_every_script_has_a_section():
    command = [sys.executable, FOLDER / "run_all.py", "-", "--list"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    scripts = {path.name for path in FOLDER.glob("*.py") if "ArgumentParser" in path.read_text()} - {"run_all.py"}
    assert scripts == {line.split(": ")[1].split()[0] for line in listed}
    assert all(" FOLDER" in line for line in listed)
