"""Where a long computation of one stage stands, kept beside its arrays: pieces, and a table of them that is replaced.

Two sets of pieces take turns: the last table always names pieces that are whole. Large states need no second copy in
memory, and slow places are written to more seldom, so that keeping takes a small share of the time.
"""

import math
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from scalemani.errors import CorruptChunkError, ScalemaniError
from scalemani.store.groups import StageGroup
from scalemani.store.objects import digest

Shape = tuple[int | None, ...]

TABLE = "checkpoint.json"
FOLDERS = ("checkpoint-0", "checkpoint-1")
PIECE_BYTES = 2**23
MOST_OF_THE_TIME = 0.03  # that keeping may take


class Checkpoints:
    """The last checkpoint of a stage. It is no result: it counts in no digest, and goes when the stage ends."""

    def __init__(self, group: StageGroup) -> None:
        self._objects = group.objects
        self._folder = 0
        self._saved, self._cost = time.monotonic(), 0.0

    def load(self, wanted: Mapping[str, Shape] = MappingProxyType({})) -> dict[str, np.ndarray] | None:
        """Return the arrays last saved, or None where there are none or they were damaged: every piece has a digest.

        Parameters
        ----------
        wanted : shapes that arrays have, of those without which the others are no state; None stands for any length
        """
        try:
            table = self._objects.get_json(TABLE)
            if table is None:
                return None
            arrays = {name: self._whole(table["folder"], entry) for name, entry in table["arrays"].items()}
            self._folder = 1 - FOLDERS.index(table["folder"])
            for name, shape in wanted.items():
                pairs = zip(shape, arrays[name].shape, strict=True)
                if any(length not in (None, found) for length, found in pairs):
                    return None
        except (ScalemaniError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return arrays

    def _whole(self, folder: str, entry: Mapping[str, Any]) -> np.ndarray:
        values: np.ndarray = np.empty(math.prod(entry["shape"]), entry["dtype"])
        first = 0
        for name, sum_of_piece in entry["pieces"]:
            content = self._objects.get(f"{folder}/{name}")
            if content is None or digest(content) != sum_of_piece:
                raise CorruptChunkError(f"{folder}/{name} was damaged after it was written: run the same command again")
            piece = np.frombuffer(content, values.dtype)
            values[first : first + len(piece)] = piece
            first += len(piece)
        return values.reshape(entry["shape"])

    def save(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Replace the checkpoint by arrays of numbers."""
        started, folder = time.monotonic(), FOLDERS[self._folder]
        table: dict[str, Any] = {}
        for number, (name, values) in enumerate(arrays.items()):
            rows = np.atleast_1d(values)
            step = max(1, PIECE_BYTES // max(1, rows[:1].nbytes))
            pieces = []
            for piece, first in enumerate(range(0, len(rows), step)):
                content = np.ascontiguousarray(rows[first : first + step]).tobytes()
                self._objects.set(f"{folder}/{number}-{piece}", content)
                pieces.append((f"{number}-{piece}", digest(content)))
            values = np.asarray(values)
            table[name] = {"dtype": values.dtype.str, "shape": list(values.shape), "pieces": pieces}
        self._objects.set_json(TABLE, {"folder": folder, "arrays": table})
        self._folder = 1 - self._folder
        self._saved = time.monotonic()
        self._cost = self._saved - started

    def due(self, seconds: float) -> bool:
        """Tell whether `seconds` have passed since the last save, and so many that saving takes a small share."""
        return time.monotonic() - self._saved > max(seconds, self._cost / MOST_OF_THE_TIME)

    def clear(self) -> None:
        """Remove the checkpoint."""
        self._objects.delete(TABLE)
        for folder in FOLDERS:
            for name in self._objects.names(folder):
                self._objects.delete(f"{folder}/{name}")
