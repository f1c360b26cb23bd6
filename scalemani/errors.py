"""What can go wrong, by what the user can do about it: every message says what came, what is allowed, what to do."""

import difflib
import errno
import inspect
import os
import re
import shlex
import warnings
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from pathlib import Path, PurePath, PurePosixPath


class ScalemaniError(Exception):
    """Base of all errors of this library; `exit_status` is that of the command line."""

    exit_status = 1


class ConfigError(ScalemaniError, ValueError):
    """A parameter, option or method that cannot be used."""

    exit_status = 2


class DataError(ScalemaniError, ValueError):
    """Points, labels or a graph that cannot be used."""

    exit_status = 2


class ObjectsError(DataError, TypeError):
    """Objects among the points that are no numbers: to scikit-learn's users a TypeError."""


class DimensionsError(DataError):
    """An array of one dimension, or of more than two, where a table is expected."""


class DisconnectedGraphError(DataError):
    """A neighbour graph in several components where one was requested."""


class StoreError(ScalemaniError):
    """A run or array that cannot be opened, written or trusted."""

    exit_status = 2


class StoreLockedError(StoreError):
    """Another run is working on this store."""


class StoreVersionError(StoreError):
    """A store written in another format version."""


class UnsafeStoreError(StoreError):
    """A store that asks for code to be run or leads outside its folder."""


class CorruptChunkError(StoreError):
    """A chunk whose content is not what was committed."""

    exit_status = 1


class MissingChunkError(CorruptChunkError):
    """A chunk that was committed and is gone."""


class UnreachableStoreError(StoreError):
    """A store that did not answer, or not without errors: its server, its disk, or what this process may open of it."""

    exit_status = 1


class ClusterError(ScalemaniError):
    """A cluster that cannot continue a run."""


class WorkersLostError(ClusterError):
    """All workers are gone and none came back."""


class SchedulerLostError(ClusterError):
    """The scheduler cannot be reached, or not any more."""


class PoisonTaskError(ClusterError):
    """A block that ends every worker that works on it."""


class MemoryBudgetError(ScalemaniError, ValueError):
    """A memory budget that cannot hold the run."""

    exit_status = 2


class DiskSpaceError(ScalemaniError, OSError):
    """A disk that cannot hold what has to be written."""


class NumericalError(ScalemaniError, ArithmeticError):
    """A computation that did not reach its target."""


class ConvergenceError(NumericalError):
    """An iteration that stopped before its tolerance."""


class RankError(NumericalError):
    """A matrix without the rank that the method needs."""


class ScalemaniWarning(UserWarning):
    """Something about a result that its users should know."""


class ShortfallWarning(ScalemaniWarning):
    """A result that misses its target: a residual, a recall, an error, a descent cut short."""


WARNINGS: dict[str, type[ScalemaniWarning]] = {kind.__name__: kind for kind in (ScalemaniWarning, ShortfallWarning)}
# How an interface words a message, whose names are those of the command line.
WORDING: ContextVar[Callable[[str], str]] = ContextVar("WORDING", default=str)
PASSED_OVER = ("scalemani", "sklearn", "contextlib")  # packages between who asks for a result and who warns of it


