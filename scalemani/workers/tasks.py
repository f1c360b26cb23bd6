"""What a worker does with a task: a function as bytes that it unpacks once, and the unit to call it on."""

import functools
import pickle
from collections.abc import Callable
from typing import Any

from scalemani.memory.process import PROCESS
from scalemani.workers.blas import BLAS
from scalemani.workers.dask_calls import send_messages


@functools.lru_cache(maxsize=4)
def unpack(content: bytes) -> Callable[[Any], Any]:
    """Return a function from its bytes, unpacked once a process."""
    return pickle.loads(content)


def call_on_unit(content: bytes, unit: Any) -> Any:
    """Return function(unit), with BLAS at one thread for good."""
    function = unpack(content)
    BLAS.set_to_one()
    return function(unit)


def run_unit(content: bytes, scope: str, unit: Any) -> Any:
    """Return function(unit) on a worker; what tasks of another scope have shared is freed before."""
    send_messages()
    PROCESS.start_scope(scope)
    return call_on_unit(content, unit)
