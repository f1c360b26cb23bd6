"""Routes as data: what follows what, and what methods cannot do without."""

import pytest

from scalemani.config.routes import ROUTES, WITHOUT_POINTS, takes_labels
from scalemani.config.routing import route

CELLS = {"partition", "work_points"}


@pytest.mark.parametrize("method", ROUTES)
def test_a_stage_follows_all_of_its_inputs(method):
    seen = set()
    for stage in route(method, "lll"):
        assert set(stage.inputs) <= seen
        seen.add(stage.name)


def test_discriminants_alone_cannot_do_without_labels():
    assert {method for method in ROUTES if takes_labels(method)} == {"lda", "kernel-lda"}


def test_methods_that_look_for_no_neighbors_store_points_once():
    names = {method: {stage.name for stage in route(method, "lll")} for method in ROUTES}
    without = {method for method in ROUTES if not CELLS & names[method]}
    assert {"pca", "lda"} <= without == {method for method in ROUTES if "neighbors" not in names[method]}


@pytest.mark.parametrize("method", WITHOUT_POINTS)
def test_what_is_given_in_the_place_of_points_leaves_out_what_comes_before_it(method):
    of_points, of_lists, of_affinities = (
        [stage.name for stage in route(method, "exact", metric, affinities=kind)]
        for metric, kind in (("euclidean", None), ("precomputed", None), ("precomputed", "precomputed"))
    )
    assert of_lists == [name for name in of_points if name not in ("partition", "landmarks")]
    assert of_affinities == [name for name in of_lists if name not in ("neighbors", "affinities", "components")]
    for stage in route(method, "exact", "euclidean", affinities="precomputed"):
        assert set(stage.inputs) <= set(of_affinities)