def warn(message: str, kind: type[ScalemaniWarning] = ScalemaniWarning) -> None:
    """Give a Python warning of the line outside this library that led to it."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in PASSED_OVER:
        frame, level = frame.f_back, level + 1
    warnings.warn(WORDING.get()(message), kind, stacklevel=level)


SIMILAR = 0.7  # letters of a name that is meant; init and affinity have 0.67
LONGEST_NAME = 200  # letters of a name whose nearest one is looked for, which takes time by the square of them


def nearest_name(name: object, allowed: Iterable[str]) -> str:
    """Return the part of a message that offers the nearest allowed name, and lists them all."""
    names = sorted(allowed)
    text = str(name)
    close = difflib.get_close_matches(text, names, n=1, cutoff=SIMILAR) if len(text) <= LONGEST_NAME else []
    offer = f"did you mean {close[0]!r}? " if close else ""
    return f"{offer}allowed: {', '.join(names)}"


def check_known(name: object, allowed: Iterable[str], problem: str) -> None:
    """Refuse a name that is not among the allowed ones: state the problem, and offer the nearest."""
    if not isinstance(name, str) or name not in allowed:
        raise ConfigError(f"{problem}: {nearest_name(name, allowed)}")


def installing(extra: str) -> str:
    """Return the command that installs what an extra adds, wherever this package came from."""
    from importlib.metadata import requires

    of_extra = re.compile(rf"extra\s*==\s*['\"]{extra}['\"]")
    wanted = [one.partition(";")[0].strip() for one in requires("scalemani") or () if of_extra.search(one)]
    return f"pip install {' '.join(map(shlex.quote, wanted))}"


# The beginning, of which a path leaves one slash. Schemes are short, and a long word is searched in time by its length.
URL = r"[A-Za-z][A-Za-z0-9+.-]{0,30}:/"
LEAST_PART = 6  # letters of a part of a password that is looked for by itself; shorter ones are in other words too


def without_user(text: str) -> str:
    """Return a text without the user and password of any URL in it; a password may hold slashes."""
    return re.sub(rf"({URL}/?)\S*@", r"\1", text)


def without_secrets(text: str, words: Iterable[str] = ()) -> str:
    """Return a text without the user, password and query of any URL in it, nor those of the URLs among some words.

    What is left of a word after it was cut at a slash or a question mark looks like no URL: its parts are looked for.
    """
    hidden = {part for word in words for part in secret_parts(word)}
    for part in sorted(hidden, key=len, reverse=True):
        text = text.replace(part, "...")
    return re.sub(rf"({URL}[^\s?]*)\?\S*", r"\1", without_user(text))


def secret_parts(word: str) -> set[str]:
    """Return what no message may say of a URL: its user, password and query, and the longer parts of these."""
    scheme = re.search(URL, word)
    if scheme is None:
        return set()
    before, _, after = word[scheme.end() :].lstrip("/").rpartition("@")
    values = [pair.partition("=")[2] for pair in after.partition("?")[2].split("&")]
    whole = {*before.split(":", 1), *values} - {""}
    return whole | {part for text in whole for part in text.split("/") if len(part) >= LEAST_PART}


def printable(line: str) -> str:
    """Return a line with spaces for letters that a terminal may take for orders, or that end the line."""
    return "".join(letter if letter.isprintable() else " " for letter in line)


NO_THREAD = "can't start new thread"  # Python's words
NO_PROCESS = (
    "the system starts no more threads or processes for this user: raise the limit (ulimit -u, or pids of a control "
    "group) or give fewer workers; the same command resumes"
)
FULL, OPEN_FILES = {errno.ENOSPC, errno.EDQUOT}, {errno.EMFILE, errno.ENFILE}
LASTING_KINDS = (PermissionError, FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)
LASTING = {errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL, errno.EXDEV, errno.ENODEV, errno.EOPNOTSUPP}
LASTING |= {errno.ENOSYS, errno.ENOTSUP}  # what a file system does not have


def is_lasting(error: OSError) -> bool:
    """Return whether the system says it of a path, of rights or of a kind of file: it says so again."""
    return isinstance(error, LASTING_KINDS) or error.errno in LASTING


def remedy_of(error: OSError) -> str:
    """Return what to do about an error of the system that may pass."""
    what = "raise the limit of open files (ulimit -n)" if error.errno in OPEN_FILES else "look at its disk or server"
    return f"{what} and run the same command again"


def refuse_url(location: str | PurePath, what: str) -> None:
    """Refuse a URL, and what a path leaves of one, where only a place of this machine can be meant."""
    if re.match(URL, str(location)):
        raise ConfigError(f"{what} is a folder or file of this machine, got a URL: give a path")


def refuse_output_in_input(output: str | Path, *inputs: str | Path) -> None:
    """Refuse to write over what is read, or into it."""
    target = comparable_place(output)
    for name in map(str, inputs):
        source = comparable_place(name.partition("::")[0])
        if target == source or source in target.parents:
            raise ConfigError(f"the output {output} is the input {name} or lies in it: choose another place")


def comparable_place(location: str | Path) -> PurePath:
    """Return a path or URL in a form in which one can be seen to lie in another."""
    return PurePosixPath(str(location)) if "://" in str(location) else Path(os.path.realpath(location))


def refuse_nul(location: str) -> None:
    """Refuse what no path can hold, and no system call takes."""
    if "\0" in location:
        raise ConfigError(f"a path holds no NUL, got {location!r}: leave it out")


def refuse_home(location: str) -> None:
    """Refuse a path that begins with ~, which shells replace by the user's folder before a program sees it."""
    if re.match(r"~($|[^/]*/)", location) and not os.path.lexists(location.partition("/")[0]):
        raise ConfigError(
            f"{location} begins with ~, which a shell replaces and Python does not: give "
            f"os.path.expanduser({location!r})"
        )


def refuse_credentials(location: str) -> None:
    """Refuse a URL with a user or password in it, without repeating them."""
    scheme, separator, rest = location.partition("://")
    if separator and "@" in rest:
        raise ConfigError(
            f"a {scheme}:// URL has a user or password in it: leave them out, credentials come from the "
            "environment or the usual profile"
        )
