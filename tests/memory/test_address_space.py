"""A process of ours and the limit of its address space."""

import os

import pytest

from scalemani.errors import MemoryBudgetError
from scalemani.memory import address_space
from scalemani.memory.address_space import BLAS_THREADS, LEAST_BYTES, address_bytes_taken, fit_address_space


@pytest.fixture
def limited(monkeypatch):
    """Set the limit that the process believes to have; nothing of it is fitted."""
    monkeypatch.setattr(address_space, "limit_arenas", lambda memory: None)
    monkeypatch.delenv(BLAS_THREADS, raising=False)
    return lambda n_bytes: monkeypatch.setattr(address_space, "address_limit", lambda: n_bytes)


def test_libraries_are_fitted_to_a_limit_that_is_there(limited, monkeypatch):
    limited(None)
    fit_address_space()
    assert BLAS_THREADS not in os.environ
    limited(LEAST_BYTES)
    monkeypatch.setenv(BLAS_THREADS, "7")
    fit_address_space()
    assert os.environ[BLAS_THREADS] == "7"  # what the user sets stays
    monkeypatch.delenv(BLAS_THREADS)
    fit_address_space()
    assert os.environ[BLAS_THREADS] == "1"


def test_a_limit_below_what_libraries_take_is_refused_with_one_that_does(limited):
    limited(LEAST_BYTES - 1)
    with pytest.raises(MemoryBudgetError, match=rf"ulimit -v {-(-LEAST_BYTES // 1024)}"):
        fit_address_space()


def test_every_thread_takes_address_space():
    assert address_bytes_taken(5) > address_bytes_taken(1) + 4 * 2**27
