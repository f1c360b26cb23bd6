"""How the embedding of a run stretches: against a fit of each point by NumPy alone, and drawn on the map."""

import base64
import gzip
import json

import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.collections import PolyCollection
from sklearn.decomposition import PCA

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError
from scalemani.io.sources import open_points
from scalemani.kernels.stretch import Stretch
from scalemani.runs.opened import open_run
from scalemani.runs.stretching import ellipses_of
from scalemani.runs.walk import run

SMALL = {"neighbors.n_neighbors": 12, "affinities.perplexity": 4, "landmarks.n_landmarks": 60}


def embedded(points, folder, method="laplacian-eigenmaps", block_rows=None, **values):
    source = open_points(points, gaps="points.missing" in values)
    return run(source, folder, method, Parameters().with_values(SMALL | values), Executor(), block_rows)


@pytest.fixture(scope="module")
def spread(roll):
    return roll[:2500] + np.random.default_rng(0).normal(scale=0.01, size=(2500, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def folder(spread, tmp_path_factory):
    place = tmp_path_factory.mktemp("stretched") / "run"
    embedded(spread, place, block_rows=1024)
    return place


def test_it_is_a_regression_of_positions_on_principal_components_of_the_neighbours(spread, folder):
    opened = open_run(folder)
    positions, graph = np.asarray(opened.embedding[...]), np.asarray(opened.graph.indices[0:2500])
    for k, m in ((None, None), (8, 1)):
        stretch = opened.stretch(k, m)
        for row in range(0, 2500, 97):
            near = np.append(graph[row, : k or 12], row)
            tangents = PCA(m or 2, svd_solver="full").fit_transform(spread[near].astype(float))
            design = np.column_stack([tangents, np.ones(len(near))])
            slopes = np.linalg.lstsq(design, positions[near], rcond=None)[0]
            np.testing.assert_allclose(stretch.metric[row], slopes[:-1].T @ slopes[:-1], rtol=1e-6, atol=1e-14)
            left = positions[near] - design @ slopes
            share = 1 - (left**2).sum() / ((positions[near] - positions[near].mean(axis=0)) ** 2).sum()
            np.testing.assert_allclose(stretch.explained[row], share, rtol=1e-6)


def test_blocks_and_tiles_change_no_bit(spread, folder, tmp_path, monkeypatch):
    whole = embedded(spread, tmp_path / "run").stretch()
    monkeypatch.setattr("scalemani.runs.stretching.TILE_BYTES", 2**16)
    for one, other in zip(open_run(folder).stretch(), whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_equal_rows_share_a_value_and_rows_with_a_gap_have_none(spread, tmp_path):
    points = np.concatenate([spread[:600], spread[:5], [[np.nan, 0, 0]]])
    finished = embedded(points, tmp_path / "run", **{"duplicates.tolerance": 0.0, "points.missing": "leave-out"})
    area = finished.stretch().area
    assert area.shape == (606,)
    np.testing.assert_array_equal(area[:5], area[600:605])
    np.testing.assert_array_equal(np.isnan(area), np.arange(606) == 605)
    assert np.isfinite(ellipses_of(finished)[600:]).sum() == 0  # one ellipse a point, at its first row


def test_sparse_rows_are_those_of_a_dense_run(spread, tmp_path):
    points = np.where(spread[:700] > 3, spread[:700], 0)
    dense = embedded(points, tmp_path / "dense").stretch()
    sparse = embedded(sp.csr_matrix(points), tmp_path / "sparse").stretch()
    np.testing.assert_allclose(np.nanmedian(sparse.explained), np.nanmedian(dense.explained), rtol=0.02)


def test_what_has_no_directions_is_refused(spread, folder, tmp_path):
    opened = open_run(folder)
    for arguments, message in (((13,), "n_neighbors must be <= 12"), ((2,), ">= 3"), ((8, 3), "n_dimensions must be")):
        with pytest.raises(ConfigError, match=message):
            opened.stretch(*arguments)
    compared = embedded(spread[:300], tmp_path / "compared", **{"points.metric": "canberra"})
    with pytest.raises(ConfigError, match="have no directions"):
        compared.stretch()
    with pytest.raises(ConfigError, match="pca has no neighbour graph"):
        embedded(spread[:300], tmp_path / "pca", "pca").stretch()
    line = embedded(spread[:300, :1], tmp_path / "line")
    for refused in (line.stretch, lambda: sm.open_run(tmp_path / "line").plot(stretch=True)):
        with pytest.raises(ConfigError, match="of no point span 2 directions in the data"):
            refused()
    assert np.isfinite(line.stretch(n_dimensions=1).area).all()


def test_on_the_command_line(folder, tmp_path, scalemani):
    stretch = open_run(folder).stretch(10, 1)
    status, output, _ = scalemani("stretch", folder, tmp_path / "s.npz", "--neighbors", 10, "--dimensions", 1)
    assert (status, [line.split()[0] for line in output.splitlines()]) == (0, ["area", "anisotropy", "explained"])
    with np.load(tmp_path / "s.npz") as file:
        for name, values in stretch._asdict().items():
            np.testing.assert_array_equal(file[name], values)
    for name in ("s.csv", "s.parquet"):
        assert scalemani("stretch", folder, tmp_path / name)[0] == 0
        assert scalemani("export", folder, tmp_path / "map.csv", "--labels", tmp_path / name)[0] == 0
        assert (tmp_path / "map.csv").read_text().startswith("row,x,y,area,anisotropy,explained\n")
    assert scalemani("stretch", folder, tmp_path / "s.h5ad")[0] == 2


def test_ellipses_are_what_the_metric_makes_of_a_circle(folder):
    opened = sm.open_run(folder)
    metric = ellipses_of(opened)
    rows = np.flatnonzero(np.isfinite(metric[:, 0, 0]))
    assert 20 < len(rows) <= 17**2
    np.testing.assert_array_equal(metric[rows], opened.stretch().metric[rows])
    (axes,) = opened.plot(stretch=True, size=300, figure=True).axes
    (drawn,) = [part for part in axes.collections if isinstance(part, PolyCollection)]
    positions, lengths = np.asarray(opened.embedding[...])[rows], []
    for centre, one, path in zip(positions, metric[rows], drawn.get_paths(), strict=True):
        outline = path.vertices[:41] - centre
        lengths.append(np.einsum("pi,ij,pj->p", outline, np.linalg.inv(one), outline))  # squared radii of the circle
    np.testing.assert_allclose(lengths, np.median(lengths), rtol=1e-6)
    for other in ({"poor": True}, {"positions": np.asarray(opened.embedding[...])}):
        with pytest.raises(ConfigError, match="without poor, doubtful and positions"):
            opened.plot(stretch=True, **other)


def test_a_report_colours_its_map_by_it(folder, tmp_path):
    page = sm.open_run(folder).report(tmp_path / "page.html", stretch=True, n_sampled=0).read_text()
    described = json.loads(page.split('id="map-data">')[1].split("</script>")[0])
    assert [one["name"] for one in described["columns"]] == [f"stretch: {name}" for name in Stretch._fields[1:]]
    packed = page.split('id="array-column-0">')[1].split("</script>")[0]
    codes = np.frombuffer(gzip.decompress(base64.b64decode(packed)), np.uint8)
    area, (low, high) = open_run(folder).stretch().area, described["columns"][0]["limits"]
    shown = np.clip((area - low) / (high - low), 0, 1) * (codes.max() - codes.min())
    assert np.abs(codes - shown)[np.isfinite(area)].max() < 2
