"""Distant rows: panels that are objects of a store, and whole arrays of a group that are read by panel."""

import functools
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from scalemani.errors import CorruptChunkError
from scalemani.kernels.arrays.columns import panels
from scalemani.kernels.arrays.tall import DistantRows
from scalemani.memory.process import PROCESS
from scalemani.store.groups import StageGroup
from scalemani.store.objects import DIGEST_CHARACTERS, Objects, digest
from scalemani.store.places import open_objects

FOLDER = "panels"


@functools.lru_cache(maxsize=4)
def objects_at(root: str, path: str) -> Objects:
    """Return the objects of a group of a store."""
    return open_objects(root).below(path)


@dataclass(frozen=True)
class Place:
    """Where panels are: a group of a store; `cache_bytes`, how much of them each process keeps."""

    root: str
    path: str
    cache_bytes: int

    @property
    def objects(self) -> Objects:
        """The objects of the group."""
        return objects_at(self.root, self.path)

    def put(self, name: str, values: np.ndarray) -> None:
        """Write values as an object."""
        content = np.ascontiguousarray(values).tobytes()
        self.objects.set(f"{FOLDER}/{name}", digest(content).encode() + content)

    def get(self, name: str, dtype: np.dtype) -> np.ndarray:
        """Return the values (n,) of an object; raise CorruptChunkError where they are not what was written."""
        content = self.objects.get(f"{FOLDER}/{name}")
        if content is None:
            raise CorruptChunkError(f"{self.objects.root}/{FOLDER}/{name} is gone: run the same command again")
        values = memoryview(bytearray(content))  # compiled functions want arrays that can be written
        if digest(values[DIGEST_CHARACTERS:]).encode() != values[:DIGEST_CHARACTERS]:
            raise CorruptChunkError(
                f"{self.objects.root}/{FOLDER}/{name} was damaged after it was written: run the same command again"
            )
        return np.frombuffer(values, dtype, offset=DIGEST_CHARACTERS)


class PanelRows(DistantRows):
    """Rows that are read by panels of so many rows, of which each process keeps some.

    Parameters
    ----------
    name : tells these rows from all others in their group.
    shape, dtype : of all rows.
    place : where they are.
    """

    def __init__(self, name: str, shape: tuple[int, ...], dtype: np.dtype, place: Place) -> None:
        self.name, self.shape, self.dtype, self.place = name, shape, np.dtype(dtype), place
        self.panel_rows = panels(shape[0])[0].stop

    def __getitem__(self, panel: slice) -> np.ndarray:
        return self._read(panel.start // self.panel_rows)

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Return rows by ascending numbers (n,)."""
        found = np.empty((len(rows), *self.shape[1:]), self.dtype)
        first, last = (int(rows[place]) // self.panel_rows for place in (0, -1)) if len(rows) else (0, -1)
        cuts = np.searchsorted(rows, np.arange(first, last + 2) * self.panel_rows)
        for number in range(first, last + 1):
            inside = slice(cuts[number - first], cuts[number - first + 1])
            if inside.stop > inside.start:
                np.take(self._kept(number), rows[inside] - number * self.panel_rows, 0, found[inside], "clip")
        return found

    def _kept(self, number: int) -> np.ndarray:
        key = self.place.root, self.place.path, self.name, number
        kept = PROCESS.blocks.kept(key, self.place.cache_bytes, functools.partial(self._read, number))
        return np.asarray(kept)

    @abstractmethod
    def _read(self, number: int) -> np.ndarray:
        """Return the rows of a panel by its number, an array that can be written to."""


class StoredPanels(PanelRows):
    """Panels that are objects, each written by one task, with a digest."""

    def write(self, panel: slice, rows: np.ndarray) -> None:
        """Write the rows of a panel."""
        self.place.put(f"{self.name}/{panel.start // self.panel_rows}", rows)

    def _read(self, number: int) -> np.ndarray:
        values = self.place.get(f"{self.name}/{number}", self.dtype)
        n_rows = min(self.panel_rows, len(self) - number * self.panel_rows)
        return values.reshape(n_rows, *self.shape[1:])


class ArrayPanels(PanelRows):
    """A whole array of a complete group."""

    def __init__(self, group: StageGroup, name: str, cache_bytes: int) -> None:
        self._group, array = group, group.array(name)
        super().__init__(name, array.shape, array.dtype, Place(group.root, group.path, cache_bytes))

    def _read(self, number: int) -> np.ndarray:
        start = number * self.panel_rows
        return np.asarray(self._group.array(self.name)[start : start + self.panel_rows])
