"""Which tests are to notice the change of a line, the quickest first."""

import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from changes import REPOSITORY, python_files

TESTS = REPOSITORY / "tests"
COMPILED = "scalemani/kernels/"
FIRST_OF_A_FILE = 5  # tests that are tried before those of other files


def mirror(file: str) -> str | None:
    """Return the file of tests of a module, or the folder where the module is a folder's own."""
    inside = Path(file).relative_to("scalemani")
    place = Path("tests") / (inside.parent if inside.stem == "__init__" else inside.parent / f"test_{inside.stem}.py")
    return str(place) if (REPOSITORY / place).exists() else None


def tests_by_name(file: str) -> list[str]:
    """Return the tests of a module where no record tells more: those of its name, of its method, and that import it."""
    own, parts = mirror(file), Path(file).with_suffix("").parts
    names = [part for part in parts if part != "__init__"]
    module, folder, last = (re.escape(".".join(some)) for some in (names, names[:-1], names[-1:]))
    imports = re.compile(rf"^\s*from ({module} import|{folder} import .*\b{last}\b)", re.MULTILINE)
    paths = sorted(TESTS.rglob("test_*.py"))
    importing = [str(path.relative_to(REPOSITORY)) for path in paths if imports.search(path.read_text())]
    method = [str(Path("tests", *parts[1:3]))] if parts[1] == "methods" and len(parts) > 3 else []
    found = [*([own] if own else []), *importing, *method]
    return [place for place in dict.fromkeys(found) if (REPOSITORY / place).exists()]


def importers(files: set[str]) -> set[str]:
    """Return the files of the package that import any of some modules."""
    names = "|".join(re.escape(".".join(Path(file).with_suffix("").parts)).replace(r"\.__init__", "") for file in files)
    imports = re.compile(rf"^\s*from ({names}) import", re.MULTILINE)
    paths = python_files(REPOSITORY / "scalemani")
    return {str(path.relative_to(REPOSITORY)) for path in paths if imports.search(path.read_text())}


class Record:
    """What `reached.py` has recorded: seconds of tests and of fixtures, and who ran which lines."""

    def __init__(self, path: Path | None) -> None:
        self.seconds: dict[str, float] = {}
        self.fixtures: dict[str, float] = {}
        self.by_line: dict[tuple[str, int], set[str]] = {}
        self.by_file: dict[str, set[str]] = {}
        self.shared: set[tuple[str, int, str]] = set()
        for row in map(json.loads, path.read_text().splitlines() if path else ()):
            self.add(row["test"], row["phase"] == "setup", row["seconds"], row["lines"])

    def add(self, test: str, is_setup: bool, seconds: float, lines: dict[str, list[int]]) -> None:
        """Take in a phase of a test."""
        place = test.partition("::")[0]
        if is_setup:
            self.fixtures[place] = self.fixtures.get(place, 0.0) + seconds
        else:
            self.seconds[test] = seconds
        for file, numbers in lines.items():
            self.by_file.setdefault(sys.intern(file), set()).add(test)
            for number in numbers:
                self.by_line.setdefault((file, number), set()).add(test)
                if is_setup:
                    self.shared.add((file, number, place))

    def tests_of(self, file: str, lines: Iterable[int]) -> set[str]:
        """Return the tests that ran any of some lines, and all of a file whose fixtures did."""
        found: set[str] = set()
        for line in lines:
            found |= self.by_line.get((file, line), set())
            found |= {test for test in self.seconds if (file, line, test.partition("::")[0]) in self.shared}
        return found

    def tests_near(self, file: str) -> set[str]:
        """Return the tests that ran any line of a file or, where none did, of those that import it, and so on."""
        files, seen = {file}, set[str]()
        while files and not (found := set().union(*(self.by_file.get(name, set()) for name in files))):
            seen |= files
            files = importers(files) - seen
        return found if files else set()

    def in_turn(self, tests: Iterable[str], first: str | None, seconds: float) -> list[str]:
        """Return tests in the order to run them: those of a file `first`, then some of each file, then the others.

        Tests of a file stand together, so that they share their fixtures. What would take more than some seconds in
        all is left out.
        """
        by_place: dict[str, list[str]] = {}
        for test in sorted(tests, key=lambda test: (self.seconds.get(test, 0.0), test)):
            by_place.setdefault(test.partition("::")[0], []).append(test)
        parts = sorted(self.parts(by_place, first), key=lambda part: part[:2])
        chosen: dict[str, None] = {}
        for _, cost, part in parts:
            if cost <= seconds:
                seconds -= cost
                chosen |= dict.fromkeys(part)
        return list(chosen)

    def parts(self, by_place: dict[str, list[str]], first: str | None) -> Iterator[tuple[int, float, list[str]]]:
        """Yield the turn, the seconds and the names of tests that are run together."""
        for place, tests in by_place.items():
            for turn, part in ((1, tests[:FIRST_OF_A_FILE]), (2, tests[FIRST_OF_A_FILE:])):
                cost = self.fixtures.get(place, 0.0) + sum(self.seconds.get(test, 0.0) for test in part)
                if part:
                    yield 0 if first and place.startswith(first) else turn, cost, part


def lines_with(file: str, line: int) -> range:
    """Return the lines of which any is run where a line acts: its statement, or the body of the function that it heads.

    No lines where it acts when the module is imported.
    """
    found: tuple[ast.stmt | None, bool] = (None, False)
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse((REPOSITORY / file).read_text()), False)]
    while waiting:
        node, inside = waiting.pop()
        if isinstance(node, ast.stmt):
            if not node.lineno <= line <= (node.end_lineno or 0):
                continue
            found = (node, inside)
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
    statement, inside = found
    body = getattr(statement, "body", None)
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return range(statement.body[0].lineno, (statement.end_lineno or 0) + 1)
    if statement is None or not inside:
        return range(0)
    return range(statement.lineno, body[0].lineno if isinstance(body, list) else (statement.end_lineno or 0) + 1)


def tests_for(record: Record, file: str, line: int, seconds: float) -> list[str]:
    """Return the tests that are to notice a change of a line.

    Those that run it, those of its module first. No record knows of lines inside of compiled functions and of those
    that are run when a module is imported: there, those that run anything of its file or of files that import it.
    Where no test of the module is recorded, those that its name and imports tell come first.
    """
    own, lines = mirror(file), lines_with(file, line)
    tests = record.tests_of(file, lines)
    if not tests and (not lines or file.startswith(COMPILED)):
        tests = record.tests_near(file)
    recorded = bool(tests) if own is None else any(test.startswith(own) for test in record.seconds)
    return [*([] if recorded else tests_by_name(file)), *record.in_turn(tests, own, seconds)]
