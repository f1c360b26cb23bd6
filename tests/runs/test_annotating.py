"""Results in an AnnData: where scanpy looks for them, beside everything that was there."""

import csv
import shutil

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
import zarr

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError, StoreError, UnsafeStoreError
from scalemani.io.export import anndata as writing
from scalemani.io.export.anndata import write_anndata
from scalemani.io.sources import open_points
from scalemani.runs.exporting import annotations_of, export_map, export_result
from scalemani.runs.walk import run

N, K = 600, 8
VALUES = {
    "neighbors": {"n_neighbors": K, "method": "exact"},
    "affinities": {"perplexity": 4.0},
    "landmarks": {"n_landmarks": 100},
    "landmark_embedding": {"n_components": 2},
    "clustering": {"n_clusters": 4},
    "layout": {"max_iterations": 5, "repulsion": "exact"},
}
PLACES = {
    "t-sne": ["obsm/X_tsne", "obsp/connectivities", "obsp/distances", "uns/neighbors", "uns/tsne"],
    "knn-graph": ["obsp/distances", "uns/neighbors"],
    "spectral-clustering": [
        *("obs/spectral_clustering", "obsm/X_spectral_clustering", "obsp/connectivities", "obsp/distances"),
        *("uns/neighbors", "uns/spectral_clustering"),
    ],
    "diffusion-maps": [
        *("obsm/X_diffmap", "obsm/X_diffusion_maps", "obsp/connectivities", "obsp/distances", "uns/diffmap_evals"),
        *("uns/diffusion_maps", "uns/neighbors"),
    ],
    "pca": ["obsm/X_pca", "uns/pca"],
}


@pytest.fixture(scope="module")
def points(roll):
    return roll[:N].astype(np.float64)


@pytest.fixture(scope="module")
def runs(points, tmp_path_factory):
    folder, params = tmp_path_factory.mktemp("annotating"), Parameters().with_values(VALUES)
    return {method: run(open_points(points), folder / method, method, params, Executor()) for method in PLACES}


def opened(path):
    return h5py.File(path, "r") if path.suffix == ".h5ad" else zarr.open_group(path, mode="r", use_consolidated=False)


def matrix(group):
    assert group.attrs["encoding-type"] == "csr_matrix"
    parts = [np.asarray(group[name][...]) for name in ("data", "indices", "indptr")]
    return sp.csr_matrix(tuple(parts), shape=tuple(group.attrs["shape"]))


def text(array):
    assert array.attrs["encoding-type"] in ("string", "string-array")
    return (array.asstr() if isinstance(array, h5py.Dataset) else array)[()]


def content(node, path=""):
    """Return every value and attribute below a group, by path."""
    found = {f"{path}@{name}": str(value) for name, value in node.attrs.items()}
    if not hasattr(node, "keys"):
        return {**found, path: np.asarray(node[()]).tolist()}
    for name in node:
        found.update(content(node[name], f"{path}/{name}"))
    return found


def existing(path):
    """Write an AnnData with all that results may meet: values, categories, settings, other neighbours."""
    root = h5py.File(path, "w") if path.suffix == ".h5ad" else zarr.open_group(path, mode="w", zarr_format=2)
    writing.write_frame(root, N)
    values = np.random.default_rng(0).normal(size=(N, 5))
    for name, array in (("obsm/X_umap", values[:, :2]), ("uns/table", values)):
        group, last = writing.place(root, name)
        stored = writing.new_array(group, last, array.shape, array.dtype, 100)
        stored[...] = array
        stored.attrs.update(writing.ARRAY)
    writing.write_categories(writing.new_group(root["obs"], "kind", writing.CATEGORIES), np.arange(N) % 3)
    root["obs"].attrs["column-order"] = ["kind"]
    settings = {"params": {"n_neighbors": 15, "method": "umap"}, "distances_key": "distances"}
    writing.write_element(root["uns"], "neighbors", settings)
    writing.fill_matrix(Eye(), root["obsp"].create_group("distances"), writing.new_array)
    if path.suffix == ".h5ad":
        root.close()
    else:
        zarr.consolidate_metadata(str(path), zarr_format=2)
    return path


