"""The pull to a reference map: value and gradient against the formula written out, and what it does to maps."""

from dataclasses import replace

import numpy as np
import pytest

import scalemani as sm
from scalemani.config.objectives import OBJECTIVES
from scalemani.descents.problem import problem_of
from scalemani.descents.pull import towards
from scalemani.descents.repulsion import make_repulsion
from scalemani.errors import ConfigError, DataError, ScalemaniWarning
from scalemani.kernels.graph.attraction import AffinityRows
from tests.descents.test_problem import affinities

STEP = 1e-30  # of the complex step


def written_out(positions, reference, weight, masses):
    """Return the pull by its definition, for complex positions too; masses are zero where there is no reference."""
    shares = (masses / masses.sum())[:, np.newaxis]
    known = np.nan_to_num(reference)
    known = known - (shares * known).sum(axis=0)
    known = known / np.sqrt((shares * known**2).sum())
    centred = positions - (shares * positions).sum(axis=0)
    size = np.sqrt((shares * centred**2).sum())
    return weight * (shares * (centred - size * known) ** 2).sum() / (1 + size**2)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 40.0])
@pytest.mark.parametrize("masses", [None, np.arange(1.0, 31.0)])
@pytest.mark.parametrize("missing", [0, 7])
def test_value_and_gradient_are_those_of_the_formula(scale, masses, missing):
    draws = np.random.default_rng(3)
    positions, reference = scale * draws.normal(size=(30, 2)) + scale, draws.normal(size=(30, 2)) * [3.0, 1.0] + 5.0
    reference[:missing] = np.nan
    weights = np.where(np.isnan(reference[:, 0]), 0.0, np.ones(30) if masses is None else masses)
    pull, gradient = towards(reference, 2.5, masses), np.ones((30, 2))
    expected = written_out(positions, reference, 2.5, weights)
    assert pull.add(positions, gradient) == pytest.approx(expected, rel=1e-10)
    assert pull.add(positions) == pytest.approx(expected, rel=1e-10)
    assert pull.n_pulled == 30 - missing
    for _ in range(4):
        along = draws.normal(size=positions.shape)
        slope = written_out(positions + 1j * STEP * along, reference, 2.5, weights).imag / STEP
        assert ((gradient - 1.0) * along).sum() == pytest.approx(slope, rel=1e-9, abs=1e-12 / scale)


@pytest.mark.parametrize("method", OBJECTIVES)
def test_every_objective_adds_it_to_its_value_and_gradient(method):
    draws, dense = np.random.default_rng(4), affinities(40)
    positions, reference = draws.normal(size=(40, 2)), draws.normal(size=(40, 2))
    entries = np.nonzero(dense)
    indptr = np.concatenate([[0], np.cumsum((dense > 0).sum(axis=1))])
    rows = AffinityRows(indptr, entries[1].astype(np.uint32), dense[entries])
    plain = problem_of(rows, OBJECTIVES[method], 1.0)
    pulled = replace(plain, pull=towards(reference, 3.0))
    sums = make_repulsion("exact", OBJECTIVES[method].kernel, 1e-3)
    one, other = plain.evaluate(positions, sums), pulled.evaluate(positions, sums)
    expected = written_out(positions, reference, 3.0, np.ones(40))
    assert other.value - one.value == pytest.approx(expected, rel=1e-9)
    assert pulled.value(positions, sums) == pytest.approx(other.value, rel=1e-12)
    along = draws.normal(size=positions.shape)
    slope = written_out(positions + 1j * STEP * along, reference, 3.0, np.ones(40)).imag / STEP
    assert ((other.gradient - one.gradient) * along).sum() == pytest.approx(slope, rel=1e-8)


def test_a_start_is_turned_and_reflected_to_the_reference_alone():
    draws = np.random.default_rng(5)
    reference = draws.normal(size=(50, 2)) * [4.0, 1.0]
    angle = np.array([[np.cos(2.0), np.sin(2.0)], [np.sin(2.0), -np.cos(2.0)]])
    start = (reference - reference.mean(axis=0)) @ angle
    np.testing.assert_allclose(towards(reference, 1.0).turned(start), start @ angle.T, atol=1e-12)


def test_a_reference_of_one_place_is_refused():
    with pytest.raises(DataError, match="one place for all points: give one with"):
        towards(np.ones((5, 2)), 1.0)


FEW = {"neighbors.n_neighbors": 12, "layout.max_iterations": 150}
POINTS = np.random.default_rng(6).normal(size=(400, 8)) * np.linspace(4, 1, 8)


