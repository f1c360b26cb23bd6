"""Points as users hold them: AnnData objects, and Dask arrays that live on a cluster."""

from types import SimpleNamespace

import dask.array as da
import h5py
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from distributed import Client

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.context import LEDGER_VARIABLE
from scalemani.engine.workers.executor import Executor
from scalemani.errors import DataError
from scalemani.io.sources import open_points, points_in_memory, take_representation
from scalemani.runs.walk import run


class Annotated(SimpleNamespace):
    """What AnnData is to whoever looks at it: names of rows, a table of representations, and subsets by any index."""

    def __len__(self):
        return len(self.obs_names)

    def __getitem__(self, index):
        return self


@pytest.fixture(scope="module")
def components():
    return np.random.default_rng(0).normal(size=(400, 6))


@pytest.fixture
def cells(components):
    return Annotated(obs_names=[str(row) for row in range(400)], X=np.zeros((400, 9)), obsm={"X_pca": components})


def test_anndata_stands_for_its_principal_components(components, cells):
    np.testing.assert_array_equal(open_points(cells).read(0, 400), components)
    np.testing.assert_array_equal(points_in_memory(cells), components)
    model = sm.LaplacianEigenmaps(perplexity=8).fit(cells)
    np.testing.assert_array_equal(model.embedding_, sm.LaplacianEigenmaps(perplexity=8).fit(components).embedding_)
    np.testing.assert_array_equal(model.transform(cells), model.transform(components))
    assert model.n_features_in_ == 6
    np.testing.assert_array_equal(sm.knn_graph(cells, 5).indices, sm.knn_graph(components, 5).indices)


def test_the_representation_of_an_anndata_can_be_named(components, cells, tmp_path):
    cells.obsm["X_other"] = components[:, :4]
    np.testing.assert_array_equal(take_representation(cells, "X_other"), components[:, :4])
    np.testing.assert_array_equal(take_representation(cells, "X"), cells.X)
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        file["X"], file["obsm/X_pca"], file["obsm/X_other"] = cells.X, components, components[:, :4]
    for given in (cells, tmp_path / "cells.h5ad", str(tmp_path / "cells.h5ad")):
        assert open_points(take_representation(given)).shape == (400, 6)
        model = sm.LandmarkPCA(n_landmarks=50, use_rep="X_other").fit(given)
        assert (model.n_features_in_, model.transform(given).shape) == (4, (400, 2))
        np.testing.assert_array_equal(
            sm.knn_graph(given, 3, use_rep="X_other").indices, sm.knn_graph(components[:, :4], 3).indices
        )
        assert sm.KNeighborsTransformer(3, use_rep="X_other").fit(given).n_features_in_ == 4
    assert open_points(f"{tmp_path}/cells.h5ad::X").shape == (400, 9)
    del cells.obsm["X_pca"]
    assert open_points(cells).shape == (400, 9)


def test_new_points_are_taken_from_the_representation_that_is_named(components, cells, tmp_path):
    cells.obsm["X_other"] = components[:, :4]
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        file["X"], file["obsm/X_pca"], file["obsm/X_other"] = cells.X, components, components[:, :4]
    sm.LaplacianEigenmaps(perplexity=8, n_landmarks=50, store=tmp_path / "run").fit(components[:300, :4])
    placed = []
    for given in (cells, tmp_path / "cells.h5ad", str(tmp_path / "cells.h5ad")):
        sm.transform(tmp_path / "run", given, tmp_path / "placed.npy", use_rep="X_other")
        placed.append(np.load(tmp_path / "placed.npy"))
    np.testing.assert_array_equal(placed[1:], [placed[0]] * 2)
    with pytest.raises(DataError, match=r"6 columns|6 features"):
        sm.transform(tmp_path / "run", cells, tmp_path / "placed.npy")
    assert sm.append(tmp_path / "run", tmp_path / "cells.h5ad", use_rep="X_other").appended == 400


def test_landmark_features_take_an_anndata(components, cells):
    model = sm.LandmarkFeatures(5, method="random").fit(cells)
    np.testing.assert_array_equal(model.transform(cells), model.transform(components))


def test_a_representation_that_is_not_there_is_refused_before_any_work(cells, monkeypatch, tmp_path):
    monkeypatch.setenv(LEDGER_VARIABLE, str(tmp_path / "ledger"))
    with pytest.raises(DataError, match=r"no obsm\['X_umap'\], got obsm of X_pca: give use_rep one of these, or 'X'"):
        sm.TSNE(use_rep="X_umap").fit(cells)
    cells.X, cells.obsm = None, {}
    with pytest.raises(DataError, match="has no X, got obsm of nothing"):
        sm.TSNE().fit(cells)
    assert not (tmp_path / "ledger").exists()


