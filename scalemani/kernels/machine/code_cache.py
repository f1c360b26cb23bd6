"""The cache of the kernels' machine code, shared by processes: an entry is never of other sources.

Numba's cache identifies a function by the file that defines it: after an edit of a function in another file that is
called there, it still loads the earlier code. It writes an index before the code that the index refers to, so that two
processes that compile two signatures at once can leave one signature with the code of the other. Here the name of an
entry is a digest of all that its machine code follows from: sources, signature, versions and processor.

A compiled function holds the code of functions that it calls and the values of constants that it reads, in any file.
So a file's digest covers all files of the package that it imports, that these import, and so on, wherever in a file the
import is: a file too many costs a compilation, a file too few a wrong result. What a file names in text alone is none.

A wheel may hold entries too, compiled for levels of x86-64 instead of one processor. They are read first, and
never written. Another version of what compiles, or other sources, leave them unused.
"""

import ast
import contextlib
import functools
import glob
import hashlib
import itertools
import json
import os
import pickle
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import llvmlite
import numba
import numpy as np
from llvmlite import binding
from numba.core import sigutils, types
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.cpython import hashing  # noqa: F401 - registers a symbol, as `rtsys` does, that machine code may refer to

PACKAGE_FOLDER = os.path.abspath(os.path.join(__file__, "..", "..", ".."))
PACKAGE = os.path.basename(PACKAGE_FOLDER)
IMPORT = re.compile(  # statements, and text that looks like one
    rb"(?:^|[:;])[ \t]*((?:from|import)\b(?:\\\n|[^\n;(])*(?:\([^)]*\))?)", re.MULTILINE
)

CACHE_VARIABLE = "SCALEMANI_CACHE"
PRIVATE = 0o700
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
FOLDER = NO_LINK | getattr(os, "O_DIRECTORY", 0)
ON_THE_WAY = FOLDER | getattr(os, "O_PATH", 0)  # of a folder that may be passed through and not listed, such as /home
ENTRY = NO_LINK | getattr(os, "O_NONBLOCK", 0)
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
DIGITS = 32  # of SHA-256 in a name: 128 bits
ENVIRONMENT_NAME = re.compile(rf"[0-9a-f]{{{DIGITS}}}")
TYPES_IN_WORDS = 6  # of the parts of an entry: for people, a quarter of its bytes; left out
CHECKSUM_BYTES = hashlib.sha256().digest_size
UNUSED_SECONDS = 30 * 86400  # an entry that nobody has loaded for so long is most likely one of former sources
MOST_BYTES = 2**29  # thirty times what all kernels take, in all their signatures
# Variables of numba that change no machine code. All others make separate caches.
WITHOUT_EFFECT = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER", "NUMBA_THREADING_LAYER_PRIORITY"}
PROCESSOR_VARIABLES = {"NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"}  # what they say is in the description of the processor

INSTALLED = Path(PACKAGE_FOLDER, "kernels", "machine", "code")  # a folder for each level; none in the sources
BUILT_WITH = "versions.json"
_V3 = "+avx,+avx2,+bmi,+bmi2,+cx16,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sahf,+sse4.2,+xsave"
# Levels by the names that LLVM has for them, best first, and the features that the code of each needs. By default LLVM
# halves the vectors of v4, since the first processors of that level slowed down; sums then have another order than in
# code for later processors.
LEVELS = {
    "x86-64-v4": f"{_V3},+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl,-prefer-256-bit",
    "x86-64-v3": _V3,
}


class Source(NamedTuple):
    """One file: the SHA-256 of its bytes, the dotted names it imports, and what distinguishes it from an edited one."""

    digest: bytes
    imported: frozenset[str]
    stamp: tuple[int, int]


def source_digest(file: str) -> bytes:
    """Return the SHA-256 over a file and all files of the package that it reaches by imports, the same in any folder.

    A process reads each file once, when the first module that reaches it is imported: the digest is of the code that
    the process runs, also where files are edited under it. A module that is imported again after an edit has no digest,
    since other modules of the process may hold its former functions: that is an OSError, as is a file that cannot be
    read.
    """
    if _stamp(file) != _source(file).stamp:
        raise OSError(f"{file} was edited after it was imported")
    return _digest_of_reached(file)


def reached_files(file: str) -> set[str]:
    """Return a file and all files of the package that it imports, directly or through others: absolute paths."""
    reached: set[str] = set()
    waiting = {file}
    while waiting:
        current = waiting.pop()
        reached.add(current)
        waiting.update(*map(_files_of, _source(current).imported))
        waiting -= reached
    return reached


