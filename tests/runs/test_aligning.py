import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scalemani as sm
from scalemani.errors import DataError
from scalemani.kernels.measures import procrustes_error


def similarity(rng, d):
    return rng.uniform(0.1, 9), np.linalg.qr(rng.normal(size=(d, d)))[0], rng.normal(size=d) * 50


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(5, 60))
def test_a_similarity_is_found_again_and_its_residual_is_that_of_the_noise(seed, d, n):
    rng = np.random.default_rng(seed)
    embedding, (scale, rotation, translation) = rng.normal(size=(n, d)), similarity(rng, d)
    exact = scale * embedding @ rotation + translation
    found = sm.align(embedding, exact)
    np.testing.assert_allclose(found.rotation, rotation, atol=1e-7)
    np.testing.assert_allclose(found.translation, translation, atol=1e-6)
    assert found.scale == pytest.approx(scale)
    assert found.reflected == (np.linalg.det(rotation) < 0)
    assert found.relative_residual < 1e-9
    noisy = exact + rng.normal(size=exact.shape)
    found = sm.align(embedding, noisy)
    assert found.relative_residual == pytest.approx(procrustes_error(embedding, noisy), abs=1e-7)
    distances = np.linalg.norm(found.apply(embedding) - noisy, axis=1)
    assert found.residual == pytest.approx(np.sqrt(np.mean(distances**2)))


def test_runs_are_aligned_by_identifier_without_the_points_that_one_left_out(scalemani, tmp_path):
    rng = np.random.default_rng(0)
    points = rng.uniform(size=(300, 3))
    points[280:] += 1000.0  # in a component of their own
    few = {"n_neighbors": 10, "perplexity": 3}
    sm.LaplacianEigenmaps(**few, disconnected="largest", store=tmp_path / "one").fit(points)
    order = rng.permutation(280)
    sm.LaplacianEigenmaps(**few, store=tmp_path / "other", residual=1e-6).fit(points[order])
    ids = [f"p{row}" for row in range(300)]
    (tmp_path / "one.txt").write_text("\n".join(ids))
    (tmp_path / "other.txt").write_text("\n".join(ids[row] for row in order))
    places = (tmp_path / "one", tmp_path / "other", "--ids", tmp_path / "one.txt", tmp_path / "other.txt")
    status, printed, _ = scalemani("align", *places, "--json")
    found = json.loads(printed)
    assert (status, found["shared_rows"]) == (0, 280)
    assert found["relative_residual"] < 0.05
    status, printed, _ = scalemani("align", *places)
    assert "shared rows 280" in printed
    assert f"relative residual {found['relative_residual']}" in printed
    by_position = json.loads(scalemani("align", *places[:2], "--json")[1])
    assert by_position["relative_residual"] > 0.5


def test_what_cannot_be_aligned_is_refused(scalemani, tmp_path):
    with pytest.raises(DataError, match="2 and 3 columns"):
        sm.align(np.zeros((5, 2)), np.zeros((5, 3)))
    with pytest.raises(DataError, match="1 rows have a position in both"):
        sm.align([[0.0], [1.0]], [[0.0], [1.0]], ([1, 2], [2, 3]))
    with pytest.raises(DataError, match="repeat: 4"):
        sm.align([[0.0], [1.0]], [[0.0], [1.0]], ([4, 4], [2, 3]))
    status, _, told = scalemani("align", tmp_path / "no", tmp_path / "other")
    assert status == 2
    assert str(tmp_path / "no") in told


@settings(max_examples=40, derandomize=True, deadline=None)
@given(power=st.integers(-900, 900), other_power=st.integers(-900, 900), seed=st.integers(0, 99))
def test_a_power_of_two_comes_back_as_the_scale_and_changes_no_other_number(power, other_power, seed):
    rng = np.random.default_rng(seed)
    one = rng.normal(size=(30, 2)) + 4
    other = one @ np.linalg.qr(rng.normal(size=(2, 2)))[0] + 0.1 * rng.normal(size=(30, 2))
    at_one = sm.align(one, other)
    if abs(other_power - power) > 1000:
        power = -power  # a scale that float64 has
    if abs(other_power - power) > 1000:
        power = 0
    found = sm.align(np.ldexp(one, power), np.ldexp(other, other_power))
    assert found.relative_residual == pytest.approx(at_one.relative_residual, rel=1e-9)
    assert np.ldexp(found.residual, -other_power) == pytest.approx(at_one.residual, rel=1e-9)
    assert np.ldexp(found.scale, power - other_power) == pytest.approx(at_one.scale, rel=1e-9)
    np.testing.assert_allclose(found.rotation, at_one.rotation, atol=1e-9)
    np.testing.assert_allclose(np.ldexp(found.translation, -other_power), at_one.translation, atol=1e-8)
    np.testing.assert_allclose(
        np.ldexp(found.apply(np.ldexp(one, power)), -other_power), at_one.apply(one), rtol=1e-9, atol=1e-9
    )


def test_embeddings_whose_ratio_no_float64_holds_are_refused_and_others_of_any_size_are_aligned():
    rows = np.random.default_rng(0).normal(size=(30, 2))
    for one, other in ((rows * 1e-310, rows), (rows, rows * 1e-310), (rows * 1e-200, rows * 1e140)):
        with pytest.raises(DataError, match=r"2\^-?\d+ times as large as the embedding, which no float64 holds"):
            sm.align(one, other)
    for size in (1e-305, 1e-200, 1e140):
        found = sm.align(rows * size, rows)
        assert found.scale == pytest.approx(1 / size)
        np.testing.assert_allclose(found.apply(rows * size), rows, atol=1e-12)
    assert sm.align(np.zeros((30, 2)), rows).scale == 0
