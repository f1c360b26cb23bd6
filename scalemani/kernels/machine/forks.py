"""Locks that are free in a forked process, also those that threads of its parent held when it was forked."""

import functools
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

Value = TypeVar("Value")

_LOCKS: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> Any:
    """Return a reentrant lock of this process, such as `threading.RLock`, that is free in its children."""
    lock = threading.RLock()
    _LOCKS.add(lock)
    return lock


def cached_property(compute: Callable[[Any], Value]) -> functools.cached_property[Value]:
    """Return `functools.cached_property`, which until Python 3.11 has one lock for all objects of a class."""
    cached = functools.cached_property(compute)
    if hasattr(cached, "lock"):
        _LOCKS.add(cached.lock)
    return cached


def free_locks() -> None:
    """Free all locks but those of the thread that forked, which continues: no other thread is left to do so."""
    for lock in list(_LOCKS):
        if lock.acquire(blocking=False):
            lock.release()
        else:
            lock._at_fork_reinit()  # as the standard library does with its locks


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=free_locks)
