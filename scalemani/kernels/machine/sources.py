"""Digests of the sources that a compiled function may hold code or constants of.

A compiled function holds the code of functions that it calls and the values of constants that it reads, whatever file
they stand in. So a file's digest covers all files of the package that it names, that these name, and so on. Every
dotted name counts, in a docstring too: a file too many costs a compilation, a file too few a wrong result.
"""

import functools
import glob
import hashlib
import os
import re
from typing import NamedTuple

PACKAGE_FOLDER = os.path.abspath(os.path.join(__file__, "..", "..", ".."))
DOTTED_NAME = re.compile(rf"\b{os.path.basename(PACKAGE_FOLDER)}((?:\.\w+)+)".encode())


class Source(NamedTuple):
    """One file: the SHA-256 of its bytes, the dotted names in it, and what tells it from an edited one."""

    digest: bytes
    names: frozenset[bytes]
    stamp: tuple[int, int]


def source_digest(file: str) -> bytes:
    """Return the SHA-256 over a file and all files of the package that it reaches by name, the same in any folder.

    A process reads each file once, when the first module that reaches it is imported: the digest is of the code that
    the process runs, also where files are edited under it. A module that is imported again after an edit has no digest,
    since other modules of the process may hold its former functions: that is an OSError, as is a file that cannot be
    read.
    """
    if _stamp(file) != _source(file).stamp:
        raise OSError(f"{file} was edited after it was imported")
    return _digest_of_reached(file)


def reached_files(file: str) -> set[str]:
    """Return a file and all files of the package that it names, directly or through others: absolute paths."""
    reached: set[str] = set()
    waiting = {file}
    while waiting:
        current = waiting.pop()
        reached.add(current)
        waiting.update(*map(_files_of, _source(current).names))
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
    return Source(hashlib.sha256(content).digest(), frozenset(DOTTED_NAME.findall(content)), stamp)


def _stamp(file: str) -> tuple[int, int]:
    status = os.stat(file)
    return status.st_mtime_ns, status.st_size


@functools.cache
def _files_of(name: bytes) -> frozenset[str]:
    """Return the files that ".a.b.c" may stand for: modules and packages on the way, and all modules of a package c."""
    place, files = PACKAGE_FOLDER, set()
    for part in name.decode().split(".")[1:]:
        place = os.path.join(place, part)
        files |= {file for file in (f"{place}.py", os.path.join(place, "__init__.py")) if os.path.isfile(file)}
    if os.path.isdir(place):
        files.update(glob.glob(os.path.join(glob.escape(place), "*.py")))
    return frozenset(files)
