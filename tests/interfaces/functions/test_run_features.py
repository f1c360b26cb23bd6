"""Which features decide: planted columns, statistics by NumPy, names, and what is refused."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError, ScalemaniWarning
from scalemani.io.sources import open_points
from scalemani.runs.walk import run

pytestmark = pytest.mark.filterwarnings("ignore:embedding|layout")  # noise has no eigengap
OPTIONS = {"n_neighbors": 12, "perplexity": 4, "random_state": 0}


def planted(seed, n_points=400, n_columns=200):
    """Points of which a third form a cluster by 20 columns, and which these are."""
    rng = np.random.default_rng(seed)
    points, groups = rng.normal(size=(n_points, n_columns)), np.arange(n_points) % 3 == 0
    columns = np.sort(rng.choice(n_columns, min(20, n_columns // 2), replace=False))
    points[np.ix_(groups, columns)] += 1.5
    return points, np.where(groups, "in", "out"), columns


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("featured") / "run"
    points, groups, _ = planted(0)
    sm.LaplacianEigenmaps(solver="lll", n_landmarks=50, store=place, **OPTIONS).fit(points)
    np.save(place.parent / "groups.npy", groups)
    return place


def test_planted_columns_come_first_in_twenty_runs(tmp_path):
    hits = []
    for seed in range(20):
        points, groups, columns = planted(seed)
        sm.LaplacianEigenmaps(solver="lll", n_landmarks=50, store=tmp_path / str(seed), **OPTIONS).fit(points)
        features = sm.open_run(tmp_path / str(seed)).features(groups)
        first = [int(row["feature"]) - 1 for row in features.table(20) if row["group"] == "in"]
        hits.append(sorted(first) == columns.tolist())
        assert features.agreement >= 0.95
    assert np.mean(hits) >= 0.95


@pytest.mark.parametrize("repulsion", ["exact", "grid"])
def test_planted_columns_come_first_in_nonlinear_maps(tmp_path, repulsion):
    points, groups, columns = planted(1)
    sm.TSNE(max_iter=200, settings={"layout.repulsion": repulsion}, store=tmp_path, **OPTIONS).fit(points)
    features = sm.open_run(tmp_path).features(groups)
    assert {int(row["feature"]) - 1 for row in features.table(20) if row["group"] == "in"} == set(columns)
    assert features.agreement >= (0.9 if repulsion == "exact" else 0.8)  # second derivatives of a mesh err


def test_a_picture_has_a_panel_a_group_and_a_bar_a_feature_longest_first(folder, scalemani):
    picture, groups = folder.parent / "features.svg", folder.parent / "groups.npy"
    status, said, _ = scalemani("features", folder, "--groups", groups, "--top", 3, "--picture", picture)
    assert (status, said.splitlines()[-1]) == (0, f"written: {picture}")
    told = re.findall("<!-- (.*?) -->", picture.read_text())
    table = sm.open_run(folder).features(groups).table(3)
    signed = [f"{row['feature']} {'+' if row['difference'] > 0 else '-'}" for row in table]
    assert [name for name in told if name in signed] == signed
    assert any(name.endswith("+") for name in signed)
    assert [name for name in told if name in ("in", "out")] == ["in", "out"]
    status, _, errors = scalemani("features", folder, "--picture", folder.parent / "features.txt")
    assert (status, ".png" in errors) == (2, True)


def test_groups_are_in_natural_order_with_their_own_means(folder):
    points, groups = planted(0)[0], np.array(["2Ery", "10Mo", "1Ery"])[np.arange(400) % 3]
    features = sm.open_run(folder).features(groups)
    assert features.groups == ("1Ery", "2Ery", "10Mo")
    for group, difference in zip(features.groups, features.difference, strict=True):
        expected = points[groups == group].mean(axis=0) - points[groups != group].mean(axis=0)
        np.testing.assert_allclose(difference, expected, atol=1e-5)


def test_numbers_are_those_of_differences_of_transform(folder, tmp_path):
    """Slopes of columns, by what `transform` does to points that are moved along them."""
    points, groups, _ = planted(0)
    groups[5:7] = ""
    opened = sm.open_run(folder)
    with pytest.warns(ScalemaniWarning, match="2 of 400 points have no label"):
        features = opened.features(groups)
    assert features.groups == ("in", "out")
    some, step = groups == "in", 1e-5
    for column in (0, 77):
        moves = np.where(np.arange(200) == column, step, 0.0)
        for name, sign in (("ahead", 1), ("behind", -1)):
            sm.transform(folder, points[some] + sign * moves, tmp_path / f"{name}{column}.npy")
        ends = [np.load(tmp_path / f"{name}{column}.npy") for name in ("ahead", "behind")]
        lengths = np.linalg.norm(ends[0] - ends[1], axis=1) / (2 * step)
        np.testing.assert_allclose(features.slope[0, column], np.sqrt((lengths**2).mean()), rtol=1e-3)
    expected = points[some].mean(axis=0) - points[groups == "out"].mean(axis=0)
    np.testing.assert_allclose(features.difference, [expected, -expected], rtol=1e-9)
    np.testing.assert_array_equal(features.influence, features.slope * abs(features.difference))
    whole = opened.features()
    assert whole.groups == ("all points",)
    with pytest.raises(ConfigError, match="top must be >= 1, got -1"):
        whole.table(-1)
    np.testing.assert_allclose(whole.difference[0], points.std(axis=0), rtol=1e-9)


def test_on_the_command_line(folder, scalemani):
    options = ("--groups", folder.parent / "groups.npy", "--top", 3)
    status, output, _ = scalemani("features", folder, *options)
    lines = output.splitlines()
    assert (status, len(lines)) == (0, 8)
    assert lines[-1].startswith("derivatives agree with finite differences at ")
    status, output, _ = scalemani("features", folder, *options, "--json")
    table = sm.open_run(folder).features(np.load(folder.parent / "groups.npy")).table(3)
    assert (status, json.loads(output)["features"]) == (0, table)
    assert [line.split()[1] for line in lines[1:-1]] == [row["feature"] for row in table]
    assert scalemani("features", folder, "--top", 0)[0] == 2


def test_names_of_columns_and_other_block_rows(tmp_path):
    points, groups, _ = planted(2, 1300, 6)
    frame = pd.DataFrame(points, columns=list("abcdef"))
    tables, params = [], Parameters().with_values({"landmarks.n_landmarks": 30})
    for rows in (1024, 2048):
        run(open_points(frame), tmp_path / str(rows), "pca", params, Executor(), rows)
        tables.append(sm.open_run(tmp_path / str(rows)).features(groups))
    assert tables[0].names == tuple("abcdef")
    np.testing.assert_array_equal(tables[0].influence, tables[1].influence)


def test_what_has_no_derivative_is_refused(folder, tmp_path):
    points, groups, _ = planted(0, 200, 10)
    sm.SNE(max_iter=3, store=tmp_path / "sne", **OPTIONS).fit(points)
    with pytest.raises(ConfigError, match="one sum over all pairs"):
        sm.open_run(tmp_path / "sne").features(groups)
    sm.LandmarkIsomap(n_landmarks=20, n_neighbors=8, store=tmp_path / "isomap").fit(points)
    with pytest.raises(ConfigError, match="has no derivative by features"):
        sm.open_run(tmp_path / "isomap").features(groups)
    with pytest.raises(DataError, match="399 labels for 400 points"):
        sm.open_run(folder).features(planted(0)[1][:-1])
