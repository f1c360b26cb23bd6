"""The pages of mapped files that this process holds, kept few."""

import mmap
import threading
import time
import weakref

import psutil

MAPPED_BYTES = 16 * 2**20  # of mapped pages that a process holds before all are released
SECONDS_BETWEEN_LOOKS = 0.0005  # a core that reads here and there maps some 30 MB in the meantime
WATCHER = "mapped pages"  # the name of the thread


class MappedPages:
    """The maps of a process, and a thread that releases their pages when there are too many, while there are maps."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
        self._watched = False
        self._other_bytes = 0  # of files that were in memory when pages were last released

    def add(self, made: mmap.mmap) -> None:
        """Watch the pages of a map as long as something refers to it."""
        with self._lock:
            self._maps.add(made)
            if not self._watched:
                self._watched, self._other_bytes = True, file_pages_bytes()
                threading.Thread(target=self._watch, name=WATCHER, daemon=True).start()

    def release_excess(self) -> None:
        """Return all mapped pages to the page cache if there are too many.

        Whoever has done a part of some work calls it: the thread that watches may wait for a processor in the meantime.
        """
        if self._watched and file_pages_bytes() - self._other_bytes > MAPPED_BYTES:
            self.release()
            self._other_bytes = file_pages_bytes()

    def release(self) -> None:
        """Return all mapped pages to the page cache; their content is there when they are touched again."""
        with self._lock:
            maps = list(self._maps)
        for each in maps:
            each.madvise(mmap.MADV_DONTNEED)

    def _watch(self) -> None:
        while True:
            with self._lock:
                if not self._maps:
                    self._watched = False
                    return
            self.release_excess()
            time.sleep(SECONDS_BETWEEN_LOOKS)


def file_pages_bytes() -> int:
    """Return the bytes of files that this process holds in memory: mapped arrays, and the code of libraries.

    Only Linux tells them from other memory; elsewhere they are all that the process holds.
    """
    try:
        with open("/proc/self/statm", "rb", buffering=0) as statm:
            return int(statm.read().split()[2]) * mmap.PAGESIZE
    except OSError:
        return int(psutil.Process().memory_info().rss)
