"""Side data: all that was given, of chosen rows too; labels as classes, and the class of rows that are one point."""

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.errors import DataError
from scalemani.io.sources import open_points
from scalemani.io.sources.side_data import points_of, with_init, with_labels, with_weights
from scalemani.runs.preprocessing.following import follow_source

POINTS = np.random.default_rng(0).normal(size=(6, 2))
LABELS = np.array([7, -1, 9, 7, 9, -1])


def labelled(labels=LABELS, partial=True):
    return with_labels(open_points(POINTS), labels, partial=partial).side.labels


def test_without_leave_to_be_missing_every_label_is_a_class():
    assert labelled(partial=False).codes.tolist() == [1, 0, 2, 1, 2, 0]
    with pytest.raises(DataError, match=r"2 of 6 points have none, in row\(s\) 1, 5"):
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
    assert (found.counts.tolist(), found.digest) == ([2, 2], labelled().digest)


def test_kinds_of_labels_that_cannot_be_missing_are_all_there():
    assert labelled(LABELS == 7).codes.tolist() == [1, 0, 0, 1, 0, 0]
    assert labelled((LABELS + 1).astype(np.uint8)).codes.min() == 0


def test_chosen_rows_may_have_one_class_or_none():
    for rows, codes, counts in (([1, 2, 4], [-1, 0, 0], [2]), ([1, 5], [-1, -1], []), ([4, 3], [1, 0], [1, 1])):
        chosen = labelled().of_rows(np.array(rows))
        assert (chosen.codes.tolist(), chosen.counts.tolist()) == (codes, counts)


def test_rows_that_are_one_point_have_a_class_where_their_labels_agree():
    groups = np.array([0, 0, 1, 1, 2, 3])  # a label and none, two labels, one label, none
    assert labelled().of_distinct(groups, 4).codes.tolist() == [0, -1, 1, -1]


def test_points_have_all_side_data_that_were_given_in_any_order():
    points, weights, init = open_points(POINTS), np.arange(1.0, 7.0), np.zeros((6, 2))
    for first, second in ((with_weights, with_init), (with_init, with_weights)):
        values = {with_weights: weights, with_init: init}
        found = with_labels(second(first(points, values[first]), values[second]), LABELS, partial=True)
        assert points_of(found) is points
        np.testing.assert_array_equal(found.read(1, 4), POINTS[1:4])
        np.testing.assert_array_equal(found.side.weights.values, weights)
        np.testing.assert_array_equal(found.side.init.coordinates, init)
        assert found.side.labels.codes.tolist() == [0, -1, 1, 0, 1, -1]
        assert found.side.landmarks is None
    _, mapped = follow_source(Parameters().with_values({"points": {"metric": "cosine"}}), found)
    assert mapped.side is found.side
    np.testing.assert_allclose(np.linalg.norm(mapped.read(0, 6), axis=1), 1)
