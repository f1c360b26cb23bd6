"""Which files a compiled function follows from: none is missed."""

import ast
import importlib
import pkgutil
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

import scalemani
from scalemani.kernels.machine.code_cache import reached_files, source_digest
from scalemani.kernels.machine.compile import PLAIN

PACKAGE = Path(scalemani.__file__).parent


def compiled_functions():
    """Return all compiled functions of the package, those that need optional libraries left out."""
    found = {}
    for module in pkgutil.walk_packages([str(PACKAGE)], "scalemani."):
        if "__main__" in module.name:
            continue
        try:
            loaded = importlib.import_module(module.name)
        except ImportError:
            continue
        for value in vars(loaded).values():
            if isinstance(value, Dispatcher) and value.__module__.startswith("scalemani."):
                found[f"{value.__module__}.{value.__name__}"] = value
    return found


def file_of(module):
    return importlib.import_module(module).__file__


@pytest.mark.skipif(PLAIN, reason="plain kernels are not compiled")
def test_every_compiled_function_is_kept_and_reaches_all_that_it_calls():
    functions = compiled_functions()
    assert len(functions) > 100
    for name, kernel in functions.items():
        assert kernel._cache._identity is not None, name
        reached = reached_files(kernel.py_func.__code__.co_filename)
        for called in kernel.py_func.__code__.co_names:
            value = kernel.py_func.__globals__.get(called)
            if getattr(value, "__module__", "").startswith("scalemani."):
                assert file_of(value.__module__) in reached, (name, called)


@pytest.mark.parametrize("path", sorted((PACKAGE / "kernels").rglob("*.py")), ids=lambda path: path.stem)
def test_every_import_is_reached(path):
    reached = reached_files(str(path))
    for statement in ast.walk(ast.parse(path.read_text())):
        if isinstance(statement, ast.ImportFrom) and statement.module.startswith("scalemani"):
            assert statement.level == 0
            for name in statement.names:
                imported = Path(file_of(statement.module))
                assert str(imported) in reached
                submodule = imported.with_name(f"{name.name}.py")
                assert imported.stem != "__init__" or not submodule.exists() or str(submodule) in reached


def test_files_are_reached_through_others_and_no_further():
    kernels = PACKAGE / "kernels"
    reached = reached_files(str(kernels / "affinities/entropic.py"))
    assert {str(kernels / "affinities/root_finders.py"), str(kernels / "machine/vector_math.py")} <= reached
    assert str(kernels / "neighbors/cells.py") not in reached


def test_the_digest_follows_from_the_files_that_are_reached(tmp_path):
    text = "from scalemani.kernels.machine.vector_math import LOG_2\n"
    paths = [tmp_path / name / "program.py" for name in ("first", "second", "third")]
    for path, content in zip(paths, (text, text, text.replace("vector_math", "compile")), strict=True):
        path.parent.mkdir()
        path.write_text(content)
    first, second, third = (source_digest(str(path)) for path in paths)
    assert first == second != third


def test_a_file_that_was_edited_after_it_was_read_has_no_digest(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("a = 1\n")
    assert len(source_digest(str(path))) == 32
    path.write_text("a = 123\n")
    with pytest.raises(OSError, match="was edited after it was imported"):
        source_digest(str(path))
    with pytest.raises(OSError, match="absent"):
        source_digest(str(tmp_path / "absent.py"))
