"""New points as a source: read in parts as in one, refused before anything is placed, and accounted for."""

import numpy as np
import pytest

from scalemani.errors import DataError, ScalemaniWarning, ShortfallWarning
from scalemani.io.sources import open_points
from scalemani.runs.new_points import NewPoints, Placement
from scalemani.stages.arrays.embeddings import StoredPlacement


class Doubling:
    """A way that doubles the first column; of each call, the first point does not arrive."""

    def place(self, points):
        every = np.ones(len(points))
        coordinates, arrived = 2.0 * points[:, :1].astype(np.float64), np.arange(len(points)) > 0
        return {
            StoredPlacement.coordinates: coordinates,
            StoredPlacement.isolation: np.abs(points[:, 1]),
            StoredPlacement.descended: every > 0,
            StoredPlacement.arrived: arrived,
            StoredPlacement.falls: 0.5 * every,
        }


DOUBLING = Placement(Doubling(), (3, 1), "euclidean", sparse=False)


def points_of(n_points):
    return np.random.default_rng(0).normal(size=(n_points, 3)).astype(np.float32)


def test_parts_give_what_the_whole_gives():
    points = points_of(50)
    new = NewPoints(DOUBLING, open_points(points))
    assert new.shape == (50, 1)
    parts = [new.read(start, stop) for start, stop in ((0, 7), (7, 49), (49, 50))]
    np.testing.assert_array_equal(np.concatenate(parts), new.read_all())
    np.testing.assert_array_equal(new.read_all(), 2.0 * points[:, :1])


def test_no_points_have_no_coordinates_and_nothing_to_say():
    new = NewPoints(DOUBLING, open_points(np.empty((0, 3))))
    assert new.read_all().shape == (0, 1)
    assert new.account.certificates == {}
    assert new.account.warnings == []


def test_other_columns_are_refused_before_a_row_is_read():
    with pytest.raises(DataError, match=r"4 features.* 3 features: give points with the same columns"):
        NewPoints(DOUBLING, open_points(np.zeros((5, 4))))


def test_a_value_that_is_not_finite_is_named_by_its_row_in_the_whole(tmp_path):
    points = points_of(20)
    points[13, 2] = np.nan
    np.save(tmp_path / "points.npy", points)
    new = NewPoints(DOUBLING, open_points(tmp_path / "points.npy"))
    new.read(0, 13)
    with pytest.raises(DataError, match="row 13, column 2"):
        new.read(10, 20)


def test_the_account_adds_up_what_every_read_placed():
    points = points_of(30)
    points[:, 1] = 0
    points[21, 1] = 500.0
    points[3:5, 1] = 0.9
    points[6:14, 1] = 1.5
    new = NewPoints(DOUBLING, open_points(points))
    new.read(0, 20)
    new.read(20, 30)
    shares = {"far": 1 / 30, "isolated": 9 / 30, "arrived": 28 / 30, "mean_fall": 0.5}
    assert new.account.certificates == pytest.approx(shares)
    (far, far_kind), (alone, alone_kind), (moving, moving_kind) = new.account.warnings
    assert far.startswith("1 of 30 new points lie more than 2 times as far from the nearest landmarks or neighbours ")
    assert "first rows 21:" in far
    assert alone.startswith("8 of 30 new points lie farther from the nearest landmarks or neighbours than 98% of the ")
    assert "first rows 6, 7, 8, 9, 10:" in alone
    assert moving.startswith("2 of 30 new points were still moving")
    assert (far_kind, alone_kind, moving_kind) == (ScalemaniWarning, ScalemaniWarning, ShortfallWarning)