class Eye:
    shape, dtype, indptr = (N, N), np.dtype(np.float64), np.arange(N + 1)

    def rows(self, start, stop):
        return sp.eye(N, format="csr")[start:stop]


@pytest.mark.parametrize("suffix", [".h5ad", ".zarr"])
@pytest.mark.parametrize("method", PLACES)
def test_a_new_one_has_the_results_where_scanpy_looks(runs, tmp_path, method, suffix):
    found, path = runs[method], tmp_path / f"new{suffix}"
    assert export_result(found, path, "anndata") == "anndata"
    root = opened(path)
    assert root.attrs["encoding-type"] == "anndata"
    below = [f"{group}/{name}" for group in ("obsm", "obsp", "uns") for name in root[group]]
    below += [f"obs/{name}" for name in root["obs"].attrs["column-order"]]
    assert sorted(below) == PLACES[method]
    assert text(root["obs/_index"])[[0, 1, N - 1]].tolist() == ["0", "1", str(N - 1)]
    if found.embeds:
        name = next(name for name in PLACES[method] if name.startswith("obsm") and "diffmap" not in name)
        np.testing.assert_array_equal(root[name][...], found.embedding[...])
        params = root[f"uns/{name.removeprefix('obsm/X_')}/params"]
        assert text(params["method"]) == method
        assert params["random_state"][()] == 0
    if "obsp/distances" in PLACES[method]:
        graph = found.graph
        assert abs(matrix(root["obsp/distances"]) - graph.tocsr()).max() == 0
        assert root["uns/neighbors/params/n_neighbors"][()] == K + 1
        assert text(root["uns/neighbors/distances_key"]) == "distances"
    if "obsp/connectivities" in PLACES[method]:
        assert abs(matrix(root["obsp/connectivities"]) - found.affinities.tocsr()).max() == 0
        assert text(root["uns/neighbors/connectivities_key"]) == "connectivities"
    if method == "spectral-clustering":
        column = root["obs/spectral_clustering"]
        np.testing.assert_array_equal(column["codes"][...], found.labels[...])
        assert text(column["categories"]).tolist() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("suffix", [".h5ad", ".zarr"])
def test_everything_else_stays_in_one_that_is_there(runs, tmp_path, suffix):
    path = existing(tmp_path / f"cells{suffix}")
    before = content(opened(path))
    for method in ("t-sne", "spectral-clustering", "t-sne"):  # the last one replaces its own
        export_result(runs[method], path)
    root = opened(path)
    after = content(root)
    replaced = ("/obsp/distances", "/uns/neighbors", "/obs@column-order")
    assert {name: value for name, value in before.items() if not name.startswith(replaced)}.items() <= after.items()
    assert list(root["obs"].attrs["column-order"]) == ["kind", "spectral_clustering"]
    assert abs(matrix(root["obsp/distances"]) - runs["t-sne"].graph.tocsr()).max() == 0
    assert sorted(root["uns/neighbors/params"]) == ["method", "metric", "n_neighbors", "random_state"]
    np.testing.assert_array_equal(root["obsm/X_tsne"][...], runs["t-sne"].embedding[...])
    assert sorted(found.name for found in tmp_path.iterdir()) == [f"cells{suffix}"]
    if suffix == ".zarr":
        consolidated = zarr.open_group(path, mode="r", use_consolidated=True)
        np.testing.assert_array_equal(consolidated["obsm/X_tsne"][...], runs["t-sne"].embedding[...])


