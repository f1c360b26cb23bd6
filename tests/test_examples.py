"""Examples of docstrings: every public function and estimator has one, and all that are there are true."""

import doctest
import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import scalemani as sm

FINDER = doctest.DocTestFinder(exclude_empty=True)


def is_run_by_users(value: object) -> bool:
    """Return whether users call it: functions and estimators, and not what these return."""
    return inspect.isfunction(value) or (inspect.isclass(value) and issubclass(value, BaseEstimator))


def functions_of(name: str) -> list[object]:
    """Return a public name's value, or the functions of a public module."""
    value = getattr(sm, name)
    return [getattr(value, one) for one in value.__all__] if inspect.ismodule(value) else [value]


@pytest.mark.parametrize("name", sm.__all__)
def test_the_examples_of_every_public_name_are_true(name):
    for value in functions_of(name):
        tests = [test for test in FINDER.find(value, value.__name__) if test.examples]
        assert tests or not is_run_by_users(value), f"{value.__name__} has no example"
        with np.printoptions(legacy=False):
            for test in tests:
                assert doctest.DocTestRunner(verbose=False).run(test).failed == 0
