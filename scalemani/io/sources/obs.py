"""Columns of `obs` of an AnnData, in a file or a zarr store, with the order and the colours of their categories."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from scalemani.config.limits import check_limit
from scalemani.errors import DataError, ScalemaniError, UnsafeStoreError, warn
from scalemani.io.sources.base import optional_module
from scalemani.io.sources.categories import with_categories
from scalemani.io.sources.hdf5 import h5ad_node, refuse_other_files
from scalemani.io.sources.label_values import holds_wide_integers
from scalemani.io.sources.sliced import missing_chunks
from scalemani.io.sources.stores import zarr_node
from scalemani.io.sources.zarr_codecs import check_codecs

OBS, LEGACY = "obs", "__categories"  # the second held the categories of all columns in old files
COLOURS = "uns/{}_colors"  # where scanpy keeps one for each category of a column, in their order
HEXADECIMAL = re.compile(r"#[0-9a-fA-F]{6}")  # what comes after it is an opacity


def obs_columns(path: Path, member: str) -> dict[str, np.ndarray]:
    """Return columns (N,) of `obs` of an AnnData, .h5ad or .zarr: "obs/NAME", or of "obs" all but the index."""
    try:
        return read_columns(path, member)
    except ScalemaniError:
        raise
    except Exception as error:  # the errors of HDF5 and zarr are of many kinds, and all mean the same here
        raise DataError(f"{path}::{member} is truncated or damaged: {error}; copy or save it again") from error


def read_columns(path: Path, member: str) -> dict[str, np.ndarray]:
    """Return what `obs_columns` does, with the errors of the libraries; of a zarr array the labels that it is."""
    stored = path.suffix.lower() == ".zarr"
    if stored and is_array(root := text_node(path, None)):
        return {path.name: stored_values(root, str(path))}
    node = text_node(path, member) if stored else h5ad_node(path, member)
    if is_array(node) or member != OBS:
        name = member.rpartition("/")[2]
        return {name: coloured(obs_column(node, f"{path}::{member}"), node, path, name)}
    index = node.attrs.get("_index")
    found = {}
    for name in sorted(node) if stored else node:
        if name not in (index, LEGACY):
            column = part_of(node, name, f"{path}::{member}")
            found[name] = coloured(obs_column(column, f"{path}::{member}/{name}"), column, path, name)
    if not found:
        raise DataError(f"{path} has no column in {OBS}: give a file with labels there")
    order = [str(name) for name in node.attrs.get("column-order", ())]
    return {name: found[name] for name in (*(name for name in order if name in found), *found)}


def obs_column(node: Any, where: str) -> np.ndarray:
    """Return one column of h5py or zarr: numbers, texts, categories, or values of which some are masked."""
    if is_array(node):
        return stored_values(node, where)
    if {"categories", "codes"} <= set(node):
        codes = stored_values(part_of(node, "codes", where), where)
        categories = obs_column(part_of(node, "categories", where), where)
        check_codes(codes, len(categories), where)
        found = np.array([*categories.tolist(), None], dtype=object)[codes]  # code -1 is a missing category
        return with_categories(found, categories.tolist())
    if {"values", "mask"} <= set(node):
        values, mask = (stored_values(part_of(node, name, where), where) for name in ("values", "mask"))
        if not mask.any():
            return values
        kept = values.dtype.kind in "OU" or holds_wide_integers(values)
        masked = values.astype(object if kept else np.float64)
        masked[mask] = None
        return masked
    raise DataError(f"{where} is no column of numbers, texts or categories: name another")


def text_node(path: Path, member: str | None) -> Any:
    """Return an array or a group of a zarr store, where arrays may hold texts."""
    return zarr_node(str(path), member, texts=True)


def is_array(node: Any) -> bool:
    """Return whether something in an AnnData is an array, and no group."""
    return hasattr(node, "shape")


def part_of(node: Any, name: str, where: str) -> Any:
    """Return an array or a group within a group; refuse one that takes its values from another file."""
    if isinstance(node, zarr.Group):
        store: Any = node.store  # on a disk
        return text_node(store.root, f"{node.path}/{name}".strip("/"))
    found = node[name]
    outside = is_array(found) and (found.external or found.is_virtual)
    if outside or found.file.filename != node.file.filename:
        raise UnsafeStoreError(f"{where}/{name} takes its values from another file: copy them into this one")
    return found


def stored_values(node: Any, where: str) -> np.ndarray:
    """Return the values of an array (N,) of h5py or zarr; texts as objects."""
    if not is_array(node) or len(node.shape) != 1:
        raise DataError(f"{where} is no column of numbers, texts or categories: name another")
    check_limit("points", node.shape[0], where)
    if isinstance(node, zarr.Array):  # whose writers leave out chunks of zeros, as codes and masks often are
        check_codecs(dict(node.metadata.to_dict()), where, texts=True)
        found = np.asarray(node[...])
        return found.astype(object) if found.dtype.kind == "T" else found
    if remark := missing_chunks(node, where):
        warn(remark)
    h5py = optional_module("h5py", "anndata")
    return np.asarray(node.asstr()[...] if h5py.check_string_dtype(node.dtype) else node[...])


def check_codes(codes: np.ndarray, n_categories: int, where: str) -> None:
    """Refuse codes of categories that are not there; -1 is none."""
    if codes.dtype.kind not in "iu" or (codes.size and not -1 <= codes.min() <= codes.max() < n_categories):
        raise DataError(f"{where} has codes beyond its {n_categories} categories: it is damaged, write it again")


def coloured(values: np.ndarray, node: Any, path: Path, name: str) -> np.ndarray:
    """Return a column (N,) of `obs` with the colours of its categories, where `uns` has one for each."""
    if is_array(node) or "categories" not in node:
        return values
    categories = obs_column(part_of(node, "categories", name), name).tolist()
    given = colours_of(node, path, name)
    if not categories or len(given) < len(categories):  # of a file that was cut down there may be more
        return values
    found = {str(category): hexadecimal(colour) for category, colour in zip(categories, given, strict=False)}
    return with_categories(values, categories, {category: colour for category, colour in found.items() if colour})


def colours_of(node: Any, path: Path, name: str) -> list[str]:
    """Return what `uns` holds of texts for a column, which is to be colours; nothing where there are none."""
    place = COLOURS.format(name)
    if isinstance(node, zarr.Group):
        given = part_of(root, place, str(path)) if place in (root := text_node(path, None)) else None
    else:
        refuse_other_files(node.file, place, path)
        given = node.file.get(place)
    if given is None or not is_array(given) or len(given.shape) != 1:
        return []
    values = stored_values(given, f"{path}::{place}")
    return values.tolist() if values.dtype.kind in "OU" else []


def hexadecimal(colour: str) -> str | None:
    """Return a colour as #rrggbb, by its name too where Matplotlib, which knows names, is installed; else None."""
    if HEXADECIMAL.match(colour):
        return colour[:7].lower()
    if find_spec("matplotlib") is None:
        return None
    from matplotlib.colors import is_color_like, to_hex

    return to_hex(colour) if is_color_like(colour) else None