@pytest.mark.parametrize("suffix", [".h5ad", ".zarr"])
def test_one_that_is_there_is_as_it_was_when_an_export_fails(runs, tmp_path, suffix, monkeypatch):
    path = existing(tmp_path / f"cells{suffix}")
    before = content(opened(path))

    def no_room(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "new_texts", no_room)
    with pytest.raises((StoreError, OSError), match="space"):
        export_result(runs["t-sne"], path)
    assert content(opened(path)) == before
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".h5ad", ".zarr"])
def test_what_results_do_not_belong_to_is_refused_and_left_alone(runs, tmp_path, suffix):
    path = existing(tmp_path / f"cells{suffix}")
    root = h5py.File(path, "r+") if suffix == ".h5ad" else zarr.open_group(path, mode="r+", use_consolidated=False)
    writing.new_array(root["obsm"], "X_pca", (N, 2), np.dtype("f4"), 10)
    if suffix == ".h5ad":
        root.close()
    before = content(opened(path))
    with pytest.raises(ConfigError, match="has obsm/X_pca, from which other results may come"):
        export_result(runs["pca"], path)
    few = annotations_of(runs["t-sne"])
    with pytest.raises(DataError, match=f"has {N} rows, the run 7: give the AnnData"):
        write_anndata(writing.Annotations(7, few.elements), str(path))
    assert content(opened(path)) == before


def test_files_that_are_no_anndata_are_refused(runs, tmp_path):
    (tmp_path / "a.h5ad").write_text("nothing")
    with pytest.raises(DataError, match="no HDF5 file"):
        export_result(runs["t-sne"], tmp_path / "a.h5ad")
    h5py.File(tmp_path / "b.h5ad", "w").close()
    with pytest.raises(ConfigError, match="has no 'obs'"):
        export_result(runs["t-sne"], tmp_path / "b.h5ad")
    zarr.open_group(tmp_path / "b.zarr", mode="w").attrs.update(writing.ANNDATA)
    with pytest.raises(DataError, match="has no table obs as AnnData writes it"):
        export_result(runs["t-sne"], tmp_path / "b.zarr")
    shutil.copy(existing(tmp_path / "c.h5ad"), tmp_path / "d.h5ad")
    with h5py.File(tmp_path / "d.h5ad", "r+") as file:
        del file["obsm"]
        file["obsm"] = h5py.ExternalLink("c.h5ad", "obsm")
    with pytest.raises(UnsafeStoreError, match="another file"):
        export_result(runs["t-sne"], tmp_path / "d.h5ad")
    with pytest.raises(ConfigError, match=r"\.npz.*an AnnData is a file or a zarr store"):
        export_result(runs["t-sne"], tmp_path / "a.npz", "anndata")


def test_rows_that_were_left_out_have_no_coordinates_and_no_neighbours(points, tmp_path):
    apart = np.concatenate([points[:50] + 1e3, points, points[50:70] - 1e3])
    params = Parameters().with_values({**VALUES, "components": {"disconnected": "largest"}})
    found = run(open_points(apart), tmp_path / "run", "t-sne", params, Executor())
    export_result(found, tmp_path / "all.h5ad")
    root, kept = opened(tmp_path / "all.h5ad"), found.input_rows
    assert len(kept) < len(apart)
    np.testing.assert_array_equal(root["obsm/X_tsne"][...], found.of_input(found.embedding[...], np.nan))
    for name, expected in (("distances", found.graph.tocsr()), ("connectivities", found.affinities.tocsr())):
        stored = matrix(root[f"obsp/{name}"])
        assert stored.shape == (len(apart), len(apart))
        assert abs(stored[kept][:, kept] - expected).max() == 0
        assert stored.nnz == expected.nnz


def test_the_command_writes_it(scalemani, runs, tmp_path):
    store = runs["t-sne"].store.root
    assert scalemani("export", store, tmp_path / "cells.h5ad")[0] == 0
    assert scalemani("export", store, tmp_path / "cells.zarr", "--what", "anndata")[0] == 0
    assert scalemani("export", store, tmp_path / "cells.zarr")[0] == 0
    for name in ("cells.h5ad", "cells.zarr"):
        np.testing.assert_array_equal(opened(tmp_path / name)["obsm/X_tsne"][...], runs["t-sne"].embedding[...])
    assert scalemani("export", store, tmp_path / "plain.zarr")[0] == 0
    assert isinstance(zarr.open(tmp_path / "plain.zarr"), zarr.Array)


