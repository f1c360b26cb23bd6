"""A flipped bit anywhere in a run: what it makes of a run is seen as damage, or is what was there before."""

import json
import shutil

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.engine.context import DIMENSIONS
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ScalemaniError
from scalemani.io.sources import open_points
from scalemani.runs.opened import open_run
from scalemani.runs.walk import INPUTS, run
from scalemani.store.locks import LOCK
from scalemani.store.objects import unsealed

VALUES = {
    "neighbors": {"n_neighbors": 10},
    "affinities": {"perplexity": 3},
    "landmarks": {"n_landmarks": 50},
    "clustering": {"n_clusters": 4},
}
FLIPS = 300
READ_BY_A_RUN = (INPUTS, DIMENSIONS)  # that goes on, where what they say decides what is computed


def of_a_folder(path):
    """Return whether a file says that zarr's arrays lie below it: always the same, and nothing of ours reads it."""
    return path.name == "zarr.json" and json.loads(path.read_bytes())["node_type"] == "group"


def is_read(path):
    """Return whether anything may read a file: not marks of a finished stage, nor the lock."""
    return path.is_file() and path.name != LOCK and path.parent.name != "marks"


def embed(points, folder):
    params = Parameters().with_values(VALUES)
    return run(open_points(points), folder, "spectral-clustering", params, Executor(), 1024)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, roll):
    return embed(roll[:2000], tmp_path_factory.mktemp("flips") / "run")


def said(folder, stage):
    """Return all that a run says of itself, and the arrays of one stage; raise where something is missing."""
    opened = open_run(folder)
    records = [opened.group(name).record for name in opened.keys]
    described = repr((opened.method, opened.keys, opened.dimensions, opened.params, opened.input_rows, records))
    group = opened.group(stage)
    names = {key.removesuffix("/zarr.json") for unit in group.units for key in group._entries[unit] if "zarr" in key}
    return described, {name: group.read(name) for name in sorted(names)}


def same(one, other):
    return one[0] == other[0] and all(np.array_equal(values, other[1][name]) for name, values in one[1].items())


def shows(folder, path, stage, before):
    """Return whether damage shows as an error; raise AssertionError where something else is read without one."""
    try:
        if path.name in READ_BY_A_RUN:
            unsealed(path.read_bytes())
        else:
            assert same(said(folder, stage), before), path
    except (ScalemaniError, ValueError):
        return True
    return False


def test_no_flipped_bit_goes_unseen(finished):
    folder = finished.store.root
    files = sorted(filter(is_read, folder.rglob("*")))
    rng, harmless, of_folders = np.random.default_rng(0), 0, set(filter(of_a_folder, files))
    before = {stage: said(folder, stage) for stage in finished.keys}
    for number in range(FLIPS):
        # every file once, and descriptions as often as chunks
        path = files[number] if number < len(files) else files[rng.integers(len(files))]
        inside = path.relative_to(folder).parts
        stage = inside[1] if inside[0] == "stages" else "points"
        content = path.read_bytes()
        path.write_bytes(flipped(content, int(rng.integers(8 * len(content)))))
        try:
            shown = shows(folder, path, stage, before[stage])
            harmless += not shown and path not in of_folders
        finally:
            path.write_bytes(content)
    assert harmless < FLIPS / 20  # one kind of white space for another


def flipped(content, bit):
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


@pytest.mark.parametrize(
    ("name", "word", "other"),
    [
        ("complete.json", '"passes": ', '"passes": 1'),
        ("complete.json", '"seconds": ', '"seconds": 9'),
        ("plan.json", '"seed": 0', '"seed": 1'),
        ("plan.json", '"residual": 0.0001', '"residual": 0.0003'),
    ],
)
def test_a_description_that_says_something_else_is_not_believed(finished, roll, tmp_path, name, word, other):
    folder = shutil.copytree(finished.store.root, tmp_path / "run")
    path = next(path for path in sorted(folder.rglob(name)) if word in path.read_text())
    path.write_text(path.read_text().replace(word, other, 1))
    stage = path.relative_to(folder).parts[1] if name == "complete.json" else None
    with pytest.raises(ScalemaniError):
        open_run(folder).group(stage).record if stage else open_run(folder).records()
    mended = embed(roll[:2000], folder)
    assert mended.certificates == finished.certificates
    assert mended.params == finished.params
    np.testing.assert_array_equal(mended.embedding[...], finished.embedding[...])


def test_a_flipped_mark_of_an_unfinished_stage_is_no_mark(finished, tmp_path):
    folder = shutil.copytree(finished.store.root, tmp_path / "run")
    group = open_run(folder).group("affinities")
    group.objects.delete("complete.json")
    mark = group.objects.root / "marks" / "block-000001.json"
    rng, content = np.random.default_rng(0), mark.read_bytes()
    for bit in rng.integers(8 * len(content), size=100):
        mark.write_bytes(flipped(content, int(bit)))
        found = open_run(folder).group("affinities")
        assert not found.committed("block-000001") or found._entries["block-000001"] == group._entries["block-000001"]
