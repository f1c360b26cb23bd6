"""Short lists of values put into ascending order, with their labels: by counting digits, without comparisons."""

import numpy as np

from scalemani.kernels.machine.compile import compiled

DIGIT_BITS = 8  # 256 counters stay in the first-level cache beside the lists
DIGITS = 3  # 24 bits tell most values apart: what they do not is left to neighbours in the list
_DIGIT_VALUES = 2**DIGIT_BITS
_BITS = np.int64(64)


@compiled
def sort_ascending(values: np.ndarray, labels: np.ndarray, other_values: np.ndarray, other_labels: np.ndarray) -> None:
    """Sort values, and their labels with them; equal values stay in the order in which they come.

    Their bits are sorted by the 24 leading ones that differ, digit after digit, and what these leave by insertion:
    there is no branch to mispredict for each comparison.

    Parameters
    ----------
    values : (n,) float64, not negative, no -0; changed in place
    labels : (n,) int32, which move with the values
    other_values, other_labels : (n,) of the same dtypes, what is worked in
    """
    keys, other_keys = values.view(np.uint64), other_values.view(np.uint64)
    shift = _first_digit(keys)
    counts = np.empty(_DIGIT_VALUES, dtype=np.int64)
    for digit in range(DIGITS):
        if digit % 2 == 0:
            _sort_by_digit(keys, labels, shift + np.uint64(digit * DIGIT_BITS), counts, other_keys, other_labels)
        else:
            _sort_by_digit(other_keys, other_labels, shift + np.uint64(digit * DIGIT_BITS), counts, keys, labels)
    for i in range(values.shape[0]):
        value, label, place = other_values[i], other_labels[i], i
        while place > 0 and values[place - 1] > value:
            values[place], labels[place] = values[place - 1], labels[place - 1]
            place -= 1
        values[place], labels[place] = value, label


@compiled
def _first_digit(keys: np.ndarray) -> np.uint64:
    """Return how many trailing bits of the keys (n,) the digits leave out."""
    differing = np.uint64(0)
    for key in keys:
        differing |= key ^ keys[0]
    n_differing = np.int64(0)
    while n_differing < _BITS and differing >> np.uint64(n_differing) != np.uint64(0):
        n_differing += 1
    return np.uint64(max(0, n_differing - DIGITS * DIGIT_BITS))


@compiled
def _sort_by_digit(
    keys: np.ndarray,
    labels: np.ndarray,
    shift: np.uint64,
    counts: np.ndarray,
    sorted_keys: np.ndarray,
    sorted_labels: np.ndarray,
) -> None:
    mask = np.uint64(_DIGIT_VALUES - 1)
    counts[:] = 0
    for i in range(np.uint64(keys.shape[0])):
        counts[(keys[i] >> shift) & mask] += 1
    total = np.int64(0)
    for value in range(_DIGIT_VALUES):
        count = counts[value]
        counts[value] = total
        total += count
    for i in range(np.uint64(keys.shape[0])):
        value = (keys[i] >> shift) & mask
        place = np.uint64(counts[value])
        counts[value] += 1
        sorted_keys[place], sorted_labels[place] = keys[i], labels[i]
