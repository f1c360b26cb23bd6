"""The table of a grid: ranks, what cells share, what failed, and the files that hold it."""

import csv
import json
import resource
import signal

import numpy as np
import pytest

from scalemani.errors import StoreError
from scalemani.interfaces.tuning.search import Cell, Stage, Tuning
from scalemani.kernels.measures import Measure

MORE, LESS = "trustworthiness", "clustering-error"


def cell(value, score=MORE, stages=(), **values):
    scores = {} if value is None else {score: Measure(value, 0.01, 100)}
    return Cell(values, "t-sne", scores, dict(stages), failure="ConfigError: no" if value is None else None)


def tuning(*cells, score=MORE):
    return Tuning("/runs/grid", cells, (score,))


@pytest.mark.parametrize(("score", "best", "ranks"), [(MORE, 1, [3, 1, 1, 4, None]), (LESS, 3, [2, 3, 3, 1, None])])
def test_the_best_cell_is_the_first_of_the_best_by_the_sense_of_its_score(score, best, ranks):
    values = (0.5, 0.9, 0.9, 0.1, None)
    found = tuning(*(cell(value, score, perplexity=number) for number, value in enumerate(values)), score=score)
    assert (found.best_index_, found.best_params_) == (best, {"perplexity": best})
    assert found.best_score_ == values[best]
    assert list(found.results_["rank"]) == ranks
    assert found.n_failed == 1


def test_without_any_score_there_is_no_best():
    found = tuning(cell(None), cell(None))
    assert (found.best_index_, found.best_params_, found.n_failed) == (None, {}, 2)
    assert np.isnan(found.best_score_)
    assert list(found.results_["rank"]) == [None, None]


def test_the_seconds_of_a_stage_that_all_its_cells_share_count_for_none_of_them():
    graph = ("neighbors", Stage("same", 10.0))
    cells = [cell(0.5, stages=[graph, ("layout", Stage(f"own {n}", 1.0 + n))], perplexity=n) for n in range(3)]
    found = tuning(*cells, cell(None, perplexity=9))
    assert found.shared_seconds == {"neighbors": 10.0}
    np.testing.assert_array_equal(found.results_["seconds"], [1.0, 2.0, 3.0, np.nan])


def test_a_stage_with_another_key_in_one_cell_or_in_a_single_cell_is_not_shared():
    one = cell(0.5, stages=[("neighbors", Stage("a", 1.0)), ("layout", Stage("x", 2.0))])
    other = cell(0.5, stages=[("neighbors", Stage("b", 4.0))])
    found = tuning(one, other)
    assert found.shared_seconds == {}
    np.testing.assert_array_equal(found.results_["seconds"], [3.0, 4.0])


def test_names_of_all_cells_are_columns_and_what_a_cell_has_not_is_none():
    found = tuning(cell(0.5, perplexity=5), cell(0.6, max_iter=20, perplexity=9))
    table = found.results_
    assert found.names == ["perplexity", "max_iter"]
    assert list(table["param_max_iter"]) == [None, 20]
    assert list(table["params"]) == [{"perplexity": 5}, {"max_iter": 20, "perplexity": 9}]
    assert list(table[MORE]) == [0.5, 0.6]
    assert list(table[f"{MORE}_error"]) == [0.01, 0.01]


def test_the_files_say_what_the_table_says(tmp_path):
    stages = [("neighbors", Stage("same", 10.0))]
    found = tuning(cell(0.5, stages=stages, perplexity=5), cell(0.7, stages=stages, perplexity=9), cell(None, k=1))
    written = found.write(tmp_path / "new" / "folder")
    assert [path.name for path in written] == ["tuning.csv", "tuning.json"]
    with written[0].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["rank"] for row in rows] == ["2", "1", ""]
    assert [row[MORE] for row in rows] == ["0.5", "0.7", ""]
    assert [row["param_k"] for row in rows] == ["", "", "1"]
    assert rows[2]["failure"] == "ConfigError: no"
    said = json.loads(written[1].read_text())
    assert (said["best_index"], said["scoring"], said["shared_seconds"]) == (1, [MORE], {"neighbors": 10.0})
    assert [one["scores"].get(MORE, {}).get("value") for one in said["cells"]] == [0.5, 0.7, None]
    assert [one["seconds"] for one in said["cells"]] == [{"neighbors": 10.0}, {"neighbors": 10.0}, {}]


@pytest.mark.parametrize("name", ["tuning.csv", "tuning.json"])
def test_files_that_cannot_be_written_whole_stay_as_they_were(tmp_path, name):
    tuning(cell(0.5, perplexity=5)).write(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(before["tuning.csv"]) < len(before["tuning.json"]) - 9
    limit, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before[name]) - 9, limit[1]))
    try:
        with pytest.raises(StoreError, match=f"cannot write .*{name}"):
            tuning(cell(0.7, perplexity=7)).write(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    assert (tmp_path / name).read_bytes() == before[name]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(before)


def of_two(*pairs, error=0.01):
    other = "label-accuracy"
    cells = []
    for number, (one, two) in enumerate(pairs):
        scores = {MORE: Measure(one, error, 100), other: Measure(two, error, 100)}
        cells.append(Cell({"w": number}, "t-sne", scores, {"layout": Stage(f"own {number}", 1.0)}))
    return Tuning("/runs/grid", (*cells, cell(None)), (MORE, other))


def test_cells_within_two_standard_errors_of_the_best_are_undecided():
    assert of_two((0.90, 0), (0.87, 0), (0.873, 0), (0.90, 0)).undecided_ == [2, 3]  # 2 * sqrt(2) * 0.01 = 0.0283
    assert of_two((0.90, 0), (0.89, 0), error=0.0).undecided_ == []
    assert tuning(cell(None)).undecided_ == []
    same = [cell(0.5, stages=[("layout", Stage(key, 1.0))], w=number) for number, key in enumerate("aab")]
    assert tuning(*same).undecided_ == [2]  # the second is the run of the best


def test_the_front_has_the_cells_that_none_exceeds_in_both_scores():
    found = of_two((0.9, 0.1), (0.5, 0.5), (0.4, 0.5), (0.1, 0.9), (0.5, 0.4), (0.45, 0.45))
    assert found.front_ == [3, 1, 0]
    assert found.as_dict()["front"] == [3, 1, 0]
    assert tuning(cell(0.5), cell(0.6)).front_ == []
    equal = of_two((0.5, 0.5), (0.5, 0.5))
    assert equal.front_ == [0, 1]