def axes(points):
    """Return the first two principal components by NumPy, at unit root mean square."""
    centred = points - points.mean(axis=0)
    components = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    return components / np.sqrt((components**2).sum(axis=1).mean())


def distance(embedding, reference):
    """Return the root mean square distance of two maps about their means, both at unit size."""
    centred = embedding - embedding.mean(axis=0)
    apart = centred / np.sqrt((centred**2).sum(axis=1).mean()) - reference
    return np.sqrt((apart**2).sum(axis=1).mean())


def correlation(embedding, reference):
    """Return the mean product of places of two maps at unit size, after the best turn."""
    maps = [one - one.mean(axis=0) for one in (embedding, reference)]
    one, other = (each / np.sqrt((each**2).sum(axis=1).mean()) for each in maps)
    return np.linalg.svd(one.T @ other / len(one), compute_uv=False).sum()


@pytest.mark.parametrize(("kind", "least"), [(sm.TSNE, 0.97), (sm.ElasticEmbedding, 0.8)])
def test_maps_come_nearer_to_principal_components_and_say_how_near(kind, least):
    found = [kind(perplexity=4, settings=FEW, global_weight=weight).fit(POINTS) for weight in (0.0, 30.0)]
    plain, pulled = (correlation(model.embedding_, axes(POINTS)) for model in found)
    assert pulled > max(least, plain + 0.02)
    certificates = found[1].certificates_["layout"]
    apart = [distance(found[1].embedding_, axes(POINTS) * signs) for signs in ([1, 1], [1, -1], [-1, 1], [-1, -1])]
    assert certificates["reference_distance"] == pytest.approx(min(apart), abs=1e-3)
    assert certificates["pulled"] == 400
    assert "reference_distance" not in found[0].certificates_["layout"]


def test_an_earlier_map_keeps_its_place_and_other_points_are_free():
    before = sm.TSNE(perplexity=4, settings=FEW).fit(POINTS[:300])
    known = np.vstack([before.embedding_, np.full((100, 2), np.nan)])
    after = sm.TSNE(perplexity=6, settings=FEW, init=known, reference=known, global_weight=30.0).fit(POINTS)
    alone = sm.TSNE(perplexity=6, settings=FEW, init=known).fit(POINTS)
    assert after.certificates_["layout"]["pulled"] == 300
    kept, lost = (sm.measures.procrustes_error(one.embedding_[:300], known[:300]) for one in (after, alone))
    assert kept < 0.5 * lost


def test_a_reference_without_weight_has_no_effect_and_one_of_another_width_is_refused():
    with pytest.warns(ScalemaniWarning, match=r"has no effect: it acts only where global_weight is above 0"):
        unpulled = sm.TSNE(perplexity=4, settings=FEW, reference=POINTS[:, :2]).fit(POINTS)
    np.testing.assert_array_equal(unpulled.embedding_, sm.TSNE(perplexity=4, settings=FEW).fit(POINTS).embedding_)
    with pytest.raises(ConfigError, match="reference has 3 columns and the embedding"):
        sm.TSNE(perplexity=4, settings=FEW, reference=POINTS[:, :3], global_weight=1.0).fit(POINTS)
    with pytest.raises(ConfigError, match=r"global_weight must be <= 1"):
        sm.TSNE(perplexity=4, global_weight=1e6).fit(POINTS)
    with pytest.raises(ConfigError, match=r"reference='pca' needs coordinates"):
        sm.TSNE(perplexity=4, metric="canberra", global_weight=1.0).fit(np.abs(POINTS))


@pytest.mark.parametrize("missing", [0, 7])
def test_a_point_alone_has_the_term_of_all_with_it_moved(missing):
    draws = np.random.default_rng(6)
    positions, reference = draws.normal(size=(30, 2)) + 1.0, draws.normal(size=(30, 2))
    reference[:missing] = np.nan
    weights = (np.arange(30) >= missing).astype(float)
    alone = towards(reference, 2.5).alone(positions, 0.5)
    rows, places = np.array([2, 9, 20]), 2.0 * draws.normal(size=(3, 2))
    values, gradients, curvatures = alone.evaluate(rows, places)
    for at, row in enumerate(rows):

        def term(place, row=row):
            moved = positions.astype(complex)
            moved[row] = place
            return written_out(moved, reference, 1.25, weights)

        assert values[at] == pytest.approx(term(places[at]).real, rel=1e-10)
        slopes = [term(places[at] + 1j * STEP * way).imag / STEP for way in np.eye(2)]
        np.testing.assert_allclose(gradients[at], slopes, rtol=1e-8, atol=1e-14)
    assert (curvatures > 0).tolist() == [missing == 0, True, True]
