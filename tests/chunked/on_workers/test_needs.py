"""What is listed of refinement on workers: nothing that grows with the points but the embedding stays on the driver."""

import dataclasses

import pytest

from scalemani.chunked.needs import CACHE, EACH_PROCESS, GROWING, memory_need, span_bytes, steps_of
from scalemani.chunked.sizes import Sizes
from scalemani.chunked.task import Dimensions
from scalemani.params import Parameters
from scalemani.stages.table import STAGES

PARAMS = Parameters().with_values({"neighbors": {"n_neighbors": 15}, "affinities": {"perplexity": 5}})
MILLION = Sizes(Dimensions(10**6, 3, "float32", 20_480), PARAMS, on_cluster=True)
MOST_ON_THE_DRIVER = 8e9


def of_points(count):
    return dataclasses.replace(MILLION, dimensions=dataclasses.replace(MILLION.dimensions, n_points=count))


@pytest.mark.parametrize("k", [15, 90])
@pytest.mark.parametrize("stage", ["coarse_embedding", "embedding"])
def test_what_each_process_holds_does_not_grow_and_fits_the_driver(stage, k):
    params = PARAMS.with_values({"neighbors": {"n_neighbors": k}, "affinities": {"perplexity": k / 3}})
    held = [STAGES[stage].memory(dataclasses.replace(of_points(count), params=params)) for count in (10**8, 10**9)]
    small, large = (span_bytes(listed, steps_of(listed)[-1])[EACH_PROCESS] for listed in held)
    assert small == large < MOST_ON_THE_DRIVER
    need = memory_need(held[1])
    assert need.fixed + need.per_task < MOST_ON_THE_DRIVER


def test_of_the_points_the_driver_of_a_cluster_holds_the_embedding_alone():
    sizes = of_points(10**9)
    growing = {record.name for record in STAGES["embedding"].memory(sizes) if record.span == GROWING}
    assert {name for name in growing if "coarse graphs" not in name and "their nodes" not in name} == {
        "embedding and rows, in work and in input order",
        "vectors wanted",
    }
    alone = STAGES["embedding"].memory(dataclasses.replace(sizes, on_cluster=False))
    assert {"values of W", "vectors while they are refined"} <= {record.name for record in alone}
    assert CACHE not in {record.span for record in alone}


@pytest.mark.parametrize(
    "change",
    [
        {"on_cluster": False},
        {"n_appended": 10},
        {"params": Parameters().with_values({"embedding": {"solver": "lll+refine"}})},
    ],
)
def test_other_refinements_are_listed_as_those_in_memory(change):
    sizes = dataclasses.replace(of_points(10**8), **change)
    assert "values of W" in {record.name for record in STAGES["embedding"].memory(sizes)}
