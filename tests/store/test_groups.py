"""Groups: written, then marked; whatever was damaged since is found and never read."""

import hashlib
import os
import pickle
import time
from dataclasses import replace

import numpy as np
import pytest

from scalemani.errors import CorruptChunkError, MissingChunkError, StoreError
from scalemani.store.groups import StageGroup, TakenBlock, block_unit
from scalemani.store.schema import ArrayDescription

MOST_BESIDE_DIGESTS, READING_SECONDS = 3.0, 0.5  # of the processor, as a share of the digests, and for the files
BLOCK_ROWS = 1024
N_ROWS = 3 * BLOCK_ROWS + 100
MANY_MARKS = 500
CUTS = 20  # lengths to which a chunk is cut, nothing and all but one byte among them
VALUES = ArrayDescription("demo", "values", "rows", ("point", "column"), "float32", "1", "demo")
COUNTS = ArrayDescription("demo", "counts", "rows", ("point",), "int32", "1", "demo", ("round_N",))
BOUNDS = ArrayDescription("demo", "indptr", "part", ("row_bound",), "int64", "nonzero", "demo", ("block-N",))
ENTRIES = ArrayDescription("demo", "entries", "part", ("nonzero",), "float64", "1", "demo", ("block-N",))
BASIS = ArrayDescription("demo", "basis", "whole", ("row", "column"), "float64", "1", "demo")


def values() -> np.ndarray:
    return np.arange(N_ROWS * 3, dtype=np.float32).reshape(N_ROWS, 3)


def written_group(folder, skip=(), factor=1):
    group = StageGroup(folder, "stages/demo/key", BLOCK_ROWS)
    group.create(N_ROWS, [VALUES.sized(3)])
    for block in range(4):
        if block not in skip:
            group.write_block(block, {VALUES: factor * values()[block * BLOCK_ROWS : (block + 1) * BLOCK_ROWS]})
    return group


def chunk(group, block):
    return group.objects.root / "arrays" / "values" / "c" / str(block) / "0"


def test_what_was_written_is_read_back_by_another_process(tmp_path):
    group = written_group(tmp_path)
    group.mark_complete({"key": "key"})
    for reader in (StageGroup(tmp_path, group.path, BLOCK_ROWS), pickle.loads(pickle.dumps(group))):
        assert reader.complete
        assert reader.record == {"key": "key"}
        np.testing.assert_array_equal(reader.read("values"), values())
        np.testing.assert_array_equal(reader.read_block("values", 3), values()[3 * BLOCK_ROWS :])
        assert reader.content_digest == group.content_digest


def test_a_certificate_is_of_the_type_that_is_asked_for(tmp_path):
    group = written_group(tmp_path)
    group.mark_complete({"certificates": {"residual": 0.25, "method": "exact"}})
    assert group.certificate("residual", float) == 0.25
    for name, kind in (("residual", str), ("method", float), ("recall", float)):
        with pytest.raises(CorruptChunkError, match=f"certificate {name} is"):
            group.certificate(name, kind)


def test_a_block_counts_as_done_only_once_it_is_marked(tmp_path):
    written_group(tmp_path, skip=(2,))
    reader = StageGroup(tmp_path, "stages/demo/key", BLOCK_ROWS)
    assert [reader.committed(block_unit(block)) for block in range(4)] == [True, True, False, True]
    with pytest.raises(MissingChunkError, match="never committed"):
        reader.read_block("values", 2)


def test_a_block_of_zeros_is_stored_like_any_other(tmp_path):
    group = written_group(tmp_path, skip=(1,))
    group.write_block(1, {VALUES: np.zeros((BLOCK_ROWS, 3), np.float32)})
    chunk(group, 1).unlink()
    with pytest.raises(MissingChunkError):
        StageGroup(tmp_path, group.path, BLOCK_ROWS).read_block("values", 1)


def test_a_block_of_another_group_is_taken_over_as_it_is_and_stays_when_that_is_removed(tmp_path):
    other = written_group(tmp_path, skip=(2,))
    group = StageGroup(tmp_path, "stages/demo/grown", BLOCK_ROWS)
    group.create(2 * N_ROWS, [VALUES.sized(3)])
    assert [group.take_block(block, other) for block in range(3)] == [True, True, False]
    assert chunk(group, 1).samefile(chunk(other, 1))
    chunk(other, 0).unlink()
    chunk(other, 1).unlink()
    reader = StageGroup(tmp_path, group.path, BLOCK_ROWS)
    assert reader.units == [block_unit(0), block_unit(1), "schema"]
    np.testing.assert_array_equal(reader.read_block("values", 1), values()[BLOCK_ROWS : 2 * BLOCK_ROWS])
    assert reader.damaged_units() == []


