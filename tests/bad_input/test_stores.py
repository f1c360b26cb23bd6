"""Stores that hold something else than a run, or a run that was damaged, moved or is in use."""

import fcntl
import json
import shutil
import time

import numpy as np
import pytest

from scalemani.runs.opened import open_run
from scalemani.store import run_store

SMALL = ("--set=neighbors.n_neighbors=10", "--set=affinities.perplexity=3", "--set=landmarks.n_landmarks=50")


def rows_of(folder):
    return open_run(folder).embedding[...]


def test_a_graph_has_no_embedding(scalemani, points, tmp_path, one_error):
    assert scalemani("embed", points, tmp_path / "run", "--method=knn-graph", *SMALL)[0] == 0
    for arguments in (["export", "out.npy", "--what=embedding"], ["plot", "out.png"], ["transform", points, "out.npy"]):
        status, _, errors = scalemani(arguments[0], tmp_path / "run", *arguments[1:])
        one_error(errors, ["method knn-graph, which has no embedding", "another method"])
        assert status == 2


def test_labels_with_a_header(scalemani, finished, points, tmp_path, one_error):
    (tmp_path / "labels.csv").write_text("label\n" + "1\n" * 2000)
    status, _, errors = scalemani("plot", finished, tmp_path / "out.png", "--labels", tmp_path / "labels.csv")
    one_error(errors, ["2001 labels for 2000 points", "is the first a header? Then name the column"])
    assert status == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["embed", "POINTS", "POINTS"],
        ["embed", "FOLDER", "FOLDER/run"],
        ["transform", "RUN", "NEW", "NEW"],
        ["export", "RUN", "RUN/embedding.npy"],
        ["plot", "RUN", "RUN/embedding.png"],
        ["generate", "infinite-digits", "NEW", "--source", "NEW"],
    ],
    ids=" ".join,
)
def test_the_output_is_not_the_input(scalemani, finished, tmp_path, points, one_error, tree, arguments):
    shutil.copytree(finished / "stages" / "points", tmp_path / "folder")
    np.save(tmp_path / "new.npy", np.load(points)[:10])
    before = tree(tmp_path), tree(finished)
    places = {"POINTS": points, "FOLDER": tmp_path / "folder", "RUN": finished, "NEW": tmp_path / "new.npy"}
    words = [word.partition("/") for word in arguments]
    status, _, errors = scalemani(*(f"{places.get(head, head)}{slash}{rest}" for head, slash, rest in words))
    one_error(errors, ["is the input", "choose another place"])
    assert status == 2
    assert (tree(tmp_path), tree(finished)) == before


def test_folders_that_are_no_run(scalemani, tmp_path, points, one_error, tree):
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "sentinel").write_text("mine")
    (tmp_path / "model").write_bytes(b"\x80\x04.")  # a pickle
    for name in ("nowhere", "empty", "foreign", "model"):
        for arguments in (
            ["info", tmp_path / name],
            ["plot", tmp_path / name, tmp_path / "out.png"],
            ["export", tmp_path / name, tmp_path / "out.npy"],
            ["transform", tmp_path / name, points, tmp_path / "out.npy"],
        ):
            status, _, errors = scalemani(*arguments)
            one_error(errors, [name, "not a run of scalemani"])
            assert status == 2
    for name in ("foreign", "model"):
        status, _, errors = scalemani("embed", points, tmp_path / name, *SMALL)
        one_error(errors, [name, "not a run of scalemani", "choose an empty or a new folder"])
        assert status == 2
    assert sorted(tree(tmp_path)) == ["foreign/sentinel", "model"]


def test_a_store_of_another_version(scalemani, copied, points, tmp_path, one_error, tree):
    marker = json.loads((copied / "scalemani.json").read_text())
    (copied / "scalemani.json").write_text(json.dumps({**marker, "version": 99}))
    before = tree(copied)
    for arguments in (
        ["embed", points, copied, *SMALL],
        ["plan", points, copied],
        ["stage", "points", points, copied],
        ["info", copied],
        ["export", copied, tmp_path / "out.npy"],
    ):
        status, _, errors = scalemani(*arguments)
        one_error(errors, ["format version 99", "reads 2", "or a new folder"])
        assert status == 2
    assert tree(copied) == before


@pytest.mark.parametrize("how", ["damaged", "missing", "empty", "swapped"])
def test_a_chunk_that_is_not_what_was_written(scalemani, copied, points, tmp_path, how, one_error):
    chunk = next(copied.glob("stages/embedding/*/arrays/embedding/c/1/0"))
    other = chunk.parents[1] / "0" / "0"
    if how == "damaged":
        chunk.write_bytes(chunk.read_bytes()[:-1] + b"!")
    elif how == "missing":
        chunk.unlink()
    else:
        chunk.write_bytes(other.read_bytes() if how == "swapped" else b"")
    for arguments in (
        ["export", copied, tmp_path / "out.npy"],
        ["export", copied, tmp_path / "out.zarr"],
        ["plot", copied, tmp_path / "out.png"],
        ["transform", copied, points, tmp_path / "out.npy"],
    ):
        status, _, errors = scalemani(*arguments)
        one_error(errors, [str(chunk), "run the same command again"])
        assert status == 1
    assert [path.name for path in tmp_path.iterdir()] == ["copied"]
    status, _, errors = scalemani("embed", points, copied, *SMALL)
    assert status == 0
    assert "embedding: 1 damaged or lost, computed anew: ['block-000001']" in errors
    assert scalemani("export", copied, tmp_path / "out.npy")[0] == 0


