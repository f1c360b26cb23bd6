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


def test_every_import_is_reached():
    paths = sorted(PACKAGE.rglob("*.py"))
    assert len(paths) > 200
    for path in paths:
        reached = reached_files(str(path))
        for statement in ast.walk(ast.parse(path.read_text())):
            if isinstance(statement, ast.ImportFrom) and statement.module.startswith("scalemani."):
                assert statement.level == 0
                for name in ["", *(f".{alias.name}" for alias in statement.names)]:
                    module = PACKAGE.joinpath(*f"{statement.module}{name}".split(".")[1:])
                    for file in (module.with_suffix(".py"), module / "__init__.py"):
                        assert not file.exists() or str(file) in reached, (path, file)


def test_imports_are_reached_in_whatever_form_they_have(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np; import scalemani.kernels.descent\n"
        "import scalemani.kernels.measures as measures\n"
        "from scalemani.kernels.graph \\\n    import product\n"
        "if True: from scalemani.kernels.spectral import (\n    linear,  # (with a comment)\n    pieces,\n)\n"
        "def late():\n    from scalemani.kernels.arrays.tiles import *\n"
    )
    names = ("descent", "measures", "graph/product", "spectral/linear", "spectral/pieces", "arrays/tiles")
    assert {str(PACKAGE / "kernels" / f"{name}.py") for name in names} <= reached_files(str(program))


def test_what_a_file_only_names_is_not_reached(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        '"""See scalemani.kernels.descent,\nfrom scalemani.kernels.measures."""\nNAME = "scalemani.stages"\n'
    )
    assert reached_files(str(program)) == {str(program)}


def test_kernels_follow_from_nothing_that_reads_or_stores():
    for path in (PACKAGE / "kernels").rglob("*.py"):
        floors = {Path(file).relative_to(PACKAGE).parts[0] for file in reached_files(str(path))}
        assert floors <= {"kernels", "config", "errors.py"}, path


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
