"""Any history of a group: blocks put, writers cut short, objects damaged, groups opened anew, against a plain model."""

import shutil
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scalemani.errors import CorruptChunkError, StoreError
from scalemani.stages.arrays.points import StoredPoints
from scalemani.store.arrays import write_rows
from scalemani.store.groups import StageGroup, block_unit
from scalemani.store.run_store import RunStore

BLOCK_ROWS, N_BLOCKS, COLUMNS = 4, 3, 2
N_ROWS = BLOCK_ROWS * N_BLOCKS - 1
BLOCKS = st.integers(0, N_BLOCKS - 1)


def new_group(folder, n_rows=N_ROWS, block_rows=BLOCK_ROWS):
    group = RunStore.create(folder).group("points", "key", block_rows)
    group.create(n_rows, [StoredPoints.dense_points.sized(COLUMNS, dtype=np.float32)])
    return group


def block_of(value, block, n_rows=N_ROWS, block_rows=BLOCK_ROWS):
    return np.full((min(block_rows, n_rows - block * block_rows), COLUMNS), value, np.float32)


class Histories(RuleBasedStateMachine):
    """`held` is what a reader must find by block; `hurt` are blocks whose chunk is not what was committed."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="histories-"))
        self.group = new_group(self.folder)
        self.held, self.hurt = {}, set()

    def teardown(self):
        shutil.rmtree(self.folder)

    def chunk(self, block):
        return self.folder / "stages" / "points" / "key" / "arrays" / "points" / "c" / str(block) / "0"

    @rule(block=BLOCKS, value=st.integers(0, 9))
    def put(self, block, value):
        self.group.write_block(block, {StoredPoints.dense_points: block_of(value, block)})
        self.held[block] = value
        self.hurt.discard(block)

    @rule(block=BLOCKS, value=st.integers(0, 9))
    def be_killed_before_the_mark(self, block, value):
        write_rows(self.group.array("points"), block_of(value, block), block)
        if block in self.held and value != self.held[block]:
            self.hurt.add(block)
        elif block in self.held:
            self.hurt.discard(block)
        self.open_anew()

    @rule()
    def open_anew(self):
        self.group = StageGroup(self.folder, "stages/points/key", BLOCK_ROWS)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), how=st.sampled_from(["gone", "cut", "flipped", "empty"]))
    def damage(self, data, how):
        block = data.draw(st.sampled_from(sorted(self.held)))
        content = self.chunk(block).read_bytes() if self.chunk(block).exists() else b""
        changed = {
            "cut": content[:-1],
            "flipped": content[:-1] + bytes([content[-1] ^ 1]) if content else b"",
            "empty": b"",
        }
        self.chunk(block).unlink(missing_ok=True)
        if how != "gone":
            self.chunk(block).write_bytes(changed[how])
        if how == "flipped" and block in self.hurt:
            return  # twice flipped may be whole again: the model asks the digest below
        self.hurt.add(block)

    @rule()
    def go_on(self):
        """Do what a run does that goes on: forget what is damaged."""
        damaged = self.group.damaged_units()
        self.group.forget(damaged)
        for block in list(self.held):
            if block_unit(block) in damaged:
                assert block in self.hurt
                del self.held[block]
        self.hurt.clear()

    @invariant()
    def committed_blocks_are_those_of_the_model(self):
        assert {block for block in range(N_BLOCKS) if self.group.committed(block_unit(block))} == set(self.held)

    @invariant()
    def what_is_read_is_what_was_committed_or_an_error(self):
        for block in range(N_BLOCKS):
            try:
                found = self.group.read_block("points", block)
            except CorruptChunkError:
                assert block not in self.held or block in self.hurt
                continue
            np.testing.assert_array_equal(found, block_of(self.held[block], block))


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=25, stateful_step_count=15, deadline=None, derandomize=True)


def test_a_block_that_two_write_at_once_is_whole(tmp_path):
    group = new_group(tmp_path / "run")
    others = [StageGroup(tmp_path / "run", "stages/points/key", BLOCK_ROWS) for _ in range(4)]
    start, rows = threading.Barrier(len(others)), block_of(3, 0)

    def write(other):
        start.wait()
        for _ in range(5):
            other.write_block(0, {StoredPoints.dense_points: rows})

    threads = [threading.Thread(target=write, args=(other,)) for other in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    group.refresh()
    assert group.committed(block_unit(0))
    assert group.damaged_units() == []
    np.testing.assert_array_equal(group.read_block("points", 0), rows)
    assert not list((tmp_path / "run").rglob("*.partial"))


def test_a_reader_sees_a_group_complete_only_when_it_is(tmp_path):
    group, ended = new_group(tmp_path / "run"), threading.Event()

    def write():
        for block in range(N_BLOCKS):
            group.write_block(block, {StoredPoints.dense_points: block_of(block, block)})
        group.mark_complete({"stage": "points"})
        ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    polls = 0
    while polls < 20 or not ended.is_set():
        reader = StageGroup(tmp_path / "run", "stages/points/key", BLOCK_ROWS)
        if reader.complete:
            np.testing.assert_array_equal(reader.read("points")[:, 0], np.repeat(range(N_BLOCKS), BLOCK_ROWS)[:N_ROWS])
        else:
            with pytest.raises(StoreError, match="is not complete"):
                reader.record  # noqa: B018
        polls += 1
    writer.join()
    assert StageGroup(tmp_path / "run", "stages/points/key", BLOCK_ROWS).complete


@settings(max_examples=25, deadline=None, derandomize=True)
@given(n_rows=st.integers(1, 40), block_rows=st.integers(1, 12))
def test_every_chunk_is_one_block(n_rows, block_rows):
    with tempfile.TemporaryDirectory() as folder:
        group = new_group(folder, n_rows, block_rows)
        n_blocks = -(-n_rows // block_rows)
        for block in range(n_blocks):
            group.write_block(block, {StoredPoints.dense_points: block_of(block, block, n_rows, block_rows)})
        owners = {}
        for unit in group.units:
            for key in group._entries[unit]:
                assert owners.setdefault(key, unit) == unit
        assert sorted(owners) == sorted(["points/zarr.json", *(f"points/c/{block}/0" for block in range(n_blocks))])
