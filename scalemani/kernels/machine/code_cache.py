"""Where the machine code of kernels is kept from process to process, so that it is never that of other sources.

Numba's own cache knows a function by the file that it stands in. It goes on with what was compiled before when a
function that is called there, and stands in another file, has been edited. Here the name of an entry is a digest of all
that its machine code follows from: sources, signature, versions and processor.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import re
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite import binding
from numba.core import sigutils, types
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from scalemani.kernels.machine.sources import source_digest

CACHE_VARIABLE = "SCALEMANI_CACHE"
PRIVATE = 0o700
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
DIGITS = 32  # of SHA-256 in a name: 128 bits
ENVIRONMENT_NAME = re.compile(rf"[0-9a-f]{{{DIGITS}}}")
CHECKSUM_BYTES = hashlib.sha256().digest_size
UNUSED_SECONDS = 30 * 86400  # an entry that nobody has loaded for so long is most likely one of former sources
MOST_BYTES = 2**29  # thirty times what all kernels take, in all their signatures
# Variables of numba that change no machine code. All others make caches of their own.
WITHOUT_EFFECT = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER", "NUMBA_THREADING_LAYER_PRIORITY"}


class CodeCache(NullCache):
    """The machine code of one function, an entry for each signature.

    Nothing here raises or warns: where an entry cannot be read or written, numba compiles in memory.

    Parameters
    ----------
    function : function
        What numba compiles. Functions without a file and functions with captured variables are not kept.
    options : object
        What the function is compiled with, as its `repr` tells.
    """

    def __init__(self, function: Callable[..., Any], options: object):
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._identity: tuple[Any, ...] | None = None
        if function.__closure__ is None:
            with contextlib.suppress(OSError):
                code = function.__code__
                digest = source_digest(os.path.abspath(code.co_filename))
                self._identity = (self._name, code.co_firstlineno, options, digest)

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """Return what was compiled for a signature, or None."""
        target_context.refresh()  # an entry refers to functions that numba's modules register there
        path = self._path(sig, target_context)
        try:
            found = None if path is None else _unpacked(path.read_bytes())
            if found is None or found[0] != sig:
                return None
            result = CompileResult._rebuild(target_context, *found[1])
        except Exception:  # whatever is wrong with an entry, compiling is right
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # in use
        return result

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for a signature."""
        path = self._path(sig, data.target_context)
        depends_on_process = data.library.has_dynamic_globals or any(not part.can_cache for part in data.lifted)
        if path is None or depends_on_process:
            return
        with contextlib.suppress(OSError):
            _write(path, _packed(dumps((sig, data._reduce()))))
            _remove_unused(path.parents[1])

    def _path(self, sig: Any, target_context: Any) -> Path | None:
        """Return the file of a signature's entry, or None where nothing is kept."""
        if self._identity is None:
            return None
        folder = _folder_for(target_context.codegen().magic_tuple())
        if folder is None:
            return None
        arguments, _ = sigutils.normalize_signature(sig)
        facts = (*self._identity, *(_described(kind) for kind in arguments))
        return folder / f"{self._name}-{_digest_of(facts)}"


def _described(kind: Any) -> str:
    """Return the name of a numba type, with the fields of named tuples, which numba's names leave out."""
    is_tuple, is_named = isinstance(kind, types.BaseTuple), isinstance(kind, types.BaseNamedTuple)
    named = kind.instance_class if is_named else None
    fields = (named.__module__, named.__qualname__, kind.fields) if named else ()
    return repr((str(kind), fields, [_described(part) for part in kind.types] if is_tuple else []))


def _digest_of(facts: tuple[Any, ...]) -> str:
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:DIGITS]


def _packed(payload: bytes) -> bytes:
    return hashlib.sha256(payload).digest() + payload