def rounds_of(folder, key, counts):
    """Return a group with the counts of rounds, a block each."""
    group = StageGroup(folder, f"stages/demo/{key}", BLOCK_ROWS)
    for number, values_of_round in counts.items():
        group.create(BLOCK_ROWS, [COUNTS.sized()], f"round_{number}")
        group.write_block(0, {COUNTS: values_of_round}, f"round_{number}")
    return group


def test_a_block_is_taken_undecoded_into_the_folder_of_another_step_next_to_what_is_written(tmp_path):
    numbers = np.arange(BLOCK_ROWS, dtype=np.int32)
    other = rounds_of(tmp_path, "key", {2: numbers})
    group = rounds_of(tmp_path, "grown", {0: TakenBlock(other, "round_2")})
    group.create(BLOCK_ROWS, [COUNTS.sized()], "round_1")
    group.write_block(0, {COUNTS: TakenBlock(group, "round_0")}, "round_1")
    files = [
        one.objects.root / "arrays" / step / "counts" / "c" / "0"
        for one, step in ((other, "round_2"), (group, "round_1"))
    ]
    assert files[0].samefile(files[1])
    other.remove_step("round_2")
    group.remove_step("round_0")
    reader = StageGroup(tmp_path, group.path, BLOCK_ROWS)
    np.testing.assert_array_equal(reader.read_block("round_1/counts", 0), numbers)
    assert reader.damaged_units() == []
    assert reader.content_of_block("counts", 0, "round_1") == group.content_of_block("counts", 0, "round_1")


