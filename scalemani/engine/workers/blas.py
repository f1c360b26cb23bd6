"""BLAS at one thread while anything here computes: products then do not depend on the machine's cores."""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

from threadpoolctl import ThreadpoolController

from scalemani.kernels.machine.forks import new_lock


class BlasThreads:
    """The number of threads of the BLAS libraries, which belongs to the whole process."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._limits = contextlib.ExitStack()
        self._holders: list[int] = []
        self._modules = 0
        self._loaded: ThreadpoolController | None = None

    @contextlib.contextmanager
    def hold_at_one(self) -> Iterator[None]:
        """Hold the libraries at one thread until the last of all holders has left: fits may run side by side."""
        holder = threading.get_ident()
        with self._lock:
            self._limits.enter_context(self._libraries().limit(limits=1, user_api="blas"))
            self._holders.append(holder)
        try:
            yield
        finally:
            with self._lock:
                self._holders.remove(holder)
                if not self._holders:
                    self._limits.close()

    def forget_threads(self) -> None:
        """Take note, in a forked process, that threads of its parent hold nothing here."""
        self._holders = [holder for holder in self._holders if holder == threading.get_ident()]

    def set_to_one(self) -> None:
        """Set the libraries to one thread for good, in a process of ours."""
        self._libraries().limit(limits=1)

    def _libraries(self) -> ThreadpoolController:
        """Return the libraries that are loaded.

        To look for them takes as long as a small task: it is done again only once more modules were imported.
        """
        if self._loaded is None or len(sys.modules) != self._modules:
            self._modules, self._loaded = len(sys.modules), ThreadpoolController()
        return self._loaded


BLAS = BlasThreads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=BLAS.forget_threads)
