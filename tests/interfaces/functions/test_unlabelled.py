"""Points without a label, whatever carries the gap: they count in no measure, and discriminants refuse them."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.neighbors import NearestNeighbors

import scalemani as sm
from scalemani.errors import DataError
from scalemani.interfaces.functions.run_measures import measure_run
from scalemani.interfaces.tuning.tune import tune
from scalemani.runs.aligning import shared_rows
from scalemani.runs.opened import open_run

N, PER_LABEL = 600, 2
RNG = np.random.default_rng(0)
CLASSES = RNG.integers(0, 3, N)
POINTS = RNG.normal(size=(N, 5)) + 2.0 * np.eye(3, 5)[CLASSES]
KNOWN = np.arange(N) % PER_LABEL == 0
NAMES = np.where(KNOWN, np.array(["ape", "bee", "cow"])[CLASSES], None)  # objects
TEXTS = np.where(KNOWN, np.array(["ape", "bee", "cow"])[CLASSES], "")
NUMBERS = np.where(KNOWN, CLASSES, np.nan)


def of_pandas(kind):
    def labels():
        pandas = pytest.importorskip("pandas")
        if kind == "Int64":
            return pandas.Series(CLASSES, dtype=kind).mask(~KNOWN)
        return pandas.Series(NAMES).astype(kind)

    return labels


def of_arrow(values, kind):
    def labels():
        arrow = pytest.importorskip("pyarrow")
        return arrow.array(values, mask=~KNOWN, type=getattr(arrow, kind)())

    return labels


def of_polars():
    return pytest.importorskip("polars").Series(NAMES.tolist())


KINDS = {
    "a list with None": NAMES.tolist,
    "a list of several types": lambda: [float("nan") if name is None else name for name in NAMES],
    "objects": lambda: NAMES,
    "objects, whole numbers": lambda: np.where(KNOWN, CLASSES.astype(object), None),
    "texts": lambda: TEXTS,
    "bytes": lambda: TEXTS.astype("S"),
    "NaN": lambda: NUMBERS,
    "masked": lambda: np.ma.masked_array(CLASSES, ~KNOWN),
    "pandas, objects": of_pandas(object),
    "pandas, texts": of_pandas("str"),
    "pandas, categories": of_pandas("category"),
    "pandas, whole numbers": of_pandas("Int64"),
    "Arrow, texts": of_arrow(TEXTS, "string"),
    "Arrow, whole numbers": of_arrow(CLASSES, "int32"),
    "polars": of_polars,
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def accuracy_by_hand(positions, classes, n_neighbors=1):
    """The share of points whose class is that of their nearest other, by scikit-learn."""
    nearest = NearestNeighbors(n_neighbors=n_neighbors).fit(positions).kneighbors(return_distance=False)
    votes = [np.bincount(row) for row in classes[nearest]]
    return np.mean([np.argmax(each) for each in votes] == classes)


@every_kind
def test_they_count_in_no_measure_and_are_told_of(kind):
    labels, clusters = KINDS[kind](), RNG.permuted(CLASSES)
    with pytest.warns(UserWarning, match="300 of 600 points have no label and count in no measure"):
        found = sm.measures.knn_accuracy(POINTS, labels, 5)
    assert found.n_sampled == N // PER_LABEL
    assert found.value == pytest.approx(accuracy_by_hand(POINTS[KNOWN], CLASSES[KNOWN], 5), abs=1e-12)
    with pytest.warns(UserWarning, match="300 of 600"):
        assert sm.measures.clustering_error(clusters, labels) == sm.measures.clustering_error(
            clusters[KNOWN], CLASSES[KNOWN]
        )
    for measure, peer in (
        (sm.measures.normalized_mutual_information, normalized_mutual_info_score),
        (sm.measures.adjusted_rand_index, adjusted_rand_score),
    ):
        with pytest.warns(UserWarning, match="300 of 600"):
            value = measure(clusters, labels)
        assert value == pytest.approx(peer(clusters[KNOWN], CLASSES[KNOWN]), abs=1e-12)


@every_kind
@pytest.mark.parametrize("method", [sm.LandmarkLDA, sm.LandmarkKernelLDA])
def test_discriminants_refuse_them_by_their_rows(kind, method):
    with pytest.raises(DataError, match=r"300 of 600 points have none, in row\(s\) 1, 3, 5, 7, 9: leave these points"):
        method().fit(POINTS, KINDS[kind]())


def test_minus_one_is_a_class_of_discriminants_and_measures():
    labels = np.where(CLASSES == 0, -1, CLASSES)
    assert sm.LandmarkLDA().fit(POINTS, labels).embedding_.shape == (N, 2)
    assert sm.measures.knn_accuracy(POINTS, labels) == sm.measures.knn_accuracy(POINTS, CLASSES)


@pytest.mark.parametrize("labels", [[None] * N, ["ape", *[""] * (N - 1)], np.full(N, np.nan)])
def test_labels_of_one_point_or_none_measure_nothing(labels):
    with pytest.raises(DataError, match=r"[01] of 600 points have a label, at least 2 must"):
        sm.measures.knn_accuracy(POINTS, labels)


def test_neighbors_are_counted_among_points_with_a_label():
    few = np.where(np.arange(N) < 10, CLASSES, np.nan)
    with pytest.raises(ValueError, match="n_neighbors must be <= 9"), pytest.warns(UserWarning, match="590 of 600"):
        sm.measures.knn_accuracy(POINTS, few, 10)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Points, labels of half of them as an array, a column of a table and a text, and a run of spectral clustering."""
    place = tmp_path_factory.mktemp("unlabelled")
    np.save(place / "points.npy", POINTS)
    np.save(place / "texts.npy", TEXTS)
    (place / "known.csv").write_text("row,kind\n" + "".join(f"{row},{name}\n" for row, name in enumerate(TEXTS)))
    sm.SpectralClustering(3, perplexity=10, store=place / "run").fit(POINTS)
    return place


