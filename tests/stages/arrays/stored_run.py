"""A run as zarr and JSON hold it, on which invariants are checked: nothing of what wrote it is used."""

import functools
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from scalemani.stages.table import arrays_of
from scalemani.store.invariants import Block, count_broken
from scalemani.store.schema import ArrayDescription, numberless

BLOCK = re.compile(r"block-\d+")


class RunOnDisk:
    """The groups of the last run in a folder, by its plan."""

    def __init__(self, root: Path, plan: dict[str, Any]) -> None:
        self.root, self.keys, self.params = root, plan["keys"], plan["params"]
        self.n_points, self.block_rows = plan["dimensions"]["n_points"], plan["dimensions"]["block_rows"]
        self.stored = functools.cache(self._open)

    def _open(self, stage: str, path: str) -> zarr.Array | None:
        """Return an array, None where there is none."""
        metadata = self.arrays(stage) / path / "zarr.json"
        return zarr.open_array(metadata.parent, mode="r") if metadata.is_file() else None

    def arrays(self, stage: str) -> Path:
        """Return the folder of the arrays of a stage."""
        return self.root / "stages" / stage / self.keys.get(stage, "none") / "arrays"

    def paths(self, stage: str) -> list[str]:
        """Return the paths of all arrays of a stage."""
        folder = self.arrays(stage)
        metadata = [
            one for one in sorted(folder.rglob("zarr.json")) if json.loads(one.read_text())["node_type"] == "array"
        ]
        return [str(one.parent.relative_to(folder)) for one in metadata]


def run_in(root: str | Path) -> RunOnDisk:
    """Return the last run in a folder."""
    return RunOnDisk(Path(root), json.loads((Path(root) / "plan.json").read_text()))


def arrays_by_description(run: RunOnDisk, stage: str) -> dict[tuple[ArrayDescription, str], list[str]]:
    """Return the paths of the arrays of a stage: those of parts, which are one array, together."""
    found: dict[tuple[ArrayDescription, str], list[str]] = {}
    for path in run.paths(stage):
        described = next(one for one in arrays_of(stage) if numberless(path) in map(numberless, one.paths))
        found.setdefault((described, BLOCK.sub("block-N", path)), []).append(path)
    return found


def broken_in(run: RunOnDisk, stage: str) -> dict[str, dict[str, int]]:
    """Return by array of a stage how many rows break which invariant."""
    found = {}
    for (described, name), paths in arrays_by_description(run, stage).items():
        blocks = itertools.chain.from_iterable(blocks_of(run, stage, path) for path in paths)
        broken = {text: count for text, count in count_broken(described.invariants, blocks).items() if count}
        found |= {f"{stage}/{name}": broken} if broken else {}
    return found


def blocks_of(run: RunOnDisk, stage: str, path: str) -> Iterator[Block]:
    """Yield the blocks of an array: as many rows as a block of the run has, of a part all."""
    array = run.stored(stage, path)
    assert array is not None
    values = np.asarray(array[...]).reshape(array.shape or (1,))
    rows = max(1, len(values)) if "block-" in path else run.block_rows
    for start in range(0, max(1, len(values)), rows):
        yield Block(run, stage, path, start, values[start : start + rows])
