"""The catalogue says what runs store: all of it, and nothing else."""

import ast
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zarr

import scalemani
import scalemani as sm
from scalemani.engine.reading import ArrayReader
from scalemani.errors import StoreError
from scalemani.stages.arrays.affinities import StoredNormalizedAffinities, StoredSymmetricAffinities
from scalemani.stages.arrays.embeddings import StoredPlacement
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import StoredPartition, StoredPoints
from scalemani.stages.table import (
    BY_STAGE,
    STAGES,
)
from scalemani.store.groups import StageGroup
from scalemani.store.schema import AS_DISTANCES, AS_POINTS
from tests.stages.arrays.specification import dimension_meanings, stored_stages

# Folders whose modules name an array through the catalogue alone, and the functions that take the name of one.
NAMELESS = ("stages", "runs", "interfaces", "io/figures")
READERS = {"read", "read_block", "read_part", "array", "resident", "mapped", "read_large", "gather_rows", "gather_into"}


def stored_arrays(folder):
    """Yield (group folder, stage, path, array) of all arrays of a store, read by zarr alone."""
    for group in sorted(Path(folder).glob("stages/*/*")):
        for metadata in sorted(group.glob("arrays/**/zarr.json")):
            if json.loads(metadata.read_text())["node_type"] == "array":
                path = str(metadata.parent.relative_to(group / "arrays"))
                yield group, group.parent.name, path, zarr.open_array(metadata.parent, mode="r")


def expected_dtypes(described, points_dtype):
    """Return the dtypes that the format gives an array of a run, as FORMAT.md words it."""
    if described.dtype is AS_POINTS:
        return {points_dtype}
    if described.dtype is AS_DISTANCES:
        return {"float64" if points_dtype == "float64" else "float32"}
    return set(described.dtypes)


def test_what_is_described_is_of_stages_that_there_are():
    """A stage that has no description stores no array: groups refuse what is not described."""
    assert set(BY_STAGE) - set(STAGES) == {StoredPlacement.STAGE}  # no stage of a run
    assert all(described.stage == stored.STAGE for stored in stored_stages() for described in stored.ARRAYS)


@pytest.mark.parametrize("stored", stored_stages(), ids=lambda stored: stored.STAGE)
def test_no_two_arrays_of_a_stage_have_one_path(stored):
    paths = [path for described in stored.ARRAYS for path in described.paths]
    assert len(set(paths)) == len(paths)


def test_an_array_is_its_description_of_a_class_and_its_reader_of_a_group(tmp_path):
    group = partition(tmp_path)
    assert StoredPartition.mean in StoredPartition.ARRAYS
    assert (StoredPartition.mean.name, StoredPartition.mean.dims) == ("mean", ("feature",))
    assert StoredPartition(group).mean == ArrayReader(group, "mean")
    own, inherited = StoredNormalizedAffinities.values, StoredNormalizedAffinities.degrees
    assert (own.stage, inherited.stage) == ("normalized_affinities", "normalized_affinities")
    assert own.meaning != StoredSymmetricAffinities.values.meaning
    assert replace(inherited, stage="symmetric_affinities") == StoredSymmetricAffinities.degrees


def test_every_dimension_has_a_meaning_and_is_one_of_some_array():
    named = {dim for stored in stored_stages() for described in stored.ARRAYS for dim in described.dims}
    assert named == set(dimension_meanings())


RUNS = ("finished", "wide", "pictured", "sparse_run", "weighted", "grown", "by_leaves", "by_stripes")  # fixtures


def run_named(request, which):
    """Return the run of a fixture, or of those that share a store one."""
    runs = request.getfixturevalue(which)
    return runs["t-sne"] if isinstance(runs, dict) else runs


@pytest.mark.parametrize("which", RUNS)
def test_what_is_stored_is_what_is_described(which, request, description_of):
    one = run_named(request, which)
    for _, stage, path, array in stored_arrays(one.store.root):
        described = description_of(stage, path)
        where = f"{stage}/{path}"
        assert array.dtype.name in expected_dtypes(described, one.dimensions.dtype), where
        assert array.metadata.dimension_names == described.dims if described.dims else array.ndim == 0, where
        assert dict(array.attrs) == {"meaning": described.meaning, "units": described.units}, where


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """A run that points were appended to."""
    points, folder = np.random.default_rng(0).normal(size=(330, 4)), tmp_path_factory.mktemp("grown") / "run"
    sm.knn_graph(points[:300], 5, store=folder)
    return sm.append(folder, points[300:]).run


@pytest.fixture(scope="module")
def in_pieces(tmp_path_factory):
    """A run of affinities of two cliques that nothing joins."""
    clique, folder = np.ones((9, 9)), tmp_path_factory.mktemp("pieces") / "run"
    with pytest.warns(sm.errors.ScalemaniWarning, match="2 pieces"):
        return sm.LaplacianEigenmaps(affinity="precomputed", store=folder).fit(np.kron(np.eye(2), clique)).run_


