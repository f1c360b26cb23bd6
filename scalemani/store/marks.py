"""The committed units of a group: what each wrote, by unit and by object, which change together or not at all."""

import threading
from collections.abc import Iterator, Mapping

from scalemani.store.verified import Digests


class Marks:
    """The marks of a group as last read, safe to share between threads.

    `objects` are the digests of all committed objects by key. A `VerifiedStore` reads them; this class alone writes
    them.
    """

    def __init__(self) -> None:
        self._units: dict[str, Digests] = {}
        self._lock = threading.Lock()
        self.objects: Digests = {}

    def __contains__(self, unit: str) -> bool:
        return unit in self._units

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._units))

    def __getitem__(self, unit: str) -> Digests:
        return self._units[unit]

    def items(self) -> list[tuple[str, Digests]]:
        """Return units with the digests of what they wrote, sorted by unit."""
        with self._lock:
            return sorted(self._units.items())

    def replace(self, units: Mapping[str, Digests]) -> None:
        """Take these units in place of all that are known."""
        with self._lock:
            self._units = dict(units)
            self.objects.clear()
            for mark in self._units.values():
                self.objects.update(mark)

    def add(self, unit: str, mark: Digests) -> None:
        """Take a unit that was committed, for the first time or again."""
        with self._lock:
            self._units[unit] = mark
            self.objects.update(mark)

    def remove(self, unit: str) -> Digests:
        """Take a unit back; return what it had written, nothing where it is not known."""
        with self._lock:
            mark = self._units.pop(unit, {})
            for key in mark:
                self.objects.pop(key, None)
            return mark

    def disown(self, key: str) -> None:
        """Expect nothing of an object any more that is about to be written again; its unit stays until then."""
        with self._lock:
            self.objects.pop(key, None)
