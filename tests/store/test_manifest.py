"""Manifest entries by unit and by object agree."""

from hypothesis import given
from hypothesis import strategies as st

from scalemani.store.groups import Manifest

UNITS = st.sampled_from(["schema", "whole", "block-000000", "block-000001"])
CHANGES = st.one_of(
    st.tuples(st.just("add"), UNITS, st.integers(0, 9)),
    st.tuples(st.just("remove"), UNITS, st.just(0)),
    st.tuples(st.just("replace"), st.lists(UNITS, unique=True), st.integers(0, 9)),
)


def entry(unit, length):
    """Return the entry of a unit: no two units write the same object."""
    return {f"{unit}/c/{number}": (length, f"digest-{length}", "") for number in range(2)}


@given(st.lists(CHANGES, max_size=30))
def test_the_objects_are_those_of_the_units_after_any_changes(changes):
    manifest, units = Manifest(), {}
    same_objects = manifest.objects
    for change, which, length in changes:
        if change == "add":
            manifest.add(which, entry(which, length))
            units[which] = entry(which, length)
        elif change == "remove":
            assert manifest.remove(which) == units.pop(which, {})
        else:
            units = {unit: entry(unit, length) for unit in which}
            manifest.replace(units)
        assert dict(manifest.items()) == units
        assert list(manifest) == sorted(units)
        assert manifest.objects == {key: value for one in units.values() for key, value in one.items()}
    assert manifest.objects is same_objects  # the store that checks reads holds on to it


def test_an_object_that_is_written_again_is_expected_no_more_until_its_unit_is_committed():
    manifest = Manifest()
    manifest.add("whole", entry("whole", 1))
    manifest.disown("whole/c/0")
    assert "whole" in manifest
    assert set(manifest.objects) == {"whole/c/1"}
    manifest.add("whole", entry("whole", 2))
    assert manifest.objects == entry("whole", 2)
