"""The declared invariants of all arrays, evaluated block by block: `scalemani.store.invariants` says what they are."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from scalemani.audit.digests import Descriptions
from scalemani.audit.findings import Finding, none_wrong
from scalemani.audit.rows import Audit
from scalemani.audit.stored import StoredGroup, side_by_side
from scalemani.errors import ScalemaniError
from scalemani.store.invariants import Block, Invariant, total_is_count
from scalemani.store.schema import ArrayDescription, numberless

WHOLE_NUMBERS = 2**20  # of a whole array, looked at together
# Of what counts rows and reads far more than these, such as points all over the run, so many numbers are read: blocks
# are then drawn. A number takes a nanosecond or two.
MOST_READ = 1.6e9
ERRORS = (ScalemaniError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class View:
    """A stored array that is read by rows: held in memory where it takes a small share of the budget."""

    def __init__(self, array: Any, held: bool, counter: threading.local) -> None:
        self.shape, self.dtype = array.shape, array.dtype
        self._array, self._held, self._counter = array, held, counter
        self._lock = threading.Lock()
        self._values: np.ndarray | None = None

    def __getitem__(self, rows: Any) -> np.ndarray:
        if self._held:
            with self._lock:
                whole = np.asarray(self._array[...]) if self._values is None else self._values
                self._values = whole
            values = whole[rows]
        else:
            values = np.asarray(self._array[rows])
        self._counter.read = getattr(self._counter, "read", 0) + values.size
        return values


class AuditedArrays:
    """A run by the protocol of invariants: arrays are opened once, and held while the budget has room."""

    def __init__(self, audit: Audit) -> None:
        run = self._run = audit.run
        self.n_points, self.block_rows = run.n_points, run.block_rows
        self.params: Mapping[str, Mapping[str, Any]] = run.params
        self.counter = threading.local()
        self._views: dict[tuple[str, str], View | None] = {}
        self._left, self._lock = audit.memory // 2, threading.Lock()

    def stored(self, stage: str, path: str) -> View | None:
        """Return an array of a stage; None where it is not stored."""
        with self._lock:
            if (stage, path) not in self._views:
                self._views[stage, path] = self._open(stage, path)
            return self._views[stage, path]

    def _open(self, stage: str, path: str) -> View | None:
        group = self._run.groups.get(stage)
        if group is None or not group.holds(path):
            return None
        array = group.array(path)
        held = array.nbytes <= self._left
        self._left -= array.nbytes if held else 0
        return View(array, held, self.counter)


def check_invariants(audit: Audit, descriptions: Descriptions) -> Iterator[Finding]:
    """Check what every array declares, block by block, and name the invariants that rows break."""
    for stage, group in audit.run.groups.items():
        arrays = AuditedArrays(audit)
        for description in descriptions.get(stage, ()):
            if description.invariants:
                for paths in paths_of(group, description):
                    yield from broken_invariants(audit, arrays, description, paths)


def paths_of(group: StoredGroup, description: ArrayDescription) -> list[list[str]]:
    """Return the paths of the arrays that a description is of; all parts of one pattern are one array."""
    patterns = [numberless(path) for path in description.paths]
    groups: dict[str, list[str]] = {}
    for name in group.names:
        if numberless(name) in patterns:
            of_blocks = description.kind == "part"
            groups.setdefault(numberless_block(name) if of_blocks else name, []).append(name)
    return list(groups.values())


def numberless_block(path: str) -> str:
    """Return a path with the number of its block left out, by which parts of all blocks are grouped."""
    folder, _, name = path.rpartition("/")
    return f"{folder.rpartition('block-')[0]}block/{name}"


def blocks_of(audit: Audit, arrays: AuditedArrays, description: ArrayDescription, paths: Sequence[str]) -> list[Any]:
    """Return the blocks of an array by path, first row and the row behind the last; None: all of it."""
    if description.kind == "part":
        return [(path, 0, None) for path in paths]
    view = arrays.stored(description.stage, paths[0])
    length = view.shape[0] if view is not None and view.shape else 1
    a_row = int(np.prod(view.shape[1:])) if view is not None and view.shape else 1
    by_point = description.kind == "rows" or description.dims[:1] == ("point",)
    rows = audit.run.block_rows if by_point else max(1, WHOLE_NUMBERS // max(1, a_row))
    return [(paths[0], start, min(start + rows, length)) for start in range(0, max(1, length), rows)]


def broken_invariants(
    audit: Audit, arrays: AuditedArrays, description: ArrayDescription, paths: Sequence[str]
) -> Iterator[Finding]:
    """Yield what of an array breaks its invariants: one finding of an array that breaks none."""
    places = blocks_of(audit, arrays, description, paths)
    name = paths[0] if description.kind != "part" else numberless_block(paths[0]).replace("block/", "block-N/")
    holding = []
    for invariant in description.invariants:
        try:
            broken, looked_at = count(audit, arrays, description, invariant, places)
            note = "" if looked_at == len(places) else f"in {looked_at} of {len(places)} blocks, drawn"
        except ERRORS as error:
            broken, note = 1, f"{type(error).__name__}: {error}"
        if broken:
            yield none_wrong(description.stage, f"{name}: {invariant.text}", broken, note)
        else:
            holding.append(f"{invariant.text} ({note})" if note else invariant.text)
    if holding:
        yield none_wrong(description.stage, f"{name}: {len(holding)} invariants", 0, "; ".join(holding))


def count(
    audit: Audit,
    arrays: AuditedArrays,
    description: ArrayDescription,
    invariant: Invariant,
    places: Sequence[Any],
    most_read: float = MOST_READ,
) -> tuple[int, int]:
    """Return how many rows or entries break an invariant, and how many blocks were looked at."""

    def part(place: tuple[str, int, int | None]) -> Any:
        path, start, stop = place
        view = arrays.stored(description.stage, path)
        assert view is not None
        values = view[...].reshape(1) if not view.shape else view[start : view.shape[0] if stop is None else stop]
        with np.errstate(all="ignore"):  # what is not a number breaks an invariant
            return invariant.part(Block(arrays, description.stage, path, start, values))

    arrays.counter.read = 0
    order = audit.generator.permutation(len(places)) if invariant.broken is total_is_count else range(len(places))
    first, *others = [places[number] for number in order]
    total = part(first)
    if invariant.broken is total_is_count:
        others = others[: max(0, int(most_read // max(1, arrays.counter.read)) - 1)]
    for added in side_by_side(part, others):
        total = total + added
    return int(invariant.broken(total, arrays)), 1 + len(others)