@pytest.mark.parametrize("labels", ["texts.npy", "known.csv::kind"])
def test_a_run_is_measured_by_those_that_have_one(folder, labels, scalemani):
    opened = open_run(folder / "run")
    positions, clusters = np.asarray(opened.embedding[...]), np.asarray(opened.labels[...])
    with pytest.warns(UserWarning, match="300 of 600"):
        found = measure_run(opened, folder / labels, n_neighbors=5)
    assert found["1-nn accuracy"].value == pytest.approx(accuracy_by_hand(positions[KNOWN], CLASSES[KNOWN]), abs=1e-12)
    assert found["adjusted_rand_index"] == pytest.approx(adjusted_rand_score(clusters[KNOWN], CLASSES[KNOWN]))
    status, output, errors = scalemani("measure", folder / "run", "--labels", folder / labels, "--json")
    assert status == 0
    assert json.loads(output)["1-nn accuracy"]["n_sampled"] == N // PER_LABEL
    assert errors == "warning: 300 of 600 points have no label and count in no measure of labels\n"


def test_few_labels_are_measured_by_as_many_neighbors_as_there_are(folder):
    few = np.where(np.arange(N) < 6, TEXTS, "")
    with pytest.warns(UserWarning, match="597 of 600"):
        assert {"1-nn accuracy", "2-nn accuracy"} < set(measure_run(open_run(folder / "run"), few))


@pytest.mark.parametrize("labels", ["texts.npy", "known.csv::kind"])
def test_embed_and_tune_count_those_that_have_one(folder, labels, scalemani, tmp_path):
    place, given = folder / "points.npy", f"--labels={folder / labels}"
    status, output, _ = scalemani("embed", place, tmp_path / "run", "--method=pca", given)
    assert status == 0
    positions = np.asarray(open_run(tmp_path / "run").embedding[...])
    share = accuracy_by_hand(positions[KNOWN], CLASSES[KNOWN])
    line = output.splitlines()[-1]
    assert line.startswith(f"{share:.4f} of 300 points have the label of their nearest neighbour")
    assert line.endswith("300 of 600 points have no label and do not count")
    status, output, errors = scalemani("tune", place, tmp_path / "tuned", given, "--method=pca", "--set=seed=0,1")
    assert status == 0
    assert f"best: label-accuracy {share:.4g} at" in output
    assert "warning: 300 of 600 points have no label" in errors


def test_numbers_with_gaps_are_classes_of_embed(folder, scalemani, tmp_path):
    np.save(tmp_path / "numbers.npy", NUMBERS)
    np.save(tmp_path / "none.npy", np.full(N, np.nan))
    arguments = ("embed", folder / "points.npy", tmp_path / "run", "--method=pca", "--labels")
    assert "of 300 points have the label" in scalemani(*arguments, tmp_path / "numbers.npy")[1]
    status, output, _ = scalemani(*arguments, tmp_path / "none.npy")
    assert status == 0
    assert "no agreement is counted; 600 of 600 points have no label" in output


def test_minus_one_counts_as_none_where_affinities_follow_the_classes(folder, scalemani, tmp_path):
    np.save(tmp_path / "partly.npy", np.where(KNOWN, CLASSES, -1))
    arguments = (
        "--method=laplacian-eigenmaps",
        "--set=affinities.perplexity=10",
        f"--labels={tmp_path / 'partly.npy'}",
    )
    weight = "--set=symmetric_affinities.target_weight=0.5"
    found = scalemani("embed", folder / "points.npy", tmp_path / "run", *arguments, weight)[1]
    assert "of 300 points have the label" in found
    assert "of 600 points have the label" in scalemani("embed", folder / "points.npy", tmp_path / "run", *arguments)[1]


def test_tuning_in_python_scores_clusters_of_those_that_have_one(tmp_path):
    model = sm.SpectralClustering(3, perplexity=10, store=tmp_path / "run")
    with pytest.warns(UserWarning, match="300 of 600"):
        found = tune(model, {"perplexity": [8.0, 10.0]}, POINTS, NAMES, scoring=["clustering-error"])
    for cell in found.cells:
        clusters = clone(model).set_params(store=None, **cell.values).fit(POINTS).labels_
        expected = sm.measures.clustering_error(clusters[KNOWN], CLASSES[KNOWN])
        assert cell.scores["clustering-error"].value == pytest.approx(expected, abs=1e-12)


def test_rows_without_an_identifier_are_the_same_as_no_others():
    with pytest.raises(DataError, match="1 rows have none, the first row 1"):
        shared_rows(3, 2, (["a", None, "b"], ["", "a"]))
