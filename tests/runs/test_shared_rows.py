import numpy as np
import pytest

from scalemani.errors import DataError
from scalemani.runs.aligning import shared_rows


def test_rows_at_one_position_are_shared_as_far_as_both_go():
    np.testing.assert_array_equal(shared_rows(3, 5), [[0, 1, 2], [0, 1, 2]])
    np.testing.assert_array_equal(shared_rows(4, 2), [[0, 1], [0, 1]])


def test_rows_of_one_identifier_are_shared_in_whatever_order(tmp_path):
    file = tmp_path / "ids.txt"
    file.write_text("d\nb\nx\na\n")
    own, others = shared_rows(3, 4, (["a", "b", "c"], file))
    np.testing.assert_array_equal(own, [0, 1])
    np.testing.assert_array_equal(others, [3, 1])
    own, others = shared_rows(3, 2, (np.array([7, 8, 9], np.uint8), np.array([9, 7])))
    np.testing.assert_array_equal([own, others], [[0, 2], [1, 0]])


def test_identifiers_of_two_integer_types_are_the_same_points_only_where_they_are_equal():
    own, others = shared_rows(2, 2, (np.array([2**53, 7]), np.array([2**53 + 1, 7], np.uint64)))
    np.testing.assert_array_equal([own, others], [[1], [1]])


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ((["a", "b", "a"], ["a", "b"]), r"1 of them repeat: a \(first in row 0\)"),
        (([1, 2, 3], [4, 4]), r"repeat: 4 \(first in row 0\)"),
        (([1, 2], [3, 4]), "2 identifiers for 3 points"),
        (([1, 2, 3], ["1", "2"]), "of one kind"),
        (([0.5, 1.5, 2.5], [1, 2]), "integers or text"),
        (([1, 2, 3], [4, 5]), "no row is shared"),
    ],
)
def test_identifiers_that_do_not_tell_rows_apart_are_refused(ids, words):
    with pytest.raises(DataError, match=words):
        shared_rows(3, 2, ids)
