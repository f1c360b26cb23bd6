"""Columns of tables: numbers, texts and categories come as they were written, what is missing is told."""

import contextlib

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import zarr

from scalemani.errors import ConfigError, DataError, StoreError, UnsafeStoreError
from scalemani.interfaces.report.reading import is_classes
from scalemani.io.figures.look import colours_of_labels
from scalemani.io.sources import named_labels, open_columns, open_labels, open_points
from scalemani.io.sources.label_values import categories_of, colours_of_categories
from scalemani.io.sources.labels import gene_columns

CELLS = pa.table(
    {
        "count": pa.array([3, 1, None], pa.int32()),
        "kind": pa.array(["b", "a", None]).dictionary_encode(),
        "name": pa.array(["x", None, "z"]),
        "embedding": pa.array([[1.0], [2.0], [3.0]]),
    }
)


def is_a_ramp(values):
    """Return whether pictures and reports take labels (N,) as values along a ramp, and not as classes."""
    colours = colours_of_labels(values, len(values))
    assert bool(colours.classes) == is_classes(values.astype(int) if values.dtype.kind == "f" else values)
    return colours.limits is not None


def test_columns_of_parquet(tmp_path):
    pq.write_table(CELLS, tmp_path / "cells.parquet")
    found = open_columns(tmp_path / "cells.parquet", 3)
    assert list(found) == ["count", "kind", "name"]
    np.testing.assert_array_equal(found["count"], [3, 1, np.nan])
    assert found["kind"].tolist() == ["b", "a", ""]
    assert found["name"].tolist() == ["x", "", "z"]
    assert open_labels(f"{tmp_path}/cells.parquet::kind").tolist() == ["b", "a", ""]
    folder = tmp_path / "many.parquet"
    folder.mkdir()
    for number in (10, 2):
        pq.write_table(pa.table({"part": [number]}), folder / f"part.{number}.parquet")
    assert open_labels(folder).tolist() == [2, 10]


def test_columns_of_csv(tmp_path):
    (tmp_path / "cells.csv").write_bytes('﻿side,"a, b"\r\n1,one\r\n,"two, three"\r\n'.encode())
    found = open_columns(tmp_path / "cells.csv", 2)
    np.testing.assert_array_equal(found["side"], [1.0, np.nan])
    assert found["a, b"].tolist() == ["one", "two, three"]
    assert list(open_columns(f"{tmp_path}/cells.csv::side")) == ["side"]
    (tmp_path / "whole.csv").write_text("a,b\n1,1\n2,2.5\n")
    assert [values.dtype.kind for values in open_columns(tmp_path / "whole.csv").values()] == ["i", "f"]
    (tmp_path / "one.csv").write_text("1\n2\n")
    assert {name: values.tolist() for name, values in open_columns(tmp_path / "one.csv").items()} == {"one.csv": [1, 2]}


def write(group, name, values):
    """Write an array, or a column that is made of several, into a group of HDF5 or zarr."""
    if isinstance(values, dict):
        inside = group.create_group(name)
        for part, given in values.items():
            write(inside, part, given)
    elif isinstance(group, zarr.Group):
        found = np.asarray(values)
        kind = "string" if found.dtype.kind == "U" else found.dtype
        group.create_array(name, shape=found.shape, dtype=kind, chunks=(2,) * found.ndim)[...] = found
    else:
        group[name] = values


@contextlib.contextmanager
def annotated(path, kind):
    """Give a new AnnData of a kind as its root group."""
    if kind == "h5ad":
        with h5py.File(path, "w") as file:
            yield file
    else:
        yield zarr.open_group(path, mode="w", zarr_format=int(kind[-1]))


@pytest.fixture(params=["h5ad", "zarr 2", "zarr 3"])
def kind(request):
    return request.param


@pytest.fixture
def cells(tmp_path, kind):
    return tmp_path / f"cells.{kind.split()[0]}"


