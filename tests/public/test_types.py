"""What type checkers see of `import scalemani`: the program of a user, checked by mypy and by pyright."""

import ast
import importlib.resources
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import scalemani as sm

ROOT = Path(__file__).parents[2]
PROGRAM = """
from pathlib import Path

import numpy as np

import scalemani as sm



def blunted(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.minimum(np.abs(one - other), 1.0).sum())


def of_one_row(row: np.ndarray) -> float:
    return float(row.sum())


points = np.zeros((100, 5))
model = sm.TSNE(2, perplexity=10, metric="cosine", init=points[:, :2], learning_rate="auto", verbose=True)
reveal_type(model)  # TSNE
reveal_type(model.fit(points))  # TSNE
reveal_type(model.fit_transform(points))  # ndarray
reveal_type(model.transform(points))  # ndarray
reveal_type(model.embedding_)  # ndarray
reveal_type(model.kl_divergence_)  # float
reveal_type(model.curve_.objective)  # ndarray
reveal_type(model.get_params())  # dict
reveal_type(model.set_params(perplexity=5))  # TSNE
reveal_type(model.plot(labels=points[:, 0], theme="dark"))  # Image
reveal_type(model.plot(path="map.png"))  # Path
reveal_type(sm.SNE(init="start.npy", random_state=np.random.default_rng(0)))  # SNE
reveal_type(sm.SymmetricSNE(settings={"layout.converged": 0}))  # SymmetricSNE
reveal_type(sm.ElasticEmbedding(affinity="self-tuning"))  # ElasticEmbedding
reveal_type(sm.StudentElasticEmbedding(store=Path("run")))  # StudentElasticEmbedding
reveal_type(sm.EpanechnikovElasticEmbedding(callbacks=print))  # EpanechnikovElasticEmbedding
reveal_type(sm.LaplacianEigenmaps(landmarks=[1, 5, 7], solver="lll+refine"))  # LaplacianEigenmaps
reveal_type(sm.LaplacianEigenmaps(landmarks=points).fit(points).eigenvalues_)  # ndarray
reveal_type(sm.SpectralClustering(3, landmarks="kmeans++").fit_predict(points))  # ndarray
reveal_type(sm.DiffusionMaps(alpha=0.5).fit(points))  # DiffusionMaps
reveal_type(sm.LandmarkPCA(3, n_landmarks=50))  # LandmarkPCA
reveal_type(sm.LandmarkLDA().fit(points, points[:, 0]))  # LandmarkLDA
reveal_type(sm.LandmarkFeatures(10).fit(points))  # LandmarkFeatures
reveal_type(sm.KNeighborsTransformer(5, mode="connectivity").fit(points))  # KNeighborsTransformer
graph = sm.knn_graph(points, 5, method="exact", metric="l2")
reveal_type(graph)  # KnnGraph
reveal_type(sm.TSNE(metric="minkowski:3"))  # TSNE
reveal_type(sm.SpectralClustering(3, metric=blunted))  # SpectralClustering
reveal_type(sm.knn_graph(points, metric=blunted))  # KnnGraph
reveal_type(sm.KNeighborsTransformer(metric="canberra"))  # KNeighborsTransformer
reveal_type(graph.indices)  # RowArray
reveal_type(graph.recall)  # float
run = sm.open_run("run")
reveal_type(run)  # ReportedRun
reveal_type(run.embedding)  # RowArray
reveal_type(run.embedding[:10])  # ndarray
reveal_type(run.graph)  # KnnGraph
reveal_type(run.graph.indices)  # RowArray
reveal_type(run.affinities)  # RowMatrix
reveal_type(run.labels)  # RowArray
reveal_type(run.plot())  # Image
reveal_type(model.run_)  # ReportedRun
reveal_type(sm.__version__)  # str
reveal_type(sm.measures.recall(graph, points).value)  # float
reveal_type(sm.select_landmarks(points, 10, "gp-active"))  # Landmarks
reveal_type(sm.append(run, points).appended)  # int
reveal_type(sm.tune(model, {"perplexity": [5, 10]}, points).best_score_)  # float

sm.TSNE(n_iter=5)  # wrong: "n_iter"
sm.TSNE(perplexity="ten")  # wrong: "perplexity"
sm.SNE(max_iter=2.5)  # wrong: "max_iter"
sm.SymmetricSNE(affinity="entropc")  # wrong: "affinity"
sm.ElasticEmbedding(metric="euclid")  # wrong: "metric"
sm.TSNE(metric="minkovski:3")  # wrong: "metric"
sm.knn_graph(points, metric=of_one_row)  # wrong: "metric"
sm.measures.recall(graph, points, metric="canberra")  # wrong: "metric"
sm.LaplacianEigenmaps(solver="lll-refine")  # wrong: "solver"
sm.LaplacianEigenmaps(landmarks="kmean")  # wrong: "landmarks"
sm.DiffusionMaps(2, 30)  # wrong: positional
sm.knn_graph(points, method="hnsw")  # wrong: "method"
sm.select_landmarks(points, 10, metric="precomputed")  # wrong: "metric"
model.embeding_  # wrong: "embeding_"
sm.Tsne()  # wrong: "Tsne"
number: int = model.plot()  # wrong: "Image"
"""


