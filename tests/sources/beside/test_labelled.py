"""Labels as classes: which are missing, what goes with chosen rows, and the class of rows that are one point."""

import numpy as np
import pytest

from scalemani.errors import DataError
from scalemani.sources import open_points
from scalemani.sources.beside.labelled import LabelledPoints

POINTS = np.random.default_rng(0).normal(size=(6, 2))
LABELS = np.array([7, -1, 9, 7, 9, -1])


def labelled(labels=LABELS, partial=True):
    return LabelledPoints(open_points(POINTS), labels, partial=partial)


def test_without_leave_to_be_missing_every_label_is_a_class():
    assert labelled(partial=False).codes.tolist() == [1, 0, 2, 1, 2, 0]
    with pytest.raises(DataError, match="fractions or NaN"):
        labelled(np.where(LABELS == -1, np.nan, LABELS), partial=False)


@pytest.mark.parametrize(
    "labels",
    [
        LABELS,
        LABELS.astype(np.int8),
        np.where(LABELS == -1, np.nan, LABELS),
        np.where(LABELS == -1, "", LABELS.astype(str)),
        ["7", None, "9", "7", "9", float("nan")],
        ["7", "-1", "9", "7", "9", "-1"],
    ],
)
def test_missing_labels_have_no_class_however_they_are_written(labels):
    found = labelled(labels)
    assert found.codes.tolist() == [0, -1, 1, 0, 1, -1]
    assert (found.classes.counts, found.classes.digest) == ((2, 2), labelled().classes.digest)


def test_kinds_of_labels_that_cannot_be_missing_are_all_there():
    assert labelled(LABELS == 7).codes.tolist() == [1, 0, 0, 1, 0, 0]
    assert labelled((LABELS + 1).astype(np.uint8)).codes.min() == 0


def test_chosen_rows_may_have_one_class_or_none():
    found = labelled()
    for rows, codes, counts in (([1, 2, 4], [-1, 0, 0], (2,)), ([1, 5], [-1, -1], ()), ([4, 3], [1, 0], (1, 1))):
        chosen = found.of_rows(open_points(POINTS[rows]), np.array(rows))
        assert isinstance(chosen, LabelledPoints)
        assert (chosen.codes.tolist(), chosen.classes.counts) == (codes, counts)
        np.testing.assert_array_equal(chosen.read(0, len(rows)), POINTS[rows])


def test_rows_that_are_one_point_have_a_class_where_their_labels_agree():
    groups = np.array([0, 0, 1, 1, 2, 3])  # a label and none, two labels, one label, none
    found = labelled().of_distinct(open_points(POINTS[:4]), groups)
    assert found.codes.tolist() == [0, -1, 1, -1]
