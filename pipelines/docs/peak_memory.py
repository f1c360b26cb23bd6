"""The peak of resident memory while an example of the gallery runs."""

from collections.abc import Callable
from types import FunctionType
from typing import Any

from scalemani.engine.memory.peak import PeakMemory

BYTES_PER_MB = 2**20


def call_and_measure(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the largest resident memory (MB) of this process and its children during a call, and what it returns.

    What the process held before an example is measured by a call that does nothing, and taken off: it counts as nothing
    here, so that the peak is shown whole.
    """
    if isinstance(function, FunctionType):  # blocks of examples are objects of another class
        return 0.0, function()
    with PeakMemory() as peak:
        result = function()
    return peak.bytes / BYTES_PER_MB, result