@functools.cache
def _digest_of_reached(file: str) -> bytes:
    total = hashlib.sha256()
    for reached in sorted(reached_files(file)):
        total.update(os.path.basename(reached).encode() + _source(reached).digest)
    return total.digest()


@functools.cache
def _source(file: str) -> Source:
    stamp = _stamp(file)
    with open(file, "rb") as opened:
        content = opened.read()
    return Source(hashlib.sha256(content).digest(), frozenset(_imported(content)), stamp)


def _imported(content: bytes) -> Iterator[str]:
    """Yield the dotted names of the package that a file imports: "scalemani.a.b" for b of a.

    Trees of import statements are made in a tenth of the time of those of whole files, in which a process starts.
    """
    statements = [statement for statement in IMPORT.findall(content) if PACKAGE.encode() in statement]
    try:
        trees = [ast.parse(statement) for statement in statements]
    except SyntaxError:  # a statement of several lines, a comment within it, or text that begins like one
        trees = [ast.parse(content)]
    for node in itertools.chain.from_iterable(map(ast.walk, trees)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == PACKAGE)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == PACKAGE:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _stamp(file: str) -> tuple[int, int]:
    status = os.stat(file)
    return status.st_mtime_ns, status.st_size


@functools.cache
def _files_of(name: str) -> frozenset[str]:
    """Return where "scalemani.a.b" may be: in modules and packages on the way, or in any module of a package b."""
    place, files = PACKAGE_FOLDER, set()
    for part in name.split(".")[1:]:
        place = os.path.join(place, part)
        files |= {file for file in (f"{place}.py", os.path.join(place, "__init__.py")) if os.path.isfile(file)}
    if os.path.isdir(place):
        files.update(glob.glob(os.path.join(glob.escape(place), "*.py")))
    return frozenset(files)


class UntrustedFolderError(OSError):
    """A folder or entry that somebody else than this user and root may have filled."""


class CodeCache(NullCache):
    """The machine code of one function, compiled with some options, an entry for each signature.

    Nothing here raises or warns: where an entry cannot be read or written, numba compiles in memory. Functions without
    a file and functions with captured variables are not cached.
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
        # Registers what machine code refers to. Numba's cache declares all that a compiler needs: 0.3 s.
        rtsys.initialize(target_context)
        name, processor = self._name_of(sig), target_context.codegen().magic_tuple()
        if name is None:
            return None
        level, cached = installed_code(processor).level, _folder_for(processor)
        for entry_of, folder in ((_installed_entry, level and INSTALLED / level), (_entry, cached)):
            try:
                entry = _unpacked(entry_of(folder, name)) if folder else None
                if entry is not None and entry[0] == sig:
                    return CompileResult._rebuild(target_context, *entry[1])
            except Exception:  # an entry that cannot be read is compiled again
                continue
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store what was compiled for a signature, unless it is part of other machine code alone."""
        name, folder = self._name_of(sig), _folder_for(data.target_context.codegen().magic_tuple())
        depends_on_process = data.library.has_dynamic_globals or any(not part.can_cache for part in data.lifted)
        if data.entry_point is None or name is None or folder is None or depends_on_process:
            return
        parts = data._reduce()
        parts = (*parts[:TYPES_IN_WORDS], "", *parts[TYPES_IN_WORDS + 1 :])
        with contextlib.suppress(OSError):
            with _opened(folder, make=True) as opened:
                _write(opened, name, _packed(dumps((sig, parts))))
            _remove_unused(folder.parent)

    def _name_of(self, sig: Any) -> str | None:
        """Return the name of a signature's entry, the same for all processors, or None where nothing is cached."""
        if self._identity is None:
            return None
        arguments, _ = sigutils.normalize_signature(sig)
        with contextlib.suppress(OSError):
            facts = (*self._identity, *(_described(kind) for kind in arguments))
            return f"{self._name}-{_digest_of(facts)}"
        return None


def _described(kind: Any) -> str:
    """Return the name of a numba type, with the fields of named tuples, which numba's names leave out.

    A type with a `file` stands for a function of that file, which machine code for such an argument holds.
    """
    file = getattr(kind, "file", None)
    if file is not None:
        return repr((str(kind), source_digest(file)))
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


def _entry(folder: Path, name: str) -> bytes:
    """Return what an entry of the user's cache holds, which only this user or root has written; note its use."""
    with _opened(folder) as opened, _opened_entry(name, opened) as file:
        _check(os.fstat(file.fileno()), name)
        with contextlib.suppress(OSError):
            os.utime(file.fileno())
        return file.read()


