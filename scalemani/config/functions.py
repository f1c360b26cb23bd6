"""Functions of two rows that users write, by the name of the module or file that has them, and by a digest.

The name is `module:function` or `path.py::function`. Every process that compares rows loads the function by it, and the
stored name ends in `#` and a digest of all that the function computes by: a run whose function has changed since is
refused where it is resumed, and nothing of it is reused.
"""

import functools
import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, ModuleType
from typing import Any

from scalemani.errors import ConfigError

OF_FILE, OF_MODULE, DIGEST = "::", ":", "#"
DIGITS = 16
LIBRARIES = ("math", "numba", "numpy", "scipy")  # whose versions a run does not hold
PLAIN_VALUES = (bool, int, float, complex, str, bytes, type(None))


def is_function(metric: str) -> bool:
    """Return whether a metric is the name of a user's function."""
    return OF_MODULE in metric and not metric.startswith("minkowski:")


def name_of_function(function: Any) -> str:
    """Return the name by which other processes load a function, compiled or not; raise ConfigError where none can."""
    plain = plain_function(function)
    name, file = plain.__qualname__, plain.__code__.co_filename
    if "<" in name or not (plain.__module__ != "__main__" or os.path.isfile(file)):
        raise ConfigError(
            f"{name} has no name by which workers and later runs can load it: write it at the top level of a module or "
            "a file, and give the function, or its name as module:function or path.py::function"
        )
    module = sys.modules.get(plain.__module__)
    if plain.__module__ == "__main__" or getattr(module, name, None) is not function:
        return f"{os.path.abspath(file)}{OF_FILE}{name}"
    return f"{plain.__module__}{OF_MODULE}{name}"


def plain_function(function: Any) -> Any:
    """Return the Python function of one that may be compiled; raise ConfigError for what is none."""
    plain = getattr(function, "py_func", function)
    if not hasattr(plain, "__code__"):
        raise ConfigError(f"it takes a name, or a function of two rows that numba compiles, got {function!r}")
    return plain


def with_digest(metric: str) -> str:
    """Return the name of a function with its digest; raise ConfigError where another digest is expected."""
    bare, _, expected = metric.partition(DIGEST)
    digest = digest_of(load_function(bare))
    if expected and digest != expected:
        raise ConfigError(
            f"{bare} is another function than that of the run, or reads other values: restore it, or start a run of "
            "its own"
        )
    return f"{bare}{DIGEST}{digest}"


def check_function(metric: str) -> None:
    """Raise ConfigError where the metric of a run is a function that is another one by now."""
    if is_function(metric):
        with_digest(metric)


def load_function(metric: str) -> Any:
    """Return the function that a name, with or without a digest, stands for; raise ConfigError where there is none."""
    bare = metric.partition(DIGEST)[0]
    separator = OF_FILE if OF_FILE in bare else OF_MODULE
    place, _, name = bare.rpartition(separator)
    try:
        module = module_of_file(os.path.abspath(place)) if separator == OF_FILE else importlib.import_module(place)
        return getattr(module, name)
    except (ImportError, OSError, AttributeError, SyntaxError) as error:
        raise ConfigError(
            f"{bare} cannot be loaded ({error}): name a function as module:function or path.py::function, which all "
            "workers can import"
        ) from error


def module_of_file(path: str) -> ModuleType:
    """Return the module that a file is, loaded again once it was edited; the main one where this is run.

    A script whose function is its metric would else be run within itself.
    """
    main = sys.modules["__main__"]
    if os.path.abspath(getattr(main, "__file__", None) or "") == path:
        return main
    return _module_of_file(path, os.stat(path).st_mtime_ns)


@functools.cache
def _module_of_file(path: str, modified: int) -> ModuleType:
    name = f"metric_{hashlib.sha256(f'{path} {modified}'.encode()).hexdigest()[:DIGITS]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no file of Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # numba looks for it there
    spec.loader.exec_module(module)
    return module


def digest_of(function: Any) -> str:
    """Return a digest of the code of a function, of functions that it calls, and of the values that these read."""
    total = hashlib.sha256()
    for part in parts_of(function, set()):
        total.update(part.encode())
    return total.hexdigest()[:DIGITS]


def parts_of(function: Any, seen: set[Any]) -> Iterator[str]:
    """Yield what decides what a function returns, but for libraries."""
    plain = plain_function(function)
    if plain in seen:
        return
    seen.add(plain)
    options = getattr(function, "targetoptions", {})  # of numba
    yield repr(
        [
            (name, sorted(map(str, value)) if isinstance(value, set | frozenset) else value)
            for name, value in sorted(options.items())
        ]
    )
    yield from parts_of_code(plain.__code__)
    captured = dict(
        zip(plain.__code__.co_freevars, (cell.cell_contents for cell in plain.__closure__ or ()), strict=True)
    )
    read = {name: plain.__globals__[name] for name in names_read(plain.__code__) if name in plain.__globals__}
    for name, value in sorted({**read, **captured}.items()):
        yield name
        yield from parts_of_value(f"{plain.__name__} reads {name}", value, seen)
    yield from parts_of_value("defaults", plain.__defaults__, seen)


def names_read(code: CodeType) -> set[str]:
    """Return the global names and attributes of code, and of functions within it."""
    inner = (names_read(value) for value in code.co_consts if isinstance(value, CodeType))
    return set(code.co_names).union(*inner)


def parts_of_code(code: CodeType) -> Iterator[str]:
    """Yield instructions, constants and names, without lines and files."""
    yield repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars))
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from parts_of_code(value)
        else:
            yield repr(value)


def parts_of_value(what: str, value: Any, seen: set[Any]) -> Iterator[str]:
    """Yield what a value is; raise ConfigError for one that may change unseen."""
    if isinstance(value, ModuleType):
        known, described = value.__name__.partition(".")[0] in LIBRARIES, value.__name__
    elif isinstance(value, PLAIN_VALUES):
        known, described = True, repr(value)
    elif isinstance(value, tuple):
        for part in value:
            yield from parts_of_value(what, part, seen)
        known, described = True, str(len(value))
    elif hasattr(value, "dtype") and hasattr(value, "tobytes"):  # arrays and scalars of NumPy
        known, described = True, repr((str(value.dtype), value.shape, value.tobytes()))
    elif isinstance(value, type | BuiltinFunctionType) or type(value).__name__ == "ufunc":
        known, described = True, getattr(value, "__qualname__", "") or value.__name__
    elif hasattr(getattr(value, "py_func", value), "__code__"):
        home = getattr(value, "py_func", value).__module__ or ""
        known, described = True, getattr(value, "__qualname__", "")
        if home.partition(".")[0] not in LIBRARIES:
            yield from parts_of(value, seen)
    else:
        known, described = False, ""
    if not known:
        raise ConfigError(
            f"{what}, a {type(value).__name__} whose content has no digest: let the function read numbers, tuples, "
            "arrays and functions"
        )
    yield described