def test_columns_of_anndata(cells, kind):
    kinds = {"categories": ["neuron", "muscle"], "codes": np.array([1, -1, 0], np.int8)}
    with annotated(cells, kind) as file:
        obs = file.create_group("obs")
        obs.attrs["_index"] = "names"
        obs.attrs["column-order"] = ["size", "kind", "genes", "donor"]
        write(obs, "names", ["x", "y", "z"])
        write(obs, "size", [0.5, 1.5, 2.5])
        write(obs, "kind", kinds)
        write(obs, "genes", {"values": [5, 6, 7], "mask": [False, True, False]})
        write(obs, "donor", {"values": ["a", "b", "a"], "mask": [False, False, True]})
    found = open_columns(cells, 3)
    assert list(found) == ["size", "kind", "genes", "donor"]
    assert found["kind"].tolist() == ["muscle", "", "neuron"]
    assert found["donor"].tolist() == ["a", "b", ""]
    assert categories_of(found["kind"][1:]) == ("neuron", "muscle")
    np.testing.assert_array_equal(found["genes"], [5, np.nan, 7])
    assert list(open_columns(f"{cells}::obs/kind")) == ["kind"]
    with pytest.raises(ConfigError, match=rf"has 4 columns: say which, as in [^:]*{cells.name}::obs/size$"):
        open_labels(f"{cells}::obs")
    with pytest.raises((ConfigError, StoreError), match=r"cells.*obs/kinds?.*(kind|obs)"):
        open_columns(f"{cells}::obs/kinds")


def test_categories_of_anndata_have_the_colours_that_scanpy_gave_them(cells, kind):
    column = {"categories": ["muscle", "neuron"], "codes": np.array([1, -1, 0], np.int8)}
    with annotated(cells, kind) as file:
        obs, uns = file.create_group("obs"), file.create_group("uns")
        for name in ("kind", "stage", "batch", "size"):
            write(obs, name, column)
        write(obs, "weight", [0.5, 1.5, 2.5])
        write(uns, "kind_colors", ["#00FF00", "#0000ff80", "#123456"])  # a category was taken out of the cells
        write(uns, "stage_colors", ["no colour", "rebeccapurple"])
        write(uns, "batch_colors", ["#ff0000"])
        write(uns, "weight_colors", [1, 2])
    found = open_columns(cells, 3)
    assert colours_of_categories(found["kind"][[2, 0]]) == {"muscle": "#00ff00", "neuron": "#0000ff"}
    assert colours_of_categories(found["stage"]) == {"neuron": "#663399"}
    assert all(not colours_of_categories(found[name]) for name in ("batch", "size", "weight"))
    drawn = colours_of_labels(open_columns(f"{cells}::obs/kind", 3)["kind"], 3)
    assert drawn.classes == ("muscle", "neuron")
    assert drawn.colours[:2].tolist() == [[0, 1, 0], [0, 0, 1]]
    palette = colours_of_labels(np.array(["muscle", "neuron"]), 2).colours
    half = colours_of_labels(found["stage"], 3).colours
    np.testing.assert_allclose(half[:2], [palette[0], [0.4, 0.2, 0.6]])


@pytest.mark.parametrize("stored", ["sparse", "dense"])
def test_genes_of_anndata_are_columns_of_its_matrices(cells, kind, stored):
    draw = np.random.default_rng(0)
    counts, scaled = draw.poisson(0.5, (70, 5)).astype(np.float32), draw.normal(size=(70, 5)).astype(np.float32)
    names = ["CD3D", "HLA-A/B", "MS4A1", "twice", "twice"]
    with annotated(cells, kind) as file:
        for group, matrix in ((file, scaled), (file.create_group("raw"), counts)):
            var = group.create_group("var")
            var.attrs["_index"] = "names"
            write(var, "names", names)
            rows = sp.csr_matrix(matrix)
            parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
            write(group, "X", parts if stored == "sparse" else matrix)
            if stored == "sparse":
                group["X"].attrs.update({"shape": list(matrix.shape), "encoding-type": "csr_matrix"})
        write(file.create_group("layers"), "counts", counts)
    found = open_columns(f"{cells}::X/MS4A1,HLA-A/B", 70)
    assert list(found) == ["MS4A1", "HLA-A/B"]
    np.testing.assert_array_equal(np.column_stack(list(found.values())), scaled[:, [2, 1]])
    by_blocks = gene_columns(cells, "X", ["MS4A1"], at_once=140)["MS4A1"]
    np.testing.assert_array_equal(by_blocks, scaled[:, 2])
    for matrix in ("raw/X", "layers/counts"):
        found = open_labels(f"{cells}::{matrix}/CD3D")
        np.testing.assert_array_equal(found, counts[:, 0])
        assert is_a_ramp(found[::2])
        assert not is_a_ramp(counts[:, 0])
    for member, message in (("X/CD3", "no column 'CD3': did you mean 'CD3D'"), ("X/twice", "more than one column")):
        with pytest.raises(ConfigError, match=message):
            open_columns(f"{cells}::{member}")