def _installed_entry(folder: Path, name: str) -> bytes:
    """Return what a file of the installed code holds; it is left untouched."""
    with _opened_entry(str(folder / name)) as file:
        _check_as_sources(os.fstat(file.fileno()), name)
        return file.read()


def _opened_entry(name: str, folder: int | None = None) -> BinaryIO:
    """Open a regular file, no link, to read it."""
    file = os.fdopen(os.open(name, os.O_RDONLY | ENTRY, dir_fd=folder), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise UntrustedFolderError(f"{name} is no file")
    return file


def _write(folder: int, name: str, content: bytes) -> None:
    """Write a file that other processes see whole or not at all; the last of several that write it stays."""
    partial = f".{secrets.token_hex(8)}"
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(partial, dir_fd=folder)
        raise


@functools.cache
def _folder_for(processor: tuple[str, ...]) -> Path | None:
    """Return the folder of the entries for a processor and the versions at work; None for users without a home."""
    home = cache_home()
    if home is None:
        return None
    settings = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_") and k not in WITHOUT_EFFECT)
    level = installed_code(processor).level  # what is compiled may hold code of the level that it calls
    versions = (sys.version, numba.__version__, llvmlite.__version__, binding.llvm_version_info, np.__version__)
    facts = (*versions, vars(numba.config)["USING_SVML"], *processor, *settings, *([level] if level else []))
    return home / "kernels" / _digest_of(facts)


class InstalledCode(NamedTuple):
    """The level of the wheel's machine code that is used, or why none is."""

    level: str | None
    unused: str | None = None


@functools.cache
def installed_code(processor: tuple[str, ...] | None = None) -> InstalledCode:
    """Return which machine code of the wheel is used on a processor as numba describes it, this one by default."""
    *_, features = processor or cpu_target.target_context.codegen().magic_tuple()
    try:
        wheel = json.loads(_installed_entry(INSTALLED, BUILT_WITH))
        held = [level for level in LEVELS if (INSTALLED / level).exists()]
        for folder in (INSTALLED, *(INSTALLED / level for level in held)):
            _check_as_sources(folder.lstat(), str(folder))
    except FileNotFoundError:
        return InstalledCode(None, "this installation holds none")
    except (OSError, ValueError, NotImplementedError) as error:
        return InstalledCode(None, str(error))
    differences = [
        f"{name} is {version}, the wheel's was {wheel.get(name)}"
        for name, version in built_with().items()
        if wheel.get(name) != version
    ]
    differences += [f"{name} is set" for name in sorted(os.environ) if _changes_code(name)]
    if differences:
        return InstalledCode(None, "; ".join(differences))
    for level in held:
        needed = {feature for feature in LEVELS[level].split(",") if feature.startswith("+")}
        if needed <= set(features.split(",")):
            return InstalledCode(level)
    return InstalledCode(None, f"the wheel's code needs {' or '.join(held)}, which this processor does not have")


def built_with() -> dict[str, str]:
    """Return the versions that entries of a wheel follow from: those that numba itself looks at."""
    return {
        "Python": str(sys.implementation.cache_tag),
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "LLVM": ".".join(map(str, binding.llvm_version_info)),
        "NumPy": ".".join(np.__version__.split(".")[:2]),
        "SVML": str(vars(numba.config)["USING_SVML"]),
    }


def _changes_code(variable: str) -> bool:
    return variable.startswith("NUMBA_") and variable not in WITHOUT_EFFECT | PROCESSOR_VARIABLES


def _check_as_sources(status: os.stat_result, name: str) -> None:
    """Refuse what others may write to than this user, root, and whoever may write to the sources, which run as well."""
    writers = [(one.st_uid, one.st_gid, one.st_mode & WRITABLE_BY_OTHERS) for one in (status, os.stat(__file__))]
    if stat.S_ISLNK(status.st_mode):
        raise UntrustedFolderError(f"{name} is a link")
    if writers[0] != writers[1]:
        _check(status, name)


def writable_folder() -> Path | None:
    """Return the folder of the machine code for this processor, None where nothing can be cached."""
    folder = _folder_for(cpu_target.target_context.codegen().magic_tuple())
    with contextlib.suppress(OSError):
        if folder is not None:
            with _opened(folder, make=True) as descriptor:
                return folder if os.access(".", os.W_OK, dir_fd=descriptor) else None
    return None


def is_compiled() -> bool:
    """Return whether this machine has machine code of kernels that can be loaded, of the wheel or in the cache."""
    processor = cpu_target.target_context.codegen().magic_tuple()
    folder = _folder_for(processor)
    if installed_code(processor).level is not None:
        return True
    with contextlib.suppress(OSError):
        if folder is not None:
            with _opened(folder) as descriptor:
                return bool(os.listdir(descriptor))
    return False


def distrust() -> str:
    """Return why machine code is not cached, with the user who could fill its folder; an empty string where it is."""
    home = cache_home()
    try:
        with contextlib.nullcontext() if home is None else _opened(home / "kernels"):
            return ""
    except UntrustedFolderError as error:
        return (
            f"compiled kernels are not cached between processes: {error}, who could have this user run code; let "
            f"{CACHE_VARIABLE} name a folder that only this user or root can fill, move or replace"
        )
    except OSError:
        return ""


def cache_home() -> Path | None:
    """Return where caches of the package lie: $SCALEMANI_CACHE, $XDG_CACHE_HOME/scalemani or ~/.cache/scalemani.

    The path is absolute and need not exist; None for users without a home. Source: XDG Base Directory Specification
    0.8, which has relative paths ignored.
    """
    folder, caches = os.environ.get(CACHE_VARIABLE), os.environ.get("XDG_CACHE_HOME", "")
    if folder:
        return Path(os.path.abspath(folder))
    if not os.path.isabs(caches):
        caches = os.path.join(os.path.expanduser("~"), ".cache")
    return Path(caches, "scalemani") if os.path.isabs(caches) else None


@contextlib.contextmanager
def _opened(folder: Path, make: bool = False) -> Iterator[int]:
    """Open a folder that nobody but this user and root decides on; yield its descriptor, which no renaming changes.

    Entries are programs, and whoever may rename a folder above them could put another in its place: links above the
    folder are resolved, all folders on the way are opened one below the other, without following links, and looked at
    once they are open. A sticky one (/tmp) may be written to by others, who cannot rename there what is not theirs.
    """
    place = Path(os.path.realpath(folder.parent), folder.name)
    descriptor = os.open(place.anchor, ON_THE_WAY)
    try:
        _check(os.fstat(descriptor), place.anchor, stat.S_ISVTX)
        for path in (*reversed(place.parents), place)[1:]:
            above, descriptor = descriptor, _opened_below(descriptor, path.name, make)
            os.close(above)
            _check(os.fstat(descriptor), str(path), 0 if path == place else stat.S_ISVTX)
        above, descriptor = descriptor, os.open(".", os.O_RDONLY | FOLDER, dir_fd=descriptor)  # one that can be listed
        os.close(above)
        yield descriptor
    finally:
        os.close(descriptor)


def _opened_below(above: int, name: str, make: bool) -> int:
    """Open a folder in an open one, and make it before where it is missing and may be made."""
    try:
        return os.open(name, ON_THE_WAY, dir_fd=above)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, PRIVATE, dir_fd=above)
    return os.open(name, ON_THE_WAY, dir_fd=above)


