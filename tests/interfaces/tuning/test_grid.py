import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalemani.config.params import parse_assignments
from scalemani.errors import ConfigError
from scalemani.interfaces.tuning import MOST_CELLS, combinations, flat_lists, parse_list


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("5,10,30", [5, 10, 30]),
        ("[5, 10, 30]", [5, 10, 30]),
        ("0.5", [0.5]),
        ("random,kmeans++ seeding", ["random", "kmeans++ seeding"]),
        ("none, 5", [None, 5]),
        ('"a,b",c', ["a,b", "c"]),
        ("true,false", [True, False]),
    ],
)
def test_commas_part_values_that_are_read_as_set_reads_them(text, values):
    assert parse_list(text) == values


@given(
    st.lists(st.text(st.characters(categories=("L", "Zs", "P"), exclude_characters="\"'\\"), min_size=1), min_size=1)
)
def test_values_with_commas_come_back_from_quotes(words):
    assert parse_list(",".join(f'"{word}"' for word in words)) == words


@pytest.mark.parametrize("text", ["", "5,,10", ",5", '"a', "[]"])
def test_lists_with_nothing_between_commas_are_refused(text):
    with pytest.raises(ConfigError, match="list of values"):
        parse_list(text)


def test_assignments_give_lists_by_name():
    found = parse_assignments(["affinities.perplexity=5,10", "seed=1"], parse_list)
    assert found == {"affinities.perplexity": [5, 10], "seed": [1]}
    with pytest.raises(ConfigError, match="--set takes"):
        parse_assignments(["perplexity"], parse_list)


def test_lists_of_a_configuration_are_values_and_other_values_the_only_one():
    tables = {"seed": 3, "affinities": {"perplexity": [5, 10], "kind": "entropic"}}
    assert flat_lists(tables) == {"seed": [3], "affinities.perplexity": [5, 10], "affinities.kind": ["entropic"]}


def test_every_combination_comes_once():
    lists = {"a": [1, 2, 3], "b": ["x"], "c": [None, 0.5]}
    found = combinations(lists)
    assert [tuple(cell.values()) for cell in found] == list(itertools.product(*lists.values()))
    assert all(list(cell) == ["a", "b", "c"] for cell in found)


def test_values_given_twice_and_grids_without_end_are_refused():
    with pytest.raises(ConfigError, match="distinct values"):
        combinations({"a": [1, 2, 1]})
    with pytest.raises(ConfigError, match="distinct values"):
        combinations({"a": []})
    with pytest.raises(ConfigError, match=f"at most {MOST_CELLS}"):
        combinations({"a": range(1000), "b": range(11)})