def messages_of_mypy(folder: Path) -> list[tuple[int, str, str]]:
    """Return line, severity and text of what mypy says; a cache of its own does not know of other environments."""
    options = ["--config-file", "pyproject.toml", "--cache-dir", str(folder / "cache"), "--no-error-summary"]
    command = [sys.executable, "-m", "mypy", *options, str(folder / "program.py")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.stderr == ""
    found = re.findall(r"program\.py:(\d+): (\w+): (.*)$", ended.stdout, re.MULTILINE)
    return [(int(number), severity, text) for number, severity, text in found]


def messages_of_pyright(folder: Path) -> list[tuple[int, str, str]]:
    """Return line, severity and text of what pyright says, by its build that is a package of Python."""
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("basedpyright is not installed: .ci/run installs it")
    options = {"typeCheckingMode": "standard", "include": ["program.py"], "extraPaths": [str(ROOT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(options))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--project", str(folder)]
    ended = subprocess.run([*command, "--pythonpath", sys.executable], capture_output=True, text=True)
    found = json.loads(ended.stdout)["generalDiagnostics"]
    return [(one["range"]["start"]["line"] + 1, one["severity"], one["message"]) for one in found]


@pytest.fixture(scope="module", params=[messages_of_mypy, messages_of_pyright])
def messages(request, tmp_path_factory):
    """What a checker says of each line of the program, by line and by severity."""
    folder = tmp_path_factory.mktemp("types")
    (folder / "program.py").write_text(PROGRAM)
    found: dict[int, dict[str, str]] = {}
    for number, severity, text in request.param(folder):
        told = found.setdefault(number, {})
        told[severity] = f"{told.get(severity, '')} {text}".strip()
    return found


def lines_with(mark: str) -> dict[int, str]:
    numbered = enumerate(PROGRAM.split("\n"), 1)
    return {number: line.partition("  # ")[2].removeprefix("wrong: ") for number, line in numbered if mark in line}


def test_wrong_calls_are_told_and_right_ones_are_not(messages):
    errors = {number: told["error"] for number, told in messages.items() if "error" in told}
    wrong = lines_with("# wrong")
    assert len(wrong) >= 10
    assert errors.keys() == wrong.keys()
    assert {number: words for number, words in wrong.items() if not re.search(words, errors[number])} == {}


def test_results_have_types(messages):
    """mypy says `Revealed type is "X"` in a note, pyright `Type of "..." is "X"` as information."""
    told = {number: one.get("note", one.get("information", "")) for number, one in messages.items()}
    revealed = {
        number: found[1] for number, text in told.items() if (found := re.search(r'(?:type|") is "(.*)"$', text))
    }
    expected = lines_with("reveal_type")
    assert revealed.keys() == expected.keys()
    assert {
        number: revealed[number] for number, name in expected.items() if not re.search(rf"\b{name}\b", revealed[number])
    } == {}
    assert [
        text for text in revealed.values() if re.search(r"^(Any|Unknown)$|(Any|Unknown) \||\| (Any|Unknown)\b", text)
    ] == []


def test_checkers_are_told_that_there_are_types_and_which_names_are_public():
    """A name of an installed package is public where it is imported as itself."""
    package = importlib.resources.files("scalemani")
    assert (package / "py.typed").is_file()
    tree = ast.parse((package / "__init__.py").read_text())
    checked = next(node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    names = [name for node in checked.body if isinstance(node, ast.ImportFrom) for name in node.names]
    assert sorted(name.name for name in names) == sm.__all__
    assert [name.name for name in names if name.asname != name.name] == []