@pytest.mark.parametrize("suffix", [".h5ad", ".zarr"])
def test_scanpy_clusters_draws_and_measures_by_what_was_written(runs, tmp_path, suffix):
    scanpy = pytest.importorskip("scanpy")
    anndata = pytest.importorskip("anndata")
    from sklearn.metrics import adjusted_rand_score

    path, read = tmp_path / f"cells{suffix}", anndata.read_h5ad if suffix == ".h5ad" else anndata.read_zarr
    export_result(runs["t-sne"], tmp_path / f"new{suffix}", "anndata")
    assert read(tmp_path / f"new{suffix}").shape == (N, 0)
    cells = anndata.AnnData(np.random.default_rng(0).normal(size=(N, 5)).astype(np.float32))
    cells.obs["kind"] = np.where(np.arange(N) % 3, "often", "seldom")
    scanpy.pp.neighbors(cells)
    scanpy.pp.pca(cells, n_comps=3)
    (cells.write_h5ad if suffix == ".h5ad" else cells.write_zarr)(path)
    for method in ("t-sne", "diffusion-maps", "spectral-clustering"):
        export_result(runs[method], path)
    found = read(path)
    np.testing.assert_array_equal(found.X, cells.X)
    np.testing.assert_array_equal(found.obsm["X_pca"], cells.obsm["X_pca"])
    cells = found
    scanpy.tl.leiden(cells, flavor="igraph", n_iterations=2)
    assert cells.obs["leiden"].nunique() > 2
    assert list(cells.obs.columns) == ["kind", "spectral_clustering", "leiden"]
    scanpy.pl.tsne(cells, color="spectral_clustering", show=False)
    scanpy.pl.diffmap(cells, color="kind", show=False)
    ours = np.asarray(cells.obsm["X_diffmap"])
    cells.uns["iroot"] = 0
    scanpy.tl.dpt(cells, n_dcs=3)
    assert np.isfinite(cells.obs["dpt_pseudotime"]).all()
    scanpy.tl.diffmap(cells, n_comps=3)  # by the connectivities that were written
    theirs = np.asarray(cells.obsm["X_diffmap"])
    np.testing.assert_allclose(abs((ours * theirs).sum(axis=0)), 1, atol=1e-3)
    assert adjusted_rand_score(cells.obs["leiden"], runs["spectral-clustering"].labels[...]) > 0.1


