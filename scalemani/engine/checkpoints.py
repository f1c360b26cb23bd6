"""Checkpoints of a long computation of one stage: arrays in its group, and a table of them that is replaced.

Two folders of arrays take turns, so the table always names objects that are whole. Large states need no second copy in
memory, and slow storage is written to less often, so that checkpoints take a small share of the time.
"""

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from scalemani.errors import ScalemaniError
from scalemani.store.arrays import VerifiedStore, create_array, open_array, read_rows, write_rows
from scalemani.store.groups import StageGroup, entries_of, union
from scalemani.store.schema import whole_chunks

Shape = tuple[int | None, ...]

TABLE = "checkpoint.json"
FOLDERS = ("checkpoint-0", "checkpoint-1")
CHECKPOINT_SECONDS = 10.0  # that an interrupted run computes again
MOST_OF_THE_TIME = 0.03  # that saving may take


class Checkpoints:
    """The last checkpoint of a stage. It is no result: it counts in no digest, and goes when the stage ends.

    `seconds` lie between two saves, at least; with 0 one is due after every iteration, at any cost.
    """

    def __init__(
        self,
        group: StageGroup,
        seconds: float = CHECKPOINT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._objects, self._seconds, self._clock = group.objects, seconds, clock
        self._folder = 0
        self._saved, self._cost = clock(), 0.0

    def load(self, shapes: Mapping[str, Shape] = MappingProxyType({})) -> dict[str, np.ndarray] | None:
        """Return the arrays last saved, or None where there are none or they were damaged: every object has a digest.

        Parameters
        ----------
        shapes : shapes that arrays have, of those without which the others are no state; None stands for any length
        """
        try:
            table = self._objects.get_json(TABLE)
            if table is None:
                return None
            self._folder = 1 - FOLDERS.index(table["folder"])
            entries = entries_of(table["arrays"]) or {}
            store = VerifiedStore(self._objects.below(table["folder"]), union(entries.values()))
            arrays = {name: read_rows(open_array(store, name)) for name in entries}
            for name, shape in shapes.items():
                pairs = zip(shape, arrays[name].shape, strict=True)
                if any(length not in (None, loaded) for length, loaded in pairs):
                    return None
        except (ScalemaniError, ValueError, KeyError, TypeError):
            return None
        return arrays

    def save(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Replace the checkpoint by arrays of numbers."""
        started, folder, entries = self._clock(), FOLDERS[self._folder], {}
        store = VerifiedStore(self._objects.below(folder), {})
        for name, values in arrays.items():
            array, entry = create_array(store, name, values.shape, values.dtype, whole_chunks(values), {})
            entries[name] = entry | write_rows(array, values)
        self._objects.set_json(TABLE, {"folder": folder, "arrays": entries})
        self._folder = 1 - self._folder
        self._saved = self._clock()
        self._cost = self._saved - started

    def due(self) -> bool:
        """Return whether enough seconds have passed since the last save, so that saving takes a small share."""
        passed = self._clock() - self._saved
        return self._seconds == 0 or passed > max(self._seconds, self._cost / MOST_OF_THE_TIME)

    def clear(self) -> None:
        """Remove the checkpoint."""
        self._objects.delete(TABLE)
        for folder in FOLDERS:
            self._objects.delete_below(folder)
