"""The house: sizes of files and functions, the places that DESIGN.md names, and a front page of one screen."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "scalemani"
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST_FUNCTION, FUNCTION_P90 = 60, 20
LONGEST_FILE = 600  # a module has one subject: no shorter bound, which would cut an idea in two
FRONT_PAGE_LINES = 120


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the name of every function of a module with its lines, docstring left out."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            documented = ast.get_docstring(node, clean=False) is not None
            docstring = first.end_lineno - first.lineno + 1 if documented else 0
            yield node.name, node.end_lineno - node.lineno + 1 - docstring


def percentile_90(values: list[int]) -> int:
    ordered = sorted(values)
    return ordered[-(-9 * len(ordered) // 10) - 1]


def test_functions_are_short():
    lengths = {f"{path.relative_to(ROOT)}:{name}": lines for path in MODULES for name, lines in functions(path)}
    long = {name for name, lines in lengths.items() if lines > LONGEST_FUNCTION}
    # scikit-learn wants a line for every parameter of an estimator
    assert {
        name for name in long if not (name.startswith("scalemani/interfaces/estimators/") and name.endswith("__init__"))
    } == set()
    assert percentile_90(list(lengths.values())) < FUNCTION_P90


def test_files_are_short():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in MODULES}
    assert [name for name, lines in lengths.items() if lines > LONGEST_FILE] == []


@pytest.mark.parametrize("page", ["scalemani/DESIGN.md", "CONTRIBUTING.md"])
def test_the_pages_on_design_name_places_that_exist(page):
    named = re.findall(r"`([\w./]+(?:/|\.py|\.md|\.toml|\.sh))`", (ROOT / page).read_text())
    there = [name for name in named if (PACKAGE / name).exists() or (ROOT / name).exists()]
    assert sorted(set(named) - set(there)) == []
    assert len(there) > 5


def test_the_page_on_design_names_every_place_of_the_top_floor():
    rows = re.findall(r"^\| (`[^|]+) \|", (PACKAGE / "DESIGN.md").read_text(), re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([\w./]+)`", row)}
    places = {f"{path.name}/" for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    places |= {path.name for path in PACKAGE.glob("*.py") if not path.name.startswith("__")}
    assert places <= listed


def test_the_front_page_is_one():
    assert len((ROOT / "README.md").read_text().splitlines()) <= FRONT_PAGE_LINES


def test_the_tests_mirror_the_package():
    folders = {path.parent.relative_to(PACKAGE) for path in MODULES}
    assert [str(folder) for folder in folders if not (ROOT / "tests" / folder).is_dir()] == []


def test_every_kernel_has_a_test_module_of_its_own():
    places = ("kernels/**/*.py", "methods/*/kernels.py", "methods/*/kernels/*.py")
    names = {path.relative_to(PACKAGE) for place in places for path in PACKAGE.glob(place)}
    tests = ROOT / "tests"
    untested = {
        str(name)
        for name in names
        if name.name != "__init__.py" and not (tests / name.parent / f"test_{name.name}").exists()
    }
    assert not untested


def test_sections_of_docstrings_are_those_of_numpydoc():
    """The linter knows sections by their underlines alone."""
    others = re.compile(r"^ *(Args:|Returns:|Raises:|Attributes:|Parameters: )", re.MULTILINE)
    found = {str(path.relative_to(PACKAGE)): others.findall(path.read_text()) for path in MODULES}
    assert {name: sections for name, sections in found.items() if sections} == {}