def test_one_stage_alone_looks_at_what_it_reads_and_has_written(scalemani, copied, points):
    of_embedding = next(copied.glob("stages/embedding/*/arrays/embedding/c/1/0"))
    of_lists = next(copied.glob("stages/neighbors/*/arrays/round_*/indices/c/1/0"))
    of_embedding.unlink()
    status, _, errors = scalemani("stage", "affinities", points, copied, *SMALL)
    assert (status, "damaged or lost" in errors) == (0, False)
    status, _, errors = scalemani("stage", "embedding", points, copied, *SMALL)
    assert (status, of_embedding.exists()) == (0, True)
    assert "embedding: 1 damaged or lost, computed anew: ['block-000001']" in errors
    of_lists.unlink()
    status, _, errors = scalemani("stage", "affinities", points, copied, *SMALL)
    assert "neighbors: 1 damaged or lost" in errors
    assert (status, "not finished yet: run these stages first" in errors) == (2, True)


@pytest.mark.parametrize("damage", ["cut", "empty", "other", "gone"])
@pytest.mark.parametrize("name", ["scalemani.json", "plan.json", "dimensions.json", "inputs.json", "complete.json"])
def test_a_description_that_is_not_what_was_written(scalemani, copied, finished, points, name, damage, one_error):
    described = sorted(copied.rglob(name))[-1]
    content = described.read_bytes()
    described.unlink()
    if damage != "gone":
        described.write_bytes({"cut": content[: len(content) // 2], "empty": b"", "other": b"[]"}[damage])
    status, _, errors = scalemani("embed", points, copied, *SMALL)
    if name == "dimensions.json" and damage != "gone":
        assert status in (1, 2)
        one_error(errors, [name, "folder"])
    else:
        assert status == 0, errors
        np.testing.assert_array_equal(rows_of(copied), rows_of(finished))


def test_a_damaged_plan_is_told_apart_from_wrong_parameters(scalemani, copied, points, one_error):
    plan = copied / "plan.json"
    plan.write_text(plan.read_text().replace("perplexity", "perplexitx"))
    status, _, errors = scalemani("info", copied)
    one_error(errors, ["plan.json was damaged", "its digest is not", "run the same command again"])
    assert status == 1
    assert scalemani("embed", points, copied, *SMALL)[0] == 0
    assert scalemani("info", copied)[0] == 0


def test_a_link_that_leads_out_of_the_store(scalemani, copied, points, tmp_path, one_error):
    chunk = next(copied.glob("stages/points/*/arrays/points/c/1/0"))
    shutil.move(chunk, tmp_path / "elsewhere")
    chunk.symlink_to(tmp_path / "elsewhere")
    status, _, errors = scalemani("embed", points, copied, *SMALL)
    one_error(errors, ["symbolic link", "remove the link"])
    assert status == 2


def test_a_run_behind_a_link(scalemani, copied, points, tmp_path):
    (tmp_path / "link").symlink_to(copied, target_is_directory=True)
    assert scalemani("embed", points, tmp_path / "link", *SMALL)[0] == 0


def test_the_second_of_two_runs_is_told_at_once(scalemani, copied, points, one_error, spy):
    waits = spy(time, "sleep")
    with (copied / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        status, _, errors = scalemani("embed", points, copied, *SMALL)
    one_error(errors, ["another run is working on", '"process"', "wait for it, or use another folder"])
    assert status == 2
    assert (run_store.TRIED_EVERY_SECONDS,) not in waits
    assert scalemani("embed", points, copied, *SMALL)[0] == 0  # what a dead owner left does not block


def test_an_export_into_its_run_is_refused_before_the_run_is_opened(scalemani, tmp_path, one_error):
    status, _, errors = scalemani("export", tmp_path / "nowhere", tmp_path / "nowhere" / "out.npy")
    one_error(errors, ["nowhere or lies in it"])
    assert status == 2


def test_smaller_blocks_are_not_the_advice_where_a_process_alone_exceeds_the_budget(
    scalemani, points, tmp_path, one_error
):
    status, _, errors = scalemani("plan", points, tmp_path / "run", "--memory=400MB", "--block-rows=2048")
    one_error(errors, ["the budget is 400MB: raise --memory"])
    assert "smaller blocks" not in errors
    assert status == 2
