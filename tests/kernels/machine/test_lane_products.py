import numba
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.machine.compile import PLAIN, compiled, emitted
from scalemani.kernels.machine.instructions import ITEM_BYTES, LANES_AT_ONCE
from scalemani.kernels.rows.products import (
    PANEL_ROWS,
    ROWS_AT_ONCE,
    emit_products,
    multiply_strip,
    plain_multiply_strip,
)


def multiplying(multiply_strip):
    """Return a function of arrays that calls one of addresses."""

    def multiply(rows, bases, strip, norms, sums, first):
        multiply_strip(
            rows.ctypes.data,
            bases.ctypes.data,
            rows.shape[1],
            strip.ctypes.data,
            norms.ctypes.data,
            sums.ctypes.data + ITEM_BYTES * first,
        )

    return multiply


def multiply_plainly(rows, bases, strip, norms, sums, first):
    addresses = [array.ctypes.data for array in (rows, bases, strip, norms)]
    plain_multiply_strip(*addresses[:2], rows.shape[1], *addresses[2:], sums.ctypes.data + ITEM_BYTES * first)


def multiply_as_compiled_for(n_rows):
    """Return the function as it is compiled for processors that keep the sums of so many rows in registers."""

    @emitted(numba.types.void, *[numba.types.int64] * 6)
    def multiply_rows(builder, rows, bases, n_terms, strip, norms, sums):
        emit_products(builder, n_rows, (rows, bases, n_terms, strip, norms, sums))

    return numba.njit(multiplying(multiply_rows))


def filled(seed, n_rows, n_terms):
    draws = np.random.default_rng(seed)
    shapes = [(n_rows, n_terms), (n_rows,), (n_terms, LANES_AT_ONCE), (LANES_AT_ONCE,)]
    return *(draws.normal(size=shape).astype(np.float32) for shape in shapes), np.zeros(
        (n_rows, PANEL_ROWS), np.float32
    )


def begun_and_added(rows, bases, strip, norms):
    return bases[:, np.newaxis].astype(float) + norms + rows.astype(float) @ strip


WAYS = [(compiled(multiplying(multiply_strip)), ROWS_AT_ONCE), (multiply_plainly, ROWS_AT_ONCE)]
WAYS += [] if PLAIN else [(multiply_as_compiled_for(n_rows), n_rows) for n_rows in (6, 12)]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n_terms=st.integers(1, 70), first=st.integers(0, PANEL_ROWS - LANES_AT_ONCE))
def test_sums_of_products_are_written_beside_each_other_and_nowhere_else(seed, n_terms, first):
    for function, n_rows in WAYS:
        *given_arrays, sums = filled(seed, n_rows, n_terms)
        function(*given_arrays, sums, first)
        written = slice(first, first + LANES_AT_ONCE)
        np.testing.assert_allclose(sums[:, written], begun_and_added(*given_arrays), rtol=0, atol=1e-4)
        sums[:, written] = 0
        assert not sums.any()


def test_the_sums_of_a_row_have_the_same_bits_however_many_are_formed_together():
    found = []
    for function, n_rows in WAYS:
        if function is not multiply_plainly:
            rows, bases, strip, norms, sums = filled(0, n_rows, 64)
            rows[:], bases[:] = np.linspace(-1, 1, 64), 2
            strip[:], norms[:] = np.linspace(0.1, 3, 16) * np.arange(64)[:, np.newaxis], 0.3
            function(rows, bases, strip, norms, sums, 0)
            found.append(sums[:6])
    for sums in found[1:]:
        np.testing.assert_array_equal(sums, found[0])


def test_what_is_infinitely_far_stays_so():
    for function, n_rows in WAYS:
        rows, bases, strip, norms, sums = filled(0, n_rows, 5)
        norms[3] = np.inf
        function(rows, bases, strip, norms, sums, 0)
        assert np.isposinf(sums[:, 3]).all()
        assert np.isfinite(np.delete(sums, 3, axis=1)).all()
