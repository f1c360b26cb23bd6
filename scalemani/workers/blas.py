"""BLAS at one thread while anything here computes: products then do not depend on the machine's cores."""

import contextlib
import threading
from collections.abc import Iterator

from threadpoolctl import threadpool_limits

_lock = threading.Lock()
_limits = contextlib.ExitStack()
_holders = 0


@contextlib.contextmanager
def blas_at_one_thread() -> Iterator[None]:
    """Hold the BLAS libraries of this process at one thread until the last of all holders has left.

    Their number of threads belongs to the whole process: a fit that ends must not give the others' back.
    """
    global _holders
    with _lock:
        _limits.enter_context(threadpool_limits(1, user_api="blas"))  # each time: more libraries may be loaded by now
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0:
                _limits.close()
