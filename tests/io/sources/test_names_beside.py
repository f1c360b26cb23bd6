"""Names of columns that a file or store keeps beside a matrix: genes of an AnnData, coordinates of a labelled array."""

import contextlib
import pickle

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
import zarr

from scalemani.errors import DataError, UnsafeStoreError
from scalemani.io.sources import names_of, open_points

POINTS = np.random.default_rng(0).poisson(0.2, (30, 4)).astype(np.float32)
GENES = ("Sox2", "Pax6", "Olig2", "Gfapé")
KINDS = ["h5ad", "zarr 2", "zarr 3"]


@contextlib.contextmanager
def opened(folder, kind):
    """Give the root group of a new file or store of a kind."""
    if kind == "h5ad":
        with h5py.File(folder / "cells.h5ad", "w") as file:
            yield file
    else:
        yield zarr.open_group(folder / "cells.zarr", mode="w", zarr_format=int(kind[-1]))


def place(folder, kind, member):
    return f"{folder}/cells.{kind.split()[0]}::{member}"


def write(group, name, values):
    """Write an array, texts among them, or compressed sparse rows."""
    if sp.issparse(values):
        rows = group.create_group(name)
        rows.attrs.update({"encoding-type": "csr_matrix", "shape": list(values.shape)})
        for part in ("data", "indices", "indptr"):
            write(rows, part, getattr(values, part))
    elif isinstance(group, h5py.Group):
        group[name] = values
    elif isinstance(values, np.ndarray):
        group.create_array(name, data=values)
    else:
        group.create_array(name, shape=len(values), dtype="str")[...] = np.array(values, object)


def write_var(group, genes=GENES, index="_index"):
    var = group.create_group("var")
    var.attrs["_index"] = index
    write(var, index, genes)
    return var


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("matrix", [POINTS, sp.csr_matrix(POINTS)], ids=["dense", "sparse"])
def test_genes_name_the_columns_of_x_and_layers_and_none_of_obsm(tmp_path, kind, matrix):
    with opened(tmp_path, kind) as root:
        for name in ("X", "layers/counts", "obsm/genes", "raw/X"):
            write(root, name, matrix)
        write_var(root, index="gene")
        write_var(root["raw"], GENES[::-1])
    expected = {"X": GENES, "layers/counts": GENES, "/layers/counts/": GENES, "obsm/genes": (), "raw/X": GENES[::-1]}
    for member, names in expected.items():
        source = open_points(place(tmp_path, kind, member))
        assert names_of(source) == names_of(pickle.loads(pickle.dumps(source))) == names
        np.testing.assert_array_equal(source.read(3, 20), POINTS[3:20])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", [False, True])
def test_texts_with_a_mask_are_names_where_none_is_missing(tmp_path, kind, missing):
    with opened(tmp_path, kind) as root:
        write(root, "X", POINTS)
        var = root.create_group("var")
        var.attrs["_index"] = "_index"
        texts = var.create_group("_index")
        write(texts, "values", GENES)
        write(texts, "mask", np.array([False, False, missing, False]))
    assert names_of(open_points(place(tmp_path, kind, "X"))) == (() if missing else GENES)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "genes", [("0", "1", "2", "3"), np.arange(4), ("a", "b", "a", "c"), None], ids=["numbered", "int", "twice", "none"]
)
def test_numbers_and_repeated_genes_name_nothing(tmp_path, kind, genes):
    with opened(tmp_path, kind) as root:
        write(root, "X", POINTS)
        if genes is not None:
            write_var(root, genes)
    assert names_of(open_points(place(tmp_path, kind, "X"))) == ()


@pytest.mark.parametrize("kind", KINDS)
def test_genes_of_another_number_than_columns_are_damage(tmp_path, kind):
    with opened(tmp_path, kind) as root:
        write(root, "X", POINTS)
        write_var(root, GENES[:3])
    with pytest.raises(DataError, match="has 4 columns, and var/_index, where their names are, 3 values"):
        open_points(place(tmp_path, kind, "X"))


def test_genes_in_another_file_are_refused(tmp_path):
    with h5py.File(tmp_path / "other.h5ad", "w") as file:
        write_var(file)
    with opened(tmp_path, "h5ad") as root:
        write(root, "X", POINTS)
        root["var"] = h5py.ExternalLink("other.h5ad", "var")
    with pytest.raises(UnsafeStoreError, match="::var takes its values from another file"):
        open_points(place(tmp_path, "h5ad", "X"))


def test_a_dataset_of_an_open_file_has_the_names_beside_it_and_leaves_the_file_open(tmp_path):
    with h5py.File(tmp_path / "other.h5ad", "w") as file:
        write_var(file)
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        for name in ("X", "layers/counts", "obsm/X_pca", "apart/X"):
            file[name] = POINTS
        write_var(file)
        file["apart/var"] = h5py.ExternalLink("other.h5ad", "var")
        found = {name: names_of(open_points(file[name])) for name in ("X", "layers/counts", "obsm/X_pca")}
        assert found == {"X": GENES, "layers/counts": GENES, "obsm/X_pca": ()}
        with pytest.raises(UnsafeStoreError, match="apart/var takes its values from another file"):
            open_points(file["apart/X"])
        np.testing.assert_array_equal(open_points(file["X"]).read(3, 20), POINTS[3:20])


def labelled(**coordinates):
    xarray = pytest.importorskip("xarray")
    return xarray.DataArray(POINTS, dims=("cell", "gene"), coords=coordinates, name="v")


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification")
def test_coordinates_of_columns_are_their_names(tmp_path, zarr_format):
    cells = [f"cell{number}" for number in range(30)]
    given = {
        "named": (labelled(gene=list(GENES), cell=cells), GENES),
        "numbered": (labelled(gene=np.arange(4), cell=cells), ()),
        "plain": (labelled(cell=cells), ()),
        "beside": (labelled(symbol=("gene", list(GENES))), ()),
    }
    for name, (array, names) in given.items():
        assert names_of(open_points(array)) == names_of(open_points(array.chunk({"cell": 7}))) == names
        array.to_dataset().to_zarr(tmp_path / name, mode="w", zarr_format=zarr_format)
        stored = open_points(f"{tmp_path / name}::v")
        assert names_of(stored) == names_of(open_points(zarr.open(tmp_path / name)["v"])) == names
        np.testing.assert_array_equal(stored.read(3, 20), POINTS[3:20])


@pytest.mark.parametrize("coordinate", [list(GENES), np.arange(4.0)], ids=["texts", "numbers"])
def test_coordinates_of_netcdf_are_names_where_they_are_texts(tmp_path, coordinate):
    with h5py.File(tmp_path / "cube.h5", "w") as file:
        file["group/v"], file["group/gene"] = POINTS, coordinate
        file["group/gene"].make_scale("gene")
        file["group/v"].dims[1].attach_scale(file["group/gene"])
    source = open_points(f"{tmp_path}/cube.h5::group/v")
    assert names_of(source) == (GENES if isinstance(coordinate, list) else ())


def test_dimensions_that_lead_nowhere_name_nothing(tmp_path):
    with h5py.File(tmp_path / "cube.h5", "w") as file:
        file["v"], file["gene"] = POINTS, list(GENES)
        file["gene"].make_scale("gene")
        file["v"].dims[1].attach_scale(file["gene"])
        del file["gene"]
    source = open_points(f"{tmp_path}/cube.h5::v")
    assert names_of(source) == ()
    np.testing.assert_array_equal(source.read(0, 30), POINTS)
