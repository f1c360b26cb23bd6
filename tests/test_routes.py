"""Routes as data: what follows what, and what methods cannot do without."""

import pytest

from scalemani.routes import ROUTES, route, takes_labels

CELLS = {"partition", "work_points"}


@pytest.mark.parametrize("method", ROUTES)
def test_a_stage_follows_all_of_its_inputs(method):
    seen = set()
    for stage in route(method, "lll"):
        assert set(stage.inputs) <= seen
        seen.add(stage.name)


def test_discriminants_alone_cannot_do_without_labels():
    assert {method for method in ROUTES if takes_labels(method)} == {"lda", "kernel-lda"}


def test_linear_methods_alone_store_points_once():
    without = {method for method in ROUTES if not CELLS & {stage.name for stage in route(method, "lll")}}
    assert without == {"pca", "lda"}
