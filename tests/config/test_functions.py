"""Functions that users name as metrics: loaded by their name, and known by all that they compute by."""

import importlib
import sys
import textwrap

import pytest

from scalemani.config.functions import digest_of, load_function, name_of_function, with_digest
from scalemani.config.params import Parameters
from scalemani.errors import ConfigError

SOURCE = """
    import numba
    import numpy as np

    SCALE, TABLE, LIST = {scale}, np.array([{first}, 2.0]), [1.0]

    @numba.njit
    def term(x):
        return {term} * SCALE

    @numba.njit(fastmath={fast})
    def far(one, other):
        total = TABLE[0]
        for d in range(one.size):
            total += term(one[d] - other[d])
        return total

    def reading_a_list(one, other):
        return LIST[0]

    def maker():
        def inner(one, other):
            return 0.0
        return inner
"""
USUAL = {"scale": 2.0, "first": 0.0, "term": "abs(x)", "fast": False}


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, **changes):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(SOURCE).format(**{**USUAL, **changes}))
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield write
    for name in [name for name, loaded in sys.modules.items() if str(tmp_path) in str(getattr(loaded, "__file__", ""))]:
        del sys.modules[name]


def test_a_digest_knows_code_and_values_that_a_function_reads_anywhere(module):
    usual = digest_of(module("usual").far)
    assert digest_of(module("the_same").far) == usual
    changes = {"scale": 3.0, "first": 1.0, "term": "x * x", "fast": True}
    others = {digest_of(module(f"with_{name}", **{name: value}).far) for name, value in changes.items()}
    assert len(others | {usual}) == 5


def test_a_function_has_the_name_by_which_it_is_loaded(module, tmp_path):
    loaded = module("metrics_of_mine")
    assert name_of_function(loaded.far) == "metrics_of_mine:far"
    assert load_function("metrics_of_mine:far") is loaded.far
    by_file = load_function(f"{tmp_path / 'metrics_of_mine.py'}::far")
    assert digest_of(by_file) == digest_of(loaded.far)
    assert name_of_function(by_file) == f"{by_file.__module__}:far"
    assert Parameters().with_values({"points.metric": loaded.far}).points.metric == "metrics_of_mine:far"


def test_a_name_with_the_digest_of_another_function_is_refused(module, tmp_path):
    module("edited")
    named = with_digest(f"{tmp_path / 'edited.py'}::far")
    assert with_digest(named) == named
    (tmp_path / "edited.py").write_text(textwrap.dedent(SOURCE).format(**{**USUAL, "scale": 2.5}) + "\n")
    with pytest.raises(ConfigError, match="is another function than that of the run"):
        with_digest(named)


def test_what_has_no_name_or_digest_is_refused(module):
    loaded = module("refused")
    for function in (lambda one, other: 0.0, loaded.maker()):
        with pytest.raises(ConfigError, match="top level of a module or a file"):
            name_of_function(function)
    with pytest.raises(ConfigError, match="reading_a_list reads LIST, a list whose content has no digest"):
        digest_of(loaded.reading_a_list)
    for name in ("refused:absent", "no_such_module:far", "absent.py::far"):
        with pytest.raises(ConfigError, match="cannot be loaded"):
            load_function(name)