def test_a_column_of_a_sparse_matrix_is_labels_and_a_wider_one_is_refused():
    matrix = sp.random(50, 3, density=0.4, format="csr", random_state=0)
    for column in (matrix[:, [1]], sp.csc_matrix(matrix)[:, [1]], matrix[:, [1]].toarray()):
        np.testing.assert_array_equal(open_labels(column, 50), matrix.toarray()[:, 1])
        assert list(named_labels(column, 50)) == ["labels 1"]
    for kind in (np.int64, np.float32, np.uint8):  # raw counts, as `adata[:, gene].X` has them
        counts = sp.csr_matrix(np.arange(50).reshape(-1, 1) % 4, dtype=kind)
        assert is_a_ramp(named_labels({"CD3D": counts}, 50)["CD3D"])
        assert not is_a_ramp(named_labels({"batch": counts.toarray().ravel()}, 50)["batch"])
    with pytest.raises(DataError, match=r"one label a point, got an array of shape \(50, 3\)"):
        open_labels(matrix, 50)


def test_labels_may_be_a_zarr_array(tmp_path):
    write(zarr.open_group(tmp_path, mode="w"), "labels.zarr", [2, 1, 2])
    assert open_labels(tmp_path / "labels.zarr", 3).tolist() == [2, 1, 2]


def test_a_zarr_store_with_pickled_labels_or_codes_of_no_category_is_refused(tmp_path):
    for name, column, kind, message in (
        ("pickled", {"values": ["a", "b"], "mask": [False, False]}, UnsafeStoreError, "uses the codec 'pickle'"),
        ("beyond", {"categories": ["a"], "codes": [0, 1]}, DataError, "codes beyond its 1 categories"),
    ):
        store = tmp_path / f"{name}.zarr"
        write(zarr.open_group(store, mode="w", zarr_format=2), "obs", {"kind": column})
        described = store / "obs" / "kind" / "values" / ".zarray"
        if name == "pickled":
            described.write_text(described.read_text().replace("vlen-utf8", "pickle"))
        with pytest.raises(kind, match=message):
            open_columns(store, 2)


