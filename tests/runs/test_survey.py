"""What is told of points before anything is computed of them, and what is read of those that were appended."""

import json

import numpy as np
import pytest
from scipy import sparse

import scalemani as sm
from scalemani.engine.workers.executor import Executor
from scalemani.errors import DataError
from scalemani.io.sources import open_points
from scalemani.runs.survey import survey

POINTS = np.random.default_rng(0).random((1500, 3))


@pytest.mark.parametrize(
    ("points", "block_rows", "noted"),
    [
        (POINTS, 4096, ["a block has 2048 rows, which hold all 1500 points: 4096 were requested"]),
        (POINTS > 0.5, 1024, ["Booleans are stored as uint8 0 and 1"]),
        (POINTS.astype(np.float16), 2048, []),
        (POINTS, None, []),
    ],
)
def test_what_is_not_as_it_was_given_is_told(listening, points, block_rows, noted):
    survey(open_points(points), Executor(progress=listening), block_rows)
    assert listening.noted == noted


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_distinct_points_are_counted_where_they_are_fewer_than_landmarks_by_default(form):
    repeated, zeros = np.tile(POINTS[:800], (4, 1)), np.zeros((1, 3))
    signs = np.concatenate([repeated, zeros, -zeros])
    assert survey(open_points(form(signs)), Executor(), 1024).distinct_points == 801
    assert survey(open_points(form(np.tile(POINTS[:999], (3, 1)))), Executor(), 1024).distinct_points == 999
    assert survey(open_points(form(np.tile(POINTS[:1000], (3, 1)))), Executor(), 1024).distinct_points == 3000
    before = survey(open_points(form(repeated)), Executor(), 1024).points.extremes
    appended = open_points(form(np.concatenate([repeated, POINTS[800:900]])))
    assert survey(appended, Executor(), 1024, before).distinct_points == 900


def test_landmarks_that_nobody_counted_are_no_more_than_distinct_points(tmp_path):
    repeated = np.concatenate([POINTS[:800], POINTS[:400]])
    assert sm.LandmarkPCA(store=tmp_path / "run").fit(repeated).run_.params.n_landmarks == 800
    with pytest.raises(DataError, match="1000 landmarks were requested, but these 1200 points have only 800 distinct"):
        sm.LandmarkPCA(n_landmarks=1000).fit(repeated)


def test_points_that_follow_surveyed_ones_are_all_that_is_checked_again():
    points = POINTS.copy()
    points[:, 1], points[:1100, 2] = 7, 8
    whole, before = survey(open_points(points), Executor(), 1024), survey(open_points(points[:1100]), Executor(), 1024)
    known = json.loads(json.dumps(before.points.extremes))
    source = open_points(points)
    points[:1024] = np.nan
    found = survey(source, Executor(), 1024, known)
    assert [one.points.constant_features for one in (before, found, whole)] == [2, 1, 1]
    assert (found.dimensions, found.points.tile_digests[1:]) == (whole.dimensions, whole.points.tile_digests[1:])
    assert found.points.extremes == whole.points.extremes


@pytest.mark.parametrize("block_rows", [1024, 2048])
def test_appended_points_are_known_whatever_the_rows_a_block(block_rows):
    points = np.concatenate([POINTS, POINTS[::-1]])
    before = survey(open_points(points[:2100]), Executor(), block_rows).points.extremes
    contents = {survey(open_points(points), Executor(), rows, before).content for rows in (1024, block_rows)}
    changed = points.copy()
    changed[2100, 0] += 1
    assert len(contents) == 1
    assert survey(open_points(changed), Executor(), block_rows, before).content not in contents
