"""Conditions of parameters: what they hold of, the words they have, and the parameters and values that they name."""

import pytest

from scalemani.config.params import Parameters, names_of_parameters
from scalemani.config.params.conditions import POINTS, Above, Acts, AtMost, OneOf, OtherThan, Where
from scalemani.config.params.effects import RunConfiguration, conditions

HERE = RunConfiguration("t-sne", Parameters(), Parameters(), frozenset(), {POINTS: 100})


@pytest.mark.parametrize(
    ("what", "words", "held", "failed"),
    [
        (OneOf("grid", "exact"), "grid or exact", ["grid", "exact"], ["auto", None]),
        (OtherThan("window"), "other than window", ["exact", None], ["window"]),
        (Above(1), "above 1", [1.5, 2], [1, 0.5]),
        (AtMost(30), "at most 30", [1, 30], [31]),
        (Where("a hundred points", lambda here: here.value(POINTS) == 100), "a hundred points", [None], []),
    ],
)
def test_what_a_value_has_to_be(what, words, held, failed):
    assert str(what) == words
    assert all(what.holds(value, HERE) for value in held)
    assert not any(what.holds(value, HERE) for value in failed)


def test_a_reason_says_what_is_needed_and_what_there_is():
    assert (
        Acts("layout.homotopy", Above(1)).why_not(HERE) == "it acts only where layout.homotopy is above 1; here it is 1"
    )
    assert Acts(POINTS, Above(99)).why_not(HERE) == ""


def test_conditions_name_parameters_and_values_that_these_take():
    """A name that nothing is called would hold for ever, or never."""
    found = [condition for conditions_of_one in conditions().values() for condition in conditions_of_one]
    assert len(found) > 40
    assert {one.on for one in found} <= {*names_of_parameters(), POINTS}
    for one in found:
        values = getattr(one.what, "values", [])
        for value in values:
            Parameters().with_values({one.on: value})