def _check(status: os.stat_result, name: str, excuse: int = 0) -> None:
    """Refuse what belongs to others, or what they may write to unless a bit of its mode excuses it."""
    if hasattr(os, "geteuid") and status.st_uid not in (0, os.geteuid()):
        raise UntrustedFolderError(f"{name} belongs to user {status.st_uid}")
    if status.st_mode & WRITABLE_BY_OTHERS and not status.st_mode & excuse:
        raise UntrustedFolderError(f"{name} can be written by others")


@functools.cache
def _remove_unused(kernels: Path) -> None:
    """Remove, once a process, the entries that nobody has used for long, and those used longest ago where many are.

    Processes that use what is removed compile it again.
    """
    now, held = time.time(), 0
    with contextlib.ExitStack() as stack:
        above, entries = stack.enter_context(_opened(kernels)), []
        environments = [name for name in os.listdir(above) if ENVIRONMENT_NAME.fullmatch(name)]
        for environment in environments:
            with contextlib.suppress(OSError):
                folder = stack.enter_context(_opened(kernels / environment))
                entries += [(entry.stat(follow_symlinks=False), entry.name, folder) for entry in os.scandir(folder)]
        for status, name, folder in sorted(entries, key=lambda entry: -entry[0].st_mtime):
            held += status.st_size
            if now - status.st_mtime > UNUSED_SECONDS or held > MOST_BYTES:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder)
        for environment in environments:
            with contextlib.suppress(OSError):
                if now - os.stat(environment, dir_fd=above, follow_symlinks=False).st_mtime > UNUSED_SECONDS:
                    os.rmdir(environment, dir_fd=above)  # fails where it holds something
