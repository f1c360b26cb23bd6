"""Core, which is all of scalemani but methods/, names hardly any choice or parameter that a method adds.

A string of its code, which no docstring is, counts by the line that it begins in: where it has a choice of a method as
a word, or a parameter of a method by its name of --set. So does each line that has a constant with such a value.
Attributes need no count: a type checker finds no parameter of a method in a table of core.
"""

import ast
import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import scalemani
from scalemani.config.methods import (
    FieldsExtension,
    LandmarkExtension,
    MethodRoute,
    OrderExtension,
    PixelAffinitiesExtension,
    PixelsExtension,
    ReductionExtension,
    RepulsionExtension,
    SolverExtension,
    TableExtension,
    extensions,
)
from scalemani.config.params import Parameters, by_name, names_of_parameters
from scalemani.config.params.conditions import OneOf
from scalemani.config.params.effects import conditions

PACKAGE = Path(scalemani.__file__).parent
MOST_LINES = 19
CHOICES = (
    *(MethodRoute, LandmarkExtension, RepulsionExtension, OrderExtension),
    *(PixelsExtension, PixelAffinitiesExtension, SolverExtension, ReductionExtension),
)
SHARED = {"pca", "random", "path"}  # starts of core have the first two names, files the third
WORDS_OF_ENGLISH = {"ensemble", "raster", "window"}  # are choices where they are all of a string, or stand behind "="
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def added_parameters() -> set[str]:
    """Return the parameters that methods add, by their names of --set."""
    tables = [(one.stage, one.load()) for one in extensions(FieldsExtension).values()]
    tables += [(name, one.load()) for name, one in extensions(TableExtension).items()]
    return {f"{stage}.{field.name}" for stage, table in tables for field in dataclasses.fields(table)}


def added_names() -> re.Pattern[str]:
    """Return what finds a choice or a parameter of a method in a string."""
    choices = {name for kind in CHOICES for name in extensions(kind)} - SHARED
    parameters = {form for name in added_parameters() for form in (name, name.replace(".", "__"))}
    words = "|".join(map(re.escape, {*choices, *parameters} - WORDS_OF_ENGLISH))
    english = "|".join(WORDS_OF_ENGLISH)
    return re.compile(rf"(?<![\w.+-])(?:{words})(?![\w+-])|=(?:{english})(?![\w+-])|^(?:{english})$")


def strings_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the strings of a module's code and the names of its arguments, with their lines."""
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, DOCUMENTED)]
    docstrings = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value
        elif isinstance(node, ast.keyword) and node.arg is not None and "__" in node.arg:
            yield node.lineno, node.arg


def constants_with(tree: ast.Module, names: re.Pattern[str]) -> Iterator[str]:
    """Yield the constants of a module whose value is a string with a name."""
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            pairs = zip(target.elts, node.value.elts, strict=False) if several else [(target, node.value)]
            for constant, value in pairs:
                if (
                    isinstance(constant, ast.Name)
                    and isinstance(value, ast.Constant)
                    and names.search(str(value.value))
                ):
                    yield constant.id


def lines_with(sources: Mapping[str, str], names: re.Pattern[str]) -> list[str]:
    """Return the lines of sources that have a name, or a constant for one."""
    trees = {place: ast.parse(text) for place, text in sources.items()}
    constants = {name for tree in trees.values() for name in constants_with(tree, names)}
    lines = {
        (place, node.lineno)
        for place, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute | ast.alias)
        and {getattr(node, part, "") for part in ("id", "attr", "name")} & constants
    }
    lines |= {(place, line) for place, tree in trees.items() for line, text in strings_of(tree) if names.search(text)}
    return [f"{place}:{line}: {sources[place].splitlines()[line - 1].strip()}" for place, line in sorted(lines)]


def test_core_hardly_names_choices_and_parameters_of_methods():
    modules = [path for path in sorted(PACKAGE.rglob("*.py")) if "methods" not in path.relative_to(PACKAGE).parts]
    lines = lines_with({str(path.relative_to(PACKAGE)): path.read_text() for path in modules}, added_names())
    assert len(lines) <= MOST_LINES, "\n".join(lines)


def test_lines_with_names_are_found():
    source = '''
"""A docstring with landmarks.sigma and dpp."""
METHOD, OTHER = "window", "exact"
AMONG = ("random", "gp-active")

def plain(sliding_window, dpp):
    """Return neighbors.window."""
    return check(landmarks__eta=dpp) or METHOD

SENTENCE = "within a window of pixels, or an ensemble"
HELP = "take neighbors.method=window"
PARAMETER = "raise landmark_graph.n_neighbors"
'''
    found = [int(line.split(":")[1]) for line in lines_with({"core": source}, added_names())]
    assert found == [3, 4, 8, 11, 12]


def test_parameters_that_act_by_choices_of_methods_alone_are_theirs():
    choices = {name for kind in CHOICES for name in extensions(kind)}
    by_choice = {
        name
        for name, found in conditions().items()
        if any(isinstance(one.what, OneOf) and set(one.what.values) <= choices for one in found)
    }
    assert len(by_choice) >= 14
    assert by_choice <= added_parameters() <= set(names_of_parameters())


def test_no_table_of_core_declares_a_parameter_of_a_method():
    params, added = Parameters(), added_parameters()
    for name in by_name(params.as_dict()):
        stage, _, field = name.partition(".")
        classes = type(getattr(params, stage)).__mro__ if field else ()
        declaring = {kind.__module__ for kind in classes if field in vars(kind).get("__annotations__", ())}
        assert all(module.startswith("scalemani.methods.") == (name in added) for module in declaring), name