@pytest.fixture(scope="module")
def by_logarithms(tmp_path_factory):
    """A descent whose forces are divided by sums, and which is pulled to a reference."""
    points, folder = np.random.default_rng(0).normal(size=(60, 4)), tmp_path_factory.mktemp("logarithms") / "run"
    settings = {"layout.max_iterations": 3, "layout.converged": 0.0}
    return sm.SNE(perplexity=3, store=folder, settings=settings, global_weight=1.0).fit(points).run_


def test_runs_store_every_array_that_is_described(request, description_of):
    seen = {
        (stage, description_of(stage, path))
        for which in (*RUNS, "in_pieces", "by_logarithms")
        for _, stage, path, _ in stored_arrays(run_named(request, which).store.root)
    }
    described = {(stored.STAGE, one) for stored in stored_stages() for one in stored.ARRAYS}
    assert described == seen


def test_dimensions_of_one_name_have_one_length_in_a_group(finished, description_of):
    ragged = {"row", "row_bound", "nonzero", "node", "node_bound", "joined_node", "source_landmark", "source_block"}
    lengths = {}
    for group, stage, path, array in stored_arrays(finished["t-sne"].store.root):
        for dim, length in zip(description_of(stage, path).dims, array.shape, strict=True):
            if dim not in ragged and not dim.endswith("_nonzero"):
                assert lengths.setdefault((group, dim), length) == length, (stage, path, dim)
    assert {length for (_, dim), length in lengths.items() if dim == "point"} == {2500}


def partition(tmp_path):
    return StageGroup(tmp_path, "stages/partition/key", 1024)


MODELS = {
    StoredPartition.mean: np.zeros(4),
    StoredPartition.axes: np.eye(4, 2, dtype=np.float32),
    StoredPartition.scale: np.array(1.0),
    StoredPartition.centroids: np.zeros((3, 2), np.float32),
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"centers": np.zeros(3)}, "does not describe"),
        ({StoredPartition.mean: np.zeros(4, np.float32)}, "float64: store what is described"),
        ({StoredPartition.mean: np.zeros((4, 1))}, "whole of 1 dimensions"),
        ({StoredPartition.axes: np.eye(5, 2, dtype=np.float32)}, "has 5 of feature, another .* has 4"),
        ({StoredPartition.cells: np.zeros(3, np.int32)}, "describes cells of stage partition as rows"),
        ({StoredPoints.dense_points: np.zeros((3, 2), np.float32)}, "of stage points"),
    ],
)
def test_whole_arrays_that_are_not_as_described_are_refused_and_nothing_is_written(tmp_path, change, words):
    group = partition(tmp_path)
    with pytest.raises(StoreError, match=words):
        group.write_whole({**MODELS, **change})
    assert group.units == []
    assert not list(tmp_path.rglob("zarr.json"))
    group.write_whole(MODELS)
    assert group.units == ["whole"]


def test_an_array_in_another_folder_is_refused(tmp_path):
    with pytest.raises(StoreError, match="stores level_1/mean"):
        partition(tmp_path).write_whole(MODELS, "level-1", "level_1")


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32"])
def test_row_arrays_of_another_dtype_are_refused(tmp_path, dtype):
    group = partition(tmp_path)
    group.create(1500, [StoredPartition.cells.sized()])
    with pytest.raises(StoreError, match="int32"):
        group.write_block(0, {StoredPartition.cells: np.zeros(1024, dtype)})
    assert not group.committed("block-000000")


def test_a_dtype_that_follows_the_points_has_to_be_given_and_to_be_one_of_theirs(tmp_path):
    with pytest.raises(StoreError, match="float32 or float64, got float16"):
        StoredNeighbors.distances.sized(9, dtype="float16")
    group = StageGroup(tmp_path, "stages/neighbors/key", 1024)
    with pytest.raises(StoreError, match="stores indices as rows"):
        group.create(1500, [StoredNeighbors.indices.sized(9)])  # of no round


def test_a_reader_of_another_stage_is_refused(tmp_path):
    with pytest.raises(ValueError, match="StoredPoints reads groups of points, got one of partition"):
        StoredPoints(partition(tmp_path))


@pytest.mark.parametrize("folder", NAMELESS)
def test_no_module_above_the_records_names_an_array_by_a_literal(folder):
    paths = sorted((Path(scalemani.__file__).parent / folder).rglob("*.py"))
    for path in [path for path in paths if path.parent.name != "arrays"]:
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call):
                continue
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            literal = [one for one in call.args if isinstance(one, ast.Constant | ast.JoinedStr) and name in READERS]
            named = [one for one in literal if not isinstance(getattr(one, "value", ""), int | float)]
            if name == "array" and isinstance(call.func, ast.Name):  # that of `engine.needs` begins with a dtype
                named = [one for one in named if one.value not in np.sctypeDict]
            assert not named, (path, call.lineno)
            assert name not in ("ArrayDescription", "RowArray", "ArrayReader"), (path, call.lineno)
