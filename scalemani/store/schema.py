"""How an array of a run is described; the format version stands here too."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import DTypeLike

from scalemani.config.validation import STORED_DTYPES
from scalemani.errors import StoreError
from scalemani.store.invariants import Invariant

FORMAT = "scalemani-run"
FORMAT_VERSION = 2
CODEC: Final = "lz4"
CODEC_LEVEL = 5
WHOLE_CHUNK_BYTES = 2**23  # each chunk is copied and compressed in memory, several times over
NUMBER = "N"  # what stands for a number in the paths of descriptions

# How an array lies in its group: cut along its rows by the blocks of the run; in one piece, however long; or as one
# array a block, of the length that block happens to have.
Kind = Literal["rows", "whole", "part"]


@dataclass(frozen=True)
class DtypeRule:
    """A dtype that depends on the data: the rule in words, and all dtypes that it can give."""

    text: str
    allowed: tuple[str, ...]


AS_POINTS = DtypeRule("that of the points", tuple(sorted(STORED_DTYPES)))
AS_LANDMARKS = DtypeRule("that of the points; float64 for landmarks off the data", tuple(sorted(STORED_DTYPES)))
AS_DISTANCES = DtypeRule("float64 if the points are float64, else float32", ("float32", "float64"))
AS_COLUMNS = DtypeRule("uint16 up to 65,536 features, else int32", ("int32", "uint16"))
SPARSE_INDEX = DtypeRule("int32, int64 from 2^31 nonzeros on", ("int32", "int64"))


@dataclass(frozen=True)
class ArrayDescription:
    """The specification of one array of a stage, and the key under which a group gets its values.

    `N` in `name` stands for a number (see `numbered`), as in `folders`, in which such an array may lie. Arrays that are
    written together agree in the lengths of the `dims` that they share. `units` is "1" for numbers without a unit.
    `invariants` hold of the values in every run; where they are no more than finite, `no_invariant` says why.
    """

    stage: str
    name: str
    kind: Kind
    dims: tuple[str, ...]
    dtype: str | DtypeRule
    units: str
    meaning: str
    folders: tuple[str, ...] = ("",)
    invariants: tuple[Invariant, ...] = field(default=(), compare=False)
    no_invariant: str = field(default="", compare=False)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes that the array can have: one, or those of its rule."""
        return (self.dtype,) if isinstance(self.dtype, str) else self.dtype.allowed

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of such arrays below `arrays/`, `N` for any number."""
        return tuple(below(folder, self.name) for folder in self.folders)

    @property
    def attributes(self) -> dict[str, Any]:
        """What zarr stores with the values: names of dimensions, meaning and units."""
        return {"dimensions": self.dims, "meaning": self.meaning, "units": self.units}

    def numbered(self, number: int) -> "ArrayDescription":
        """Return the description of the array of one number, three digits or more."""
        return replace(self, name=self.name.replace(NUMBER, f"{number:03d}"))

    def sized(self, *columns: int, dtype: DTypeLike | None = None) -> "RowArray":
        """Return a row array of so many columns; `dtype` is needed where that follows a rule, and is what it gives."""
        resolved = self.dtype if isinstance(self.dtype, str) else str(np.dtype(dtype))
        if dtype is not None and resolved not in self.dtypes:
            raise StoreError(f"{self.stage}/{self.name} must be {' or '.join(self.dtypes)}, got {resolved}")
        return RowArray(self, columns, resolved)

    def check(self, stage: str, path: str, kind: Kind, dtype: str, ndim: int) -> None:
        """Refuse an array whose stage, path, kind, dtype or number of dimensions is not what this describes."""
        paths = tuple(map(numberless, self.paths))
        alike = (stage, kind, ndim) == (self.stage, self.kind, len(self.dims))
        if not alike or numberless(path) not in paths or dtype not in self.dtypes:
            raise StoreError(
                f"stage {stage} stores {path} as {kind} of {ndim} dimensions, {dtype}; scalemani.stages.arrays "
                f"describes {' or '.join(paths)} of stage {self.stage} as {self.kind} of {len(self.dims)} dimensions, "
                f"{' or '.join(self.dtypes)}: store what is described, or describe what is stored"
            )


@dataclass(frozen=True)
class RowArray:
    """A row array of one group: its description, and what the data and the parameters make of it.

    `columns` are the lengths of the dimensions after the rows.
    """

    description: ArrayDescription
    columns: tuple[int, ...]
    dtype: str

    @property
    def name(self) -> str:
        """The name of the array, below the folder of its group or step."""
        return self.description.name


def below(folder: str, name: str) -> str:
    """Return the path of what lies in a folder of a group, or in none."""
    return f"{folder}/{name}" if folder else name


def numberless(path: str) -> str:
    """Return a path with `N` in place of each run of digits, as descriptions have it."""
    return re.sub(r"\d+", NUMBER, path)


def check_described(stage: str, folder: str, kind: Kind, arrays: Mapping[ArrayDescription, np.ndarray]) -> None:
    """Refuse arrays stored together that differ from their descriptions or in the length of a shared dimension."""
    lengths: dict[str, int] = {}
    for description, values in arrays.items():
        if not isinstance(description, ArrayDescription):
            raise StoreError(f"stage {stage} stores {description!r}: scalemani.stages.arrays does not describe it")
        path = below(folder, description.name)
        description.check(stage, path, kind, values.dtype.name, values.ndim)
        for dim, length in zip(description.dims, values.shape, strict=True):
            if lengths.setdefault(dim, length) != length:
                raise StoreError(
                    f"{path} of stage {stage} has {length} of {dim}, another array that is stored with it has "
                    f"{lengths[dim]}: they have to agree"
                )


def whole_chunks(values: np.ndarray) -> tuple[int, ...]:
    """Return the chunks of an array that is no row array: all columns of as many rows as WHOLE_CHUNK_BYTES hold."""
    if values.ndim == 0:
        return ()
    rows = WHOLE_CHUNK_BYTES // max(values[:1].nbytes, 1)
    return (max(1, min(rows, len(values))), *(max(length, 1) for length in values.shape[1:]))
