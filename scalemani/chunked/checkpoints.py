"""Where a long computation of one stage stands, kept beside its arrays: one object that is replaced in one step."""

import io
import zipfile
from collections.abc import Mapping

import numpy as np

from scalemani.store.groups import StageGroup

KEY = "checkpoint.npz"


class Checkpoints:
    """The last checkpoint of a stage. It is no result: it counts in no digest, and goes when the stage ends."""

    def __init__(self, group: StageGroup) -> None:
        self._group = group

    def load(self) -> dict[str, np.ndarray] | None:
        """Return the arrays last saved, or None where there are none or they were damaged: every member has a sum."""
        content = self._group.objects.get(KEY)
        if content is None:
            return None
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        except (zipfile.BadZipFile, ValueError, OSError, EOFError, KeyError):
            return None

    def save(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Replace the checkpoint by arrays of numbers."""
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **dict(arrays))
        self._group.objects.set(KEY, buffer.getvalue())

    def clear(self) -> None:
        """Remove the checkpoint."""
        self._group.objects.delete(KEY)