def test_the_command_writes_a_map_for_viewers(scalemani, runs, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    found = runs["t-sne"]
    (tmp_path / "labels.csv").write_text("kind,size\n" + "".join(f"k{row % 3},{row}\n" for row in range(N)))
    options = ("--labels", tmp_path / "labels.csv", "--neighbors")
    assert scalemani("export", found.store.root, tmp_path / "map.parquet", *options) == (0, "", "")
    table = parquet.read_table(tmp_path / "map.parquet")
    assert table.column_names == ["x", "y", "kind", "size", "neighbors"]
    np.testing.assert_array_equal(np.column_stack([table["x"], table["y"]]), found.embedding[...])
    assert [row["ids"] for row in table["neighbors"].to_pylist()] == np.asarray(found.graph.indices[...]).tolist()
    for arguments, words in (
        (("map.npy", *options[:2]), "a map is a table; allowed: .parquet, .csv"),
        (("map.csv", *options), "neighbours are lists; allowed: .parquet"),
        (("map.parquet", *options, "--what", "graph"), "write a map, which --what graph is not: leave it out"),
        (("map.parquet", *options, "--what", "labels"), "leave it out, and give --labels run for the clusters"),
        (("map.parquet", *options, *options[:2]), "has a column 'kind', and so has what comes before it"),
    ):
        status, _, errors = scalemani("export", found.store.root, tmp_path / arguments[0], *arguments[1:])
        assert status == 2
        assert words in errors
    named = ("--what", "embedding")  # which a map is
    assert scalemani("export", found.store.root, tmp_path / "named.parquet", *options, *named) == (0, "", "")
    assert (tmp_path / "named.parquet").read_bytes() == (tmp_path / "map.parquet").read_bytes()


def test_a_map_goes_into_a_csv_with_texts_quoted_and_missing_values_empty(scalemani, runs, tmp_path):
    names = [f'cell "{row}", of worms' if row % 4 else "" for row in range(N)]
    values = [row / 7 if row % 5 else np.nan for row in range(N)]
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("name", "value"), *zip(names, values, strict=True)])
    options = ("--labels", tmp_path / "labels.csv")
    assert scalemani("export", runs["t-sne"].store.root, tmp_path / "map.csv", *options) == (0, "", "")
    with (tmp_path / "map.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["name"] for line in lines] == names
    assert [line["value"] for line in lines] == ["" if np.isnan(value) else str(value) for value in values]


def test_texts_that_spreadsheets_run_stand_behind_an_apostrophe_on_request_and_numbers_do_not(
    scalemani, runs, tmp_path
):
    formulas = ["=HYPERLINK(1)", "+cmd|1", "-2+3", "@SUM(1)", "\tx", "-5", "+1.5e3", "a=1", "plain"]
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    table = {"=name": [formulas[row % len(formulas)] for row in range(N)], "value": np.arange(N) - N / 2}
    parquet.write_table(arrow.table(table), tmp_path / "labels.parquet")
    options = ("--labels", tmp_path / "labels.parquet")
    found = {}
    for name, asked in (("bare", ()), ("escaped", ("--escape-formulas",))):
        root, out = runs["t-sne"].store.root, tmp_path / f"{name}.csv"
        assert scalemani("export", root, out, *options, *asked) == (0, "", "")
        with out.open(newline="") as file:
            found[name] = list(csv.reader(file))
    assert found["bare"][0][-2:] == ["=name", "value"]
    assert found["escaped"][0] == [*found["bare"][0][:-2], "'=name", "value"]
    assert [row[-2] for row in found["bare"][1:]] == table["=name"]
    run_by_them = set(formulas[:5])
    expected = [f"'{text}" if text in run_by_them else text for text in table["=name"]]
    assert [row[-2] for row in found["escaped"][1:]] == expected
    for row in (0, 1, 2, -1):  # the numbers, of which many are below zero
        assert [line[row] for line in found["bare"][1:]] == [line[row] for line in found["escaped"][1:]]
    status, _, errors = scalemani("export", runs["t-sne"].store.root, tmp_path / "m.parquet", *options, asked[0])
    assert (status, "is for the texts of a .csv" in errors) == (2, True)


def test_rows_of_a_map_are_told_where_some_were_left_out(points, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    params = Parameters().with_values({**VALUES, "components": {"disconnected": "largest"}})
    apart = np.concatenate([points[:50] + 1e3, points[:300]])
    found = run(open_points(apart), tmp_path / "run", "laplacian-eigenmaps", params, Executor())
    np.save(tmp_path / "labels.npy", np.arange(350))
    export_map(found, tmp_path / "map.parquet", [str(tmp_path / "labels.npy")])
    table = parquet.read_table(tmp_path / "map.parquet")
    np.testing.assert_array_equal(table["input_row"], found.input_rows)
    np.testing.assert_array_equal(table["labels.npy"], found.input_rows)
    export_map(found, tmp_path / "map.csv", [str(tmp_path / "labels.npy")])
    names, *lines = (line.split(",") for line in (tmp_path / "map.csv").read_text().splitlines())
    assert names == ["row", "x", "y", "labels.npy"]
    assert [line[0] for line in lines] == [line[3] for line in lines] == [str(row) for row in found.input_rows]
    np.testing.assert_array_equal(np.array([line[1:3] for line in lines], float), found.embedding[...])