def test_a_block_that_was_damaged_or_has_other_chunks_is_refused(tmp_path):
    other = written_group(tmp_path)
    group = StageGroup(tmp_path, "stages/demo/grown", BLOCK_ROWS // 2)
    group.create(N_ROWS, [VALUES.sized(3)])
    with pytest.raises(StoreError):
        group.write_block(0, {VALUES: TakenBlock(other)})
    assert not group.committed(block_unit(0))
    same = StageGroup(tmp_path, "stages/demo/same", BLOCK_ROWS)
    same.create(N_ROWS, [VALUES.sized(3)])
    chunk(other, 1).write_bytes(chunk(other, 1).read_bytes()[:-1])
    with pytest.raises(CorruptChunkError):
        same.write_block(1, {VALUES: TakenBlock(other)})
    assert not same.committed(block_unit(1))


def test_a_block_that_is_written_anew_leaves_the_group_that_it_was_taken_from(tmp_path):
    other = written_group(tmp_path)
    group = StageGroup(tmp_path, "stages/demo/grown", BLOCK_ROWS)
    group.create(N_ROWS, [VALUES.sized(3)])
    assert group.take_block(0, other)
    group.forget([block_unit(0)])
    group.write_block(0, {VALUES: np.ones((BLOCK_ROWS, 3), np.float32)})
    np.testing.assert_array_equal(other.read_block("values", 0), values()[:BLOCK_ROWS])
    assert other.damaged_units() == []


def test_blocks_are_copied_where_a_disk_knows_no_second_names(tmp_path, monkeypatch):
    def refuse(*names):
        raise PermissionError("Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    other = written_group(tmp_path)
    group = StageGroup(tmp_path, "stages/demo/grown", BLOCK_ROWS)
    group.create(N_ROWS, [VALUES.sized(3)])
    chunk(other, 2).write_bytes(b"0" * chunk(other, 2).stat().st_size)
    assert [group.take_block(block, other) for block in range(3)] == [True, True, False]
    assert not chunk(group, 1).samefile(chunk(other, 1))
    np.testing.assert_array_equal(group.read_block("values", 1), values()[BLOCK_ROWS : 2 * BLOCK_ROWS])


@pytest.mark.parametrize("change", ["lost", "cut", "flipped", "wider", "other dtype"])
def test_a_block_that_is_damaged_or_of_another_shape_is_not_taken_over(tmp_path, change):
    other = written_group(tmp_path)
    array = {"wider": VALUES.sized(4)}.get(change, VALUES.sized(3))
    if change == "other dtype":
        array = replace(VALUES, dtype="float64").sized(3)
    group = StageGroup(tmp_path, "stages/demo/grown", BLOCK_ROWS)
    group.create(N_ROWS, [array])
    if change == "lost":
        chunk(other, 0).unlink()
    if change == "flipped":
        chunk(other, 0).write_bytes(bytes([chunk(other, 0).read_bytes()[0] ^ 1]) + chunk(other, 0).read_bytes()[1:])
    if change == "cut":
        chunk(other, 0).write_bytes(chunk(other, 0).read_bytes()[:-1])
    assert not group.take_block(0, other)
    assert not group.committed(block_unit(0))


def damaged_contents(group, folder):
    """Return what the chunk of block 2 may hold after an accident, by its name; None: nothing is there."""
    content = chunk(group, 2).read_bytes()
    middle = len(content) // 2
    damaged = {f"cut to {length}": content[:length] for length in np.linspace(0, len(content) - 1, CUTS, dtype=int)}
    return damaged | {
        "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "lost": None,
        "of another block": chunk(group, 0).read_bytes(),
        "of an earlier run": chunk(written_group(folder / "earlier", factor=2), 2).read_bytes(),
        "zero bytes": bytes(len(content)),
        "values of zero": chunk(written_group(folder / "zeros", factor=0), 2).read_bytes(),
        "longer": content + b"x",
    }


def test_every_damage_is_found_and_only_that(tmp_path):
    group = written_group(tmp_path)
    group.mark_complete({})
    for name, content in damaged_contents(group, tmp_path).items():
        chunk(group, 2).unlink(missing_ok=True)
        if content is not None:
            chunk(group, 2).write_bytes(content)
        reader = StageGroup(tmp_path, group.path, BLOCK_ROWS)
        assert reader.damaged_units() == [block_unit(2)], name
        with pytest.raises(CorruptChunkError):
            reader.read_block("values", 2)
        np.testing.assert_array_equal(reader.read_block("values", 1), values()[BLOCK_ROWS : 2 * BLOCK_ROWS])


@pytest.mark.parametrize(
    ("field", "other"),
    [('"float32"', '"int32"'), (f"{N_ROWS}", f"{N_ROWS + 1}"), ('"NaN"', "0"), ('"lz4"', '"zstd"')],
)
def test_a_description_of_an_array_that_was_changed_is_found(tmp_path, field, other):
    group = written_group(tmp_path)
    group.mark_complete({})
    description = group.objects.root / "arrays" / "values" / "zarr.json"
    changed = description.read_text().replace(field, other)
    assert changed != description.read_text()
    description.write_text(changed)
    reader = StageGroup(tmp_path, group.path, BLOCK_ROWS)
    assert reader.damaged_units() == ["schema"]
    with pytest.raises(CorruptChunkError):
        reader.read_block("values", 1)


def test_files_that_nothing_has_committed_change_nothing(tmp_path):
    group = written_group(tmp_path)
    group.mark_complete({})
    (chunk(group, 9).parent).mkdir()
    chunk(group, 9).write_bytes(chunk(group, 2).read_bytes())
    (group.objects.root / "marks" / "block-000009.json").write_text("{}")
    reader = StageGroup(tmp_path, group.path, BLOCK_ROWS)
    assert not reader.damaged_units()
    assert reader.content_digest == group.content_digest
    np.testing.assert_array_equal(reader.read("values"), values())


def test_many_marks_are_read_without_resolving_their_paths(tmp_path, spy):
    group = written_group(tmp_path)
    for number in range(4, MANY_MARKS):
        (group.objects.root / "marks" / f"block-{number:06d}.json").write_text("{}")
    resolved = spy(os.path, "realpath")  # asks for every folder from the root of the disk on
    group.refresh()
    assert not resolved
    assert group.units == [*map(block_unit, range(4)), "schema"]


def test_damaged_units_are_forgotten_and_written_again(tmp_path):
    group = written_group(tmp_path)
    group.mark_complete({})
    before = group.content_digest
    chunk(group, 2).write_bytes(b"nonsense")
    reader = StageGroup(tmp_path, group.path, BLOCK_ROWS)
    reader.forget(reader.damaged_units())
    assert not reader.complete
    assert [reader.committed(block_unit(block)) for block in range(4)] == [True, True, False, True]
    reader.write_block(2, {VALUES: values()[2 * BLOCK_ROWS : 3 * BLOCK_ROWS]})
    assert reader.content_digest == before
    np.testing.assert_array_equal(reader.read("values"), values())


def test_damaged_metadata_is_found_and_written_again_with_the_blocks_kept(tmp_path):
    group = written_group(tmp_path)
    metadata = group.objects.root / "arrays" / "values" / "zarr.json"
    metadata.write_text(metadata.read_text().replace("float32", "float64"))
    reader = StageGroup(tmp_path, group.path, BLOCK_ROWS)
    assert reader.damaged_units() == ["schema"]
    reader.forget(["schema"])
    reader.create(N_ROWS, [VALUES.sized(3)])
    np.testing.assert_array_equal(reader.read("values"), values())


def test_a_damaged_mark_is_no_mark(tmp_path):
    group = written_group(tmp_path)
    (group.objects.root / "marks" / f"{block_unit(1)}.json").write_text('{"values/c/1')
    assert not StageGroup(tmp_path, group.path, BLOCK_ROWS).committed(block_unit(1))


def test_ragged_parts_and_whole_arrays(tmp_path):
    group = StageGroup(tmp_path, "stages/demo/key", BLOCK_ROWS)
    for block in range(3):
        group.write_block(block, {BOUNDS: np.arange(block + 1), ENTRIES: np.zeros(0)})
    group.write_whole({BASIS: np.eye(3)})
    reader = StageGroup(tmp_path, group.path, BLOCK_ROWS)
    assert len(reader.read_part("indptr", 2)) == 3
    assert reader.read_part("entries", 1).shape == (0,)
    np.testing.assert_array_equal(reader.read("basis"), np.eye(3))


def test_steps_share_a_group_and_are_forgotten_apart(tmp_path):
    group = StageGroup(tmp_path, "stages/demo/key", BLOCK_ROWS)
    for step in ("round_0", "round_1"):
        group.create(BLOCK_ROWS, [COUNTS.sized()], step)
        group.write_block(0, {COUNTS: np.full(BLOCK_ROWS, int(step[-1]), np.int32)}, step)
    group.forget([block_unit(0, "round_0")])
    reader = StageGroup(tmp_path, group.path, BLOCK_ROWS)
    assert not reader.committed(block_unit(0, "round_0"))
    assert reader.committed(block_unit(0, "round_1"))
    assert reader.damaged_units() == []
    assert (reader.read_block("round_1/counts", 0) == 1).all()


def test_checking_takes_little_more_than_the_digests(tmp_path):
    rows, group = 2**14, StageGroup(tmp_path, "stages/demo/key", 2**14)
    draws = np.random.default_rng(0)
    group.create(8 * rows, [VALUES.sized(64)])
    for block in range(8):
        group.write_block(block, {VALUES: draws.random((rows, 64), np.float32)})
    contents = [path.read_bytes() for path in group.objects.root.glob("arrays/**/c/**/*") if path.is_file()]
    assert sum(map(len, contents)) > 2**24
    started = time.process_time()
    for content in contents:
        hashlib.sha256(content).hexdigest()
    hashed = time.process_time()
    assert group.damaged_units() == []
    checking = time.process_time() - hashed
    assert checking < (1 + MOST_BESIDE_DIGESTS) * (hashed - started) + READING_SECONDS


def test_a_step_that_is_removed_leaves_nothing_and_touches_no_other(tmp_path):
    group = StageGroup(tmp_path, "stages/demo/key", BLOCK_ROWS)
    for step in ("round_1", "round_10"):
        group.create(BLOCK_ROWS, [COUNTS.sized()], step)
        group.write_block(0, {COUNTS: np.full(BLOCK_ROWS, 7, np.int32)}, step)
    group.remove_step("round_1")
    for seen in (group, StageGroup(tmp_path, group.path, BLOCK_ROWS)):
        assert seen.units == ["round_10-block-000000", "round_10-schema"]
        assert seen.damaged_units() == []
        assert (seen.read_block("round_10/counts", 0) == 7).all()
        with pytest.raises(StoreError, match="no array"):
            seen.array("round_1/counts")
    below = {path.relative_to(tmp_path / group.path).parts[:2] for path in (tmp_path / group.path).rglob("*")}
    assert ("arrays", "round_1") not in below


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_no_value_that_is_not_finite_is_ever_stored(tmp_path, bad):
    group = written_group(tmp_path, skip=(0,))
    rows = values()[:BLOCK_ROWS]
    rows[5, 1] = bad
    with pytest.raises(StoreError, match="1 values are not finite"):
        group.write_block(0, {VALUES: rows})
    assert not group.committed(block_unit(0))


def test_a_block_of_another_shape_is_refused(tmp_path):
    group = written_group(tmp_path, skip=(3,))
    with pytest.raises(StoreError, match="takes"):
        group.write_block(3, {VALUES: values()[:BLOCK_ROWS]})


def test_an_unfinished_group_has_no_record(tmp_path):
    with pytest.raises(StoreError, match="not complete"):
        _ = written_group(tmp_path).record