def test_categories_are_not_taken_from_another_file(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["secret"] = ["a", "b"]
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        column = file.create_group("obs/kind")
        column["codes"] = np.array([1, 0], np.int8)
        column["categories"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "secret")
    with pytest.raises(UnsafeStoreError, match="from another file"):
        open_columns(tmp_path / "cells.h5ad", 2)


def test_colours_are_not_taken_from_another_file(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["secret"] = ["#000000", "#ffffff"]
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        column = file.create_group("obs/kind")
        column["categories"], column["codes"] = ["a", "b"], np.array([1, 0], np.int8)
        file["uns/kind_colors"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "secret")
    with pytest.raises(UnsafeStoreError, match="from another file"):
        open_columns(tmp_path / "cells.h5ad", 2)


def test_columns_that_are_refused(tmp_path):
    pq.write_table(CELLS, tmp_path / "cells.parquet")
    (tmp_path / "ragged.csv").write_text("a,b\n1,2\n3\n")
    for location, kind, message in (
        ("cells.parquet::kinds", ConfigError, "no column kinds; it has count, kind"),
        ("cells.parquet::embedding", DataError, "column embedding must hold numbers or texts, got list"),
        ("ragged.csv", DataError, "line 3: 2 values expected"),
        ("none.parquet", StoreError, "no file of labels"),
    ):
        with pytest.raises(kind, match=message):
            open_columns(f"{tmp_path}/{location}")
    for chosen in ("", "::count,kind"):
        with pytest.raises(ConfigError, match=r"has \d columns: say which, as in [^:]*cells.parquet::count$"):
            open_labels(f"{tmp_path}/cells.parquet{chosen}")
    with pytest.raises(DataError, match=r"column count has 3 labels for 4 points"):
        open_columns(f"{tmp_path}/cells.parquet::count", 4)


def test_a_stored_frame_is_no_matrix_of_points(tmp_path):
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        frame = file.create_group("obsm/markers")
        frame.attrs["encoding-type"] = "dataframe"
        frame["CD3"] = [0.5, 1.5]
    with pytest.raises(DataError, match=r"is a frame and no matrix; it holds CD3: give it in Python, as adata.obsm"):
        open_points(f"{tmp_path}/cells.h5ad::obsm/markers")


def test_columns_of_a_file_with_tabs(tmp_path):
    (tmp_path / "cells.tsv").write_text("count\tkind\n1,5\tcat, large\n2\tdog\n\n")
    found = open_columns(tmp_path / "cells.tsv", 2)
    assert list(found) == ["count", "kind"]
    assert found["kind"].tolist() == ["cat, large", "dog"]
    (tmp_path / "kinds.TSV").write_text("cat\ndog\n")
    assert open_labels(tmp_path / "kinds.TSV", 2).tolist() == ["cat", "dog"]


KINDS = ["cat", "dog, large", 'the "best"', "\u2028 of\x0cletters\x85"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("suffix", ["csv", "txt"])
def test_one_column_is_read_as_spreadsheets_and_r_write_it(tmp_path, suffix, end):
    place = tmp_path / f"kinds.{suffix}"
    lines = ['"cat"', '"dog, large"', '"the ""best"""', f'"{KINDS[3]}"', 'a "word" within', '""', "5' 11\"", "", " "]
    place.write_text(end.join(lines) + end, encoding="utf-8-sig", newline="")
    expected = [kind.strip() for kind in KINDS] + ['a "word" within', "", "5' 11\""]
    assert open_labels(place).tolist() == expected
    place.write_text("1\n\n2\n")
    with pytest.raises(DataError, match="line 2: one value a line expected, got '': write NA where a value is missing"):
        open_labels(place)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_empty_lines_at_the_end_of_a_table_are_skipped_and_others_are_refused(tmp_path, end):
    place = tmp_path / "cells.csv"
    place.write_text(end.join(["kind,n", "cat,1", '"dog",2', "", "  ", ""]), newline="")
    assert open_labels(f"{place}::kind").tolist() == ["cat", "dog"]
    place.write_text(end.join(["kind", "cat", '""', ""]), newline="")
    assert open_labels(f"{place}::kind").tolist() == ["cat", ""]
    place.write_text(end.join(["kind,n", "cat,1", "", "dog,2"]), newline="")
    with pytest.raises(DataError, match="line 3: 2 values expected"):
        open_labels(f"{place}::kind")


@pytest.mark.parametrize("gap", ["NA", "#N/A", "null", "None", "<NA>", "N/A"])
def test_words_for_a_gap_are_missing_with_a_warning(tmp_path, gap):
    (tmp_path / "cells.csv").write_text(f"age,country,code\n31,{gap},007\n{gap},DE,{gap}\n2.5,FR,010\n")
    with pytest.warns(UserWarning, match=rf"cells.csv, column age: 1 of 3 values are {gap} among numbers") as told:
        found = open_columns(tmp_path / "cells.csv", 3)
    among_texts = gap if gap == "None" else ""  # which may well be the name of a class
    assert len(told) == (1 if among_texts else 3)
    np.testing.assert_array_equal(found["age"], [31, np.nan, 2.5])
    assert found["country"].tolist() == [among_texts, "DE", "FR"]
    assert found["code"].tolist() == ["007", among_texts, "010"]
    (tmp_path / "ages.txt").write_text(f"31\n{gap}\n7\n")
    with pytest.warns(UserWarning, match="ages.txt: 1 of 3"):
        np.testing.assert_array_equal(open_labels(tmp_path / "ages.txt"), [31, np.nan, 7])


@pytest.mark.parametrize(("name", "letter"), [("semicolons", ";"), ("tabs", "\t")])
@pytest.mark.parametrize("column", ["", "::kind"])
def test_tables_with_another_separator_are_refused_by_its_name(tmp_path, name, letter, column):
    place = tmp_path / "european.csv"
    place.write_text(f"kind{letter}n\ncat{letter}0,5\ndog{letter}1,5\n\n")
    with pytest.raises(DataError, match=f"has {name} between its values: write it with commas"):
        open_columns(f"{place}{column}")
    place.write_text(f"kind,sets\ncat,a{letter}b\ndog,c\n")
    assert open_labels(f"{place}::sets").tolist() == [f"a{letter}b", "c"]
