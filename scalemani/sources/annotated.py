"""The table that stands for points: of an AnnData as scanpy chooses it, its principal components or X."""

from pathlib import Path
from typing import Any

from scalemani.errors import DataError
from scalemani.sources.sparse_rows import SparseRows, sparse_parts
from scalemani.sources.vectors import take_vectors

COMPONENTS = "X_pca"  # on which scanpy finds neighbours too
WHOLE = "X"
ANNOTATED_SUFFIXES = (".h5ad", ".zarr")


def take_representation(points: Any, use_rep: str | None = None) -> Any:
    """Return the matrix of an AnnData that is asked for, or the table of a column of vectors; anything else as it is.

    NumPy takes an AnnData for nested sequences and does not come back.

    Parameters
    ----------
    points : an AnnData, the path or URL of one, a column of a data frame, or anything else
    use_rep : "X", or a name in `obsm`. None: "X_pca" where there is one, else "X"

    Raises
    ------
    DataError
        For a name that is not there, saying what is, and for vectors of different lengths.
    """
    if isinstance(points, str | Path):
        return stored_representation(points, use_rep)
    if not (hasattr(points, "obsm") and hasattr(points, "obs_names")):
        return take_vectors(points)
    name = use_rep or (COMPONENTS if COMPONENTS in points.obsm else WHOLE)
    found = points.X if name == WHOLE else points.obsm.get(name)
    if found is None:
        raise DataError(
            f"{type(points).__name__} has no {name if name == WHOLE else f'obsm[{name!r}]'}, got obsm of "
            f"{', '.join(points.obsm) or 'nothing'}: give use_rep one of these"
            + ("" if points.X is None else f", or {WHOLE!r}")
        )
    if hasattr(found, "group") and hasattr(found, "to_memory"):  # sparse rows of a file that is open
        return SparseRows(*sparse_parts(found.group, dict(found.group.attrs), f"{type(points).__name__}.{name}"))
    return found


def stored_representation(location: str | Path, use_rep: str | None) -> str | Path:
    """Return where the matrix lies that is asked for of a stored AnnData; a path that names one stays as it is."""
    if use_rep is None or "::" in str(location) or Path(location).suffix.lower() not in ANNOTATED_SUFFIXES:
        return location
    return f"{location}::{WHOLE if use_rep == WHOLE else f'obsm/{use_rep}'}"