@pytest.mark.parametrize("given", ["persisted", "made of futures"])
def test_a_dask_array_that_lives_on_a_cluster_is_read_through_its_client(components, given):
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        if given == "persisted":
            array = da.from_array(components, chunks=(150, 6)).persist()
        else:
            array = da.from_delayed(client.scatter(components), components.shape, components.dtype)
        found = sm.knn_graph(array, 5)
        np.testing.assert_array_equal(open_points(array[10:300] + 1).read(5, 50), components[15:60] + 1)
    expected = sm.knn_graph(components, 5)
    np.testing.assert_array_equal(found.indices[...], expected.indices)


class Labelled:
    """A labelled array: a table of numbers with two axes that also gives itself as a long table of Arrow."""

    def __init__(self, values):
        self.values, self.shape, self.dtype = values, values.shape, values.dtype

    def __len__(self):
        return len(self.values)

    def __getitem__(self, rows):
        return Labelled(self.values[rows])

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)

    def __arrow_c_stream__(self, requested_schema=None):
        return pa.table({"value": self.values.ravel()}).__arrow_c_stream__(requested_schema)


def test_an_array_is_read_as_one_whatever_other_protocols_it_speaks(components):
    given = Labelled(components)
    np.testing.assert_array_equal(open_points(given).read(3, 9), components[3:9])
    np.testing.assert_array_equal(sm.knn_graph(given, 5).indices, sm.knn_graph(components, 5).indices)
    assert sm.LandmarkPCA(n_landmarks=50).fit(given).n_features_in_ == 6


@pytest.mark.parametrize("chunks", [None, 64])
def test_labelled_arrays_of_xarray(components, chunks):
    xarray = pytest.importorskip("xarray")
    given = xarray.DataArray(components, dims=("cell", "gene"), coords={"gene": list("abcdef")})
    given = given if chunks is None else given.chunk({"cell": chunks})
    np.testing.assert_array_equal(open_points(given).read(3, 200), components[3:200])
    np.testing.assert_array_equal(sm.knn_graph(given, 5).indices, sm.knn_graph(components, 5).indices)


def test_a_dask_array_of_sparse_blocks_is_the_points_that_it_holds():
    points = sp.random(300, 40, density=0.2, format="csr", random_state=0)
    blocks = da.from_array(points.toarray(), chunks=(100, 40)).map_blocks(sp.csr_matrix)
    np.testing.assert_array_equal(open_points(blocks).read(30, 250), points[30:250].toarray())
    expected = sm.knn_graph(points.toarray(), 5)
    for given in (blocks, Annotated(obs_names=[], X=blocks, obsm={})):
        np.testing.assert_array_equal(sm.knn_graph(given, 5).distances, expected.distances)


@pytest.mark.parametrize("columns", [40, 17])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array, sp.csc_matrix])
def test_sparse_blocks_of_few_values_stay_sparse_rows(kind, columns, tmp_path):
    points = sp.random(4300, 40, density=0.05, format="csr", random_state=0)
    blocks = da.from_array(points.toarray(), chunks=(1400, columns)).map_blocks(
        kind, dtype=float, meta=kind((0, 0), dtype=float)
    )
    source = open_points(blocks)
    assert abs(source.nonzeros / points.nnz - 1) < 0.1
    for start, stop in ((0, 4300), (1399, 3001), (7, 7)):
        assert (source.read_sparse(start, stop) != points[start:stop]).nnz == 0
        np.testing.assert_array_equal(source.read(start, stop), points[start:stop].toarray())
    keys = {
        run(open_points(given), tmp_path / str(number), "knn-graph", Parameters(), Executor(), only="points").keys[
            "points"
        ]
        for number, given in enumerate((points, blocks))
    }
    assert len(keys) == 1


def test_a_memory_map_is_read_by_blocks_and_never_copied_whole(components, tmp_path):
    np.save(tmp_path / "points.npy", components.astype(np.float16))
    mapped = np.load(tmp_path / "points.npy", mmap_mode="r")
    source = open_points(mapped)
    assert (source.shape, source.dtype, source.input_dtype) == ((400, 6), np.float32, np.float16)
    assert source.array is mapped
    np.testing.assert_array_equal(source.read(5, 50), mapped[5:50].astype(np.float32))
    found, expected = (sm.knn_graph(points, 5) for points in (mapped, np.array(mapped)))
    assert isinstance(found.indices, np.ndarray)
    np.testing.assert_array_equal(found.distances, expected.distances)
    model = sm.LandmarkPCA(n_landmarks=50).fit(mapped)
    np.testing.assert_array_equal(model.transform(mapped[:7]), model.transform(np.array(mapped)[:7]))
