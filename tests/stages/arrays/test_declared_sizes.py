"""What stages list as written is what lies in their groups, before it is compressed."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zarr

from scalemani.config.params import Parameters
from scalemani.descents.force_errors import MOST_TARGETS
from scalemani.engine.sizes import Sizes
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_pixels, open_points
from scalemani.kernels.neighbors.rounds import FIRST_DRAWS, MOST_DRAWS
from scalemani.runs.walk import run
from scalemani.stages.neighbors.memory_model import SHARE_OF_FLAGS
from scalemani.stages.table import STAGES

SCALARS_AND_BOUNDS = 512  # bytes of what no list names: a scale, eigenvalues, where cells begin
# Stages of which parameters and points alone say how much they store.
FIXED = {
    *("points", "partition", "work_points", "affinities", "graph", "weights", "classes"),
    *("landmarks", "landmark_weights", "landmark_embedding", "landmark_graph", "embedding", "layout", "doubt"),
    *("local_reconstruction", "geodesics", "isomap", "landmark_covariances", "function_components"),
    *("diffusion_coordinates", "principal_components", "kernel_components", "discriminants", "kernel_discriminants"),
}
# Stages that list how many entries there are at most. A row of each array is as long as they say.
GRAPHS = {"symmetric_affinities", "normalized_affinities", "coarse_graphs", "coarse_embedding"}
FEW_ROWS = 16  # of an image's sides and the like


@pytest.fixture(scope="module")
def by_trees(tmp_path_factory):
    """Return a run of an image of which spanning trees make W."""
    values = {
        "neighbors": {"method": "window", "window": 3},
        "affinities": {"kind": "ensemble"},
        "landmarks": {"n_landmarks": 40},
        "embedding": {"solver": "exact"},
    }
    image, params = np.random.default_rng(5).normal(size=(12, 15)), Parameters().with_values(values)
    folder = tmp_path_factory.mktemp("declared") / "trees"
    return run(open_pixels(image), folder, "laplacian-eigenmaps", params, Executor())


@pytest.fixture(scope="module")
def groups(finished, wide, pictured, by_trees, sparse_run, weighted):
    """Return (label, run, stage) of every group of the runs."""
    runs = {**finished, "wide": wide, "pictured": pictured, "trees": by_trees, "sparse": sparse_run}
    runs["weighted"] = weighted
    return [(label, one, stage) for label, one in runs.items() for stage in one.keys]


def arrays_of(one, stage):
    """Return the arrays of a group by path, read by zarr alone."""
    folder = Path(one.group(stage).objects.root) / "arrays"
    found = [
        path.parent for path in folder.glob("**/zarr.json") if json.loads(path.read_text())["node_type"] == "array"
    ]
    return {str(path.relative_to(folder)): zarr.open_array(path, mode="r") for path in found}


def listed(label, one, stage):
    """Return what a stage lists of a run."""
    sizes = Sizes(one.dimensions, one.params, weighted=label == "weighted")
    return STAGES[stage].disk(sizes)


def test_stages_of_fixed_size_store_the_bytes_that_they_list(groups):
    seen = set()
    for label, one, stage in groups:
        if stage in FIXED and not (label == "sparse" and stage in ("points", "work_points")):
            arrays = arrays_of(one, stage)
            stored = sum(array.nbytes for array in arrays.values())
            said = sum(listed(label, one, stage).stored.values())
            if stage == "layout":  # a sample is as large as its error needs, and listed as it is at most
                said -= sum(MOST_TARGETS * 8 - arrays[name].nbytes for name in ("force_rows", "force_weights"))
            assert abs(stored - said) <= SCALARS_AND_BOUNDS, (label, stage)
            seen.add(stage)
    assert seen == FIXED


def test_the_search_for_neighbours_stores_its_last_graph_and_where_rounds_are_kept_those_before_it(finished):
    one = finished["knn-graph"]
    sizes, arrays = Sizes(one.dimensions, one.params), arrays_of(one, "neighbors")
    last, all_rounds = (
        sum(STAGES["neighbors"].disk(replace(sizes, stores_rounds=kept)).stored.values()) for kept in (False, True)
    )
    flags = next(array.nbytes for path, array in arrays.items() if path.endswith("fresh"))
    graph = sum(array.nbytes for path, array in arrays.items() if path.startswith("round_"))
    compressed = (1 - SHARE_OF_FLAGS) * flags  # what is listed less of flags than they take before
    assert listed("knn-graph", one, "neighbors") == STAGES["neighbors"].disk(replace(sizes, stores_rounds=False))
    assert abs(last + compressed - sum(array.nbytes for array in arrays.values())) <= SCALARS_AND_BOUNDS
    assert all_rounds - last == one.params.neighbors.max_rounds * (graph - compressed)


def test_a_search_within_leaves_writes_no_more_than_it_lists(by_leaves):
    disk = STAGES["neighbors"].disk(Sizes(by_leaves.dimensions, by_leaves.params, stores_rounds=True))
    arrays = arrays_of(by_leaves, "neighbors")
    within = {name: array for name, array in arrays.items() if name.startswith(("leaves_", "joined_"))}
    assert len(within) == 1 + FIRST_DRAWS * 3  # leaves, and three arrays of the one group of each draw
    passing = sum(array.nbytes for array in within.values())
    # Later rounds may draw oftener.
    said = sum(disk.passing.values())
    assert 0.3 * FIRST_DRAWS / MOST_DRAWS * said < passing <= said


def test_what_is_listed_of_graphs_is_a_whole_number_of_entries_of_each_array(groups):
    seen = set()
    for label, one, stage in groups:
        if stage in GRAPHS:
            said = listed(label, one, stage).stored
            entries = {
                re.sub(r"\d+", "N", path): array.dtype.itemsize * math.prod(array.shape[1:])
                for path, array in arrays_of(one, stage).items()
                if array.ndim and not 0 < array.shape[0] < FEW_ROWS
            }
            assert set(said) == set(entries), (label, stage)
            assert all(n_bytes % entries[name] == 0 for name, n_bytes in said.items()), (label, stage)
            seen.add(stage)
    assert seen == GRAPHS


def test_no_graph_has_more_entries_than_are_listed(groups):
    for label, one, stage in groups:
        if stage in {"symmetric_affinities", "normalized_affinities", "affinity_weights", "reduced"}:
            said = sum(listed(label, one, stage).stored.values())
            stored = sum(array.nbytes for array in arrays_of(one, stage).values())
            assert stored <= said + SCALARS_AND_BOUNDS, (label, stage)


@pytest.mark.parametrize("block_rows", [1024, 4096])
def test_sums_over_landmarks_of_many_blocks_store_no_more_than_is_listed_and_not_much_less(tmp_path, block_rows):
    """All blocks meet the same pairs of few landmarks where points have no structure."""
    points = np.random.default_rng(0).normal(size=(12 * 1024, 50)).astype(np.float32)
    values = {
        "neighbors": {"n_neighbors": 12, "method": "partition", "recall": 0.5, "max_rounds": 1},
        "affinities": {"perplexity": 4},
        "landmarks": {"n_landmarks": 150},
        "embedding": {"solver": "lll"},
    }
    params = Parameters().with_values(values)
    one = run(open_points(points), tmp_path, "laplacian-eigenmaps", params, Executor(workers=1), block_rows)
    said = sum(listed("many blocks", one, "reduced").stored.values())
    stored = sum(array.nbytes for array in arrays_of(one, "reduced").values())
    assert stored <= said <= 3 * stored
