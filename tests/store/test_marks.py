"""Marks by unit and by object: one is always what the other says."""

from hypothesis import given
from hypothesis import strategies as st

from scalemani.store.groups import Marks

UNITS = st.sampled_from(["schema", "whole", "block-000000", "block-000001"])
CHANGES = st.one_of(
    st.tuples(st.just("add"), UNITS, st.integers(0, 9)),
    st.tuples(st.just("remove"), UNITS, st.just(0)),
    st.tuples(st.just("replace"), st.lists(UNITS, unique=True), st.integers(0, 9)),
)


def mark(unit, length):
    """Return the mark of a unit: no two units write the same object."""
    return {f"{unit}/c/{number}": (length, f"digest-{length}", "") for number in range(2)}


@given(st.lists(CHANGES, max_size=30))
def test_the_objects_are_those_of_the_units_after_any_changes(changes):
    marks, units = Marks(), {}
    same_objects = marks.objects
    for change, which, length in changes:
        if change == "add":
            marks.add(which, mark(which, length))
            units[which] = mark(which, length)
        elif change == "remove":
            assert marks.remove(which) == units.pop(which, {})
        else:
            units = {unit: mark(unit, length) for unit in which}
            marks.replace(units)
        assert dict(marks.items()) == units
        assert list(marks) == sorted(units)
        assert marks.objects == {key: value for one in units.values() for key, value in one.items()}
    assert marks.objects is same_objects  # the store that checks reads holds on to it


def test_an_object_that_is_written_again_is_expected_no_more_until_its_unit_is_committed():
    marks = Marks()
    marks.add("whole", mark("whole", 1))
    marks.disown("whole/c/0")
    assert "whole" in marks
    assert set(marks.objects) == {"whole/c/1"}
    marks.add("whole", mark("whole", 2))
    assert marks.objects == mark("whole", 2)
