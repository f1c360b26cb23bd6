"""Memory that arrays leave and later ones take: never while anything still looks at it."""

import gc
import threading

import numpy as np
import pytest

from scalemani.kernels.arrays.workspace import LEAST_BYTES, Recycled

SHAPE = (LEAST_BYTES // 16, 2)


def place_of(values):
    return values.__array_interface__["data"][0]


def test_memory_that_an_array_has_left_is_that_of_the_next_of_its_size():
    made = Recycled()
    first = made.empty(SHAPE, np.float64)
    assert (first.shape, first.dtype, first.flags.writeable, first.flags.c_contiguous) == (SHAPE, float, True, True)
    place = place_of(first)
    del first
    other = made.empty((SHAPE[0] + 1, 2), np.float64)
    again = made.empty((SHAPE[0] * 4,), np.float32)
    assert place_of(again) == place != place_of(other)


@pytest.mark.parametrize(
    "look",
    [
        lambda values: values[3:],
        lambda values: values[3:][::2],
        lambda values: values.reshape(-1)[5:].view(np.int64),
        lambda values: values.T,
        lambda values: memoryview(values),
        lambda values: np.asarray(memoryview(values))[1:],
        lambda values: np.broadcast_to(values[0], (7, 2)),
    ],
)
def test_memory_that_a_view_still_looks_at_is_lent_to_nobody(look):
    made = Recycled()
    first = made.empty(SHAPE, np.float64)
    first[...] = 1.0
    place, view = place_of(first), look(first)
    del first
    gc.collect()
    for _ in range(3):
        other = made.empty(SHAPE, np.float64)
        assert place_of(other) != place
        other[...] = 2.0
    assert (np.asarray(view) == np.ones(1).view(np.asarray(view).dtype)).all()
    del view
    kept = [made.empty(SHAPE, np.float64) for _ in range(3)]
    assert place in map(place_of, kept)


def test_no_more_memory_waits_than_was_in_use_at_once():
    made = Recycled()
    places = set()
    for _ in range(20):
        held = [made.empty(SHAPE, np.float64) for _ in range(3)]
        places |= set(map(place_of, held))
        del held
    assert len(places) == 3


def test_small_arrays_are_ordinary_ones():
    assert Recycled().empty((3, 2), np.float64).base is None


def test_threads_never_share_an_array():
    made, faults = Recycled(), []

    def fill(number):
        for _ in range(200):
            values = made.empty(SHAPE, np.float64)
            values[...] = number
            if not (values == number).all():
                faults.append(number)

    threads = [threading.Thread(target=fill, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