def _unpacked(content: bytes) -> tuple[Any, tuple[Any, ...]] | None:
    """Return the signature and the parts of an entry, or None where its bytes are damaged."""
    checksum, payload = content[:CHECKSUM_BYTES], content[CHECKSUM_BYTES:]
    return pickle.loads(payload) if hashlib.sha256(payload).digest() == checksum else None


def _write(path: Path, content: bytes) -> None:
    """Write a file that other processes see whole or not at all; the last of several that write it stays."""
    descriptor, partial = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(partial, path)
    except OSError:
        os.unlink(partial)
        raise


@functools.cache
def _folder_for(processor: tuple[str, ...]) -> Path | None:
    """Return the folder of the entries for a processor and the versions at work; None where there can be none.

    Entries are programs: a folder that others own or may write to is not used. One of root's that may only be read is.
    """
    home = cache_home()
    if home is None:
        return None
    settings = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_") and k not in WITHOUT_EFFECT)
    versions = (sys.version, numba.__version__, llvmlite.__version__, binding.llvm_version_info, np.__version__)
    facts = (*versions, vars(numba.config)["USING_SVML"], *processor, *settings)
    folder = home / "kernels" / _digest_of(facts)
    with contextlib.suppress(OSError):
        _make_private(folder)
    return folder if _is_trusted(folder) else None


def writable_folder() -> Path | None:
    """Return the folder that machine code of this processor is kept in, None where it can only be compiled anew."""
    folder = _folder_for(cpu_target.target_context.codegen().magic_tuple())
    return folder if folder is not None and os.access(folder, os.W_OK) else None


def cache_home() -> Path | None:
    """Return where caches of the package lie: $SCALEMANI_CACHE, $XDG_CACHE_HOME/scalemani or ~/.cache/scalemani.

    Returns
    -------
    Path or None
        An absolute path, which need not exist; None for users without a home.

    References
    ----------
    XDG Base Directory Specification 0.8, which has relative paths ignored.
    """
    own, caches = os.environ.get(CACHE_VARIABLE), os.environ.get("XDG_CACHE_HOME", "")
    if own:
        return Path(os.path.abspath(own))
    if not os.path.isabs(caches):
        caches = os.path.join(os.path.expanduser("~"), ".cache")
    return Path(caches, "scalemani") if os.path.isabs(caches) else None


def _make_private(folder: Path) -> None:
    """Make a folder and what is missing above it, for this user alone."""
    for place in (*reversed(folder.parents), folder):
        if not place.is_dir():
            with contextlib.suppress(FileExistsError):
                place.mkdir(PRIVATE)


def _is_trusted(folder: Path) -> bool:
    """Return whether only this user, or root, decides what a folder holds."""
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    mine = not hasattr(os, "geteuid") or status.st_uid in (0, os.geteuid())
    return stat.S_ISDIR(status.st_mode) and mine and not status.st_mode & WRITABLE_BY_OTHERS


@functools.cache
def _remove_unused(kernels: Path) -> None:
    """Remove, once a process, the entries that nobody has used for long, and those used longest ago where many are.

    Processes that use what is removed compile it anew.
    """
    now, held = time.time(), 0
    for status, path in sorted(_entries(kernels), key=lambda entry: -entry[0].st_mtime):
        held += status.st_size
        if now - status.st_mtime > UNUSED_SECONDS or held > MOST_BYTES:
            with contextlib.suppress(OSError):
                path.unlink()
    for folder in _environments(kernels):
        with contextlib.suppress(OSError):
            if now - folder.stat().st_mtime > UNUSED_SECONDS:
                folder.rmdir()  # fails where it holds something


def _environments(kernels: Path) -> list[Path]:
    found = [path for path in kernels.iterdir() if ENVIRONMENT_NAME.fullmatch(path.name)]
    return [path for path in found if _is_trusted(path)]


def _entries(kernels: Path) -> Iterator[tuple[os.stat_result, Path]]:
    for folder in _environments(kernels):
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    yield status, path
