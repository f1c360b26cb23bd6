"""Do the tests notice? Draw lines of the package, change one thing on each, run the tests that mirror the file.

    python tests/mutations.py --seed 0 --lines 20 scalemani/kernels/rows scalemani/kernels/graph

A line is killed when a test fails or does not end, and survives when all pass. A survivor is a promise that no test
makes, or a line that changes no promise (the size of a block, say): look at each. The tests of scalemani/a/b.py are
tests/a/test_b.py, and for the wiring those that go through whole runs (`WHOLE_RUNS`); `--tests` adds others. All
happens in a copy of the repository.

Compiled kernels are kept between runs, but for those that the changed file may be compiled into: Numba does not notice
changes in the functions that a function calls.
"""

import argparse
import ast
import contextlib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent
COPIED = ("scalemani", "tests", "pyproject.toml", "pipelines", "README.md")
PATIENCE = 10  # a mutant may take so many times as long as the file as it is
MOST_MEMORY = 8 * 2**30  # bytes of addresses: a wrong size must not take the machine down
# Tests of the places that hold no computation of their own, the quickest first.
WHOLE_RUNS = {
    "stages": ["tests/stages", "tests/runs/test_spectral_route.py", "tests/estimators/test_spectral_clustering.py"],
    "embeddings": ["tests/embeddings", "tests/stages/layout"],
    "new_points": ["tests/new_points", "tests/estimators/test_laplacian_eigenmaps.py", "tests/stages/layout"],
    "estimators": ["tests/estimators", "tests/params"],
    "cli": ["tests/cli"],
}
SWAPPED = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}


class Mutation(NamedTuple):
    """A line of a file (counted from 1), and what it becomes."""

    path: Path
    line: int
    changed: str


class Span(NamedTuple):
    """Bytes [start, stop) of a line, and what is put there."""

    line: int
    start: int
    stop: int
    text: str


def between(left: ast.expr, right: ast.expr, operator: ast.AST, lines: list[bytes]) -> Iterator[Span]:
    """Yield the swap of the operator between two operands that stand on one line."""
    words = SWAPPED.get(type(operator))
    if words is None or left.end_lineno != right.lineno or left.end_lineno is None or left.end_col_offset is None:
        return
    start, stop = left.end_col_offset, right.col_offset
    gap = lines[left.end_lineno - 1][start:stop].decode()
    changed = gap.replace(words[0], words[1], 1)
    if changed != gap:
        yield Span(left.end_lineno, start, stop, changed)


def replaced(node: ast.expr, text: str) -> Iterator[Span]:
    """Yield the replacement of an expression that stands on one line."""
    if node.lineno == node.end_lineno and node.end_col_offset is not None:
        yield Span(node.lineno, node.col_offset, node.end_col_offset, text)


def spans(node: ast.AST, lines: list[bytes]) -> Iterator[Span]:
    """Yield the changes that begin at a node of the syntax tree."""
    match node:
        case ast.BinOp(left=left, op=operator, right=right):
            yield from between(left, right, operator, lines)
        case ast.BoolOp(values=[left, right, *_], op=operator):
            yield from between(left, right, operator, lines)
        case ast.Compare(left=left, ops=[operator, *_], comparators=[right, *_]):
            yield from between(left, right, operator, lines)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from replaced(node, f"({ast.unparse(operand)})")
        case ast.Constant(value=value) if isinstance(value, int | float) and not isinstance(value, bool):
            yield from replaced(node, f"({ast.unparse(node)} + 1)")
        case ast.Slice(lower=ast.expr() as bound) | ast.Slice(lower=None, upper=ast.expr() as bound):
            yield from replaced(bound, f"{ast.unparse(bound)} + 1")
        case ast.Return(value=ast.Tuple(elts=[first, second, *_]) as value):
            swapped = ast.Tuple([second, first, *value.elts[2:]], ast.Load())
            yield from replaced(value, ast.unparse(swapped))


def left_alone(tree: ast.AST) -> set[int]:
    """Return the identities of nodes that are left alone: annotations, which do nothing, and the axis of a shape."""
    roots: list[ast.AST | None] = []
    for node in ast.walk(tree):
        match node:
            case ast.arg(annotation=root) | ast.AnnAssign(annotation=root) | ast.FunctionDef(returns=root):
                roots.append(root)
            case ast.Subscript(value=ast.Attribute(attr="shape"), slice=root):
                roots.append(root)
    return {id(node) for root in roots if root is not None for node in ast.walk(root)}


def mutations_of(path: Path) -> dict[int, list[Mutation]]:
    """Return all mutations of a file by line."""
    source = path.read_bytes()
    tree, lines = ast.parse(source), source.split(b"\n")
    skipped = left_alone(tree)
    by_line: dict[int, list[Mutation]] = {}
    for node in ast.walk(tree):
        for span in spans(node, lines) if id(node) not in skipped else ():
            line = lines[span.line - 1]
            changed = line[: span.start] + span.text.encode() + line[span.stop :]
            by_line.setdefault(span.line, []).append(Mutation(path, span.line, changed.decode()))
    return by_line


def drawn_mutations(folders: Iterable[str], n_lines: int, seed: int) -> list[Mutation]:
    """Return one mutation of each of `n_lines` lines, drawn uniformly among all lines that can be changed."""
    files = sorted({file for folder in folders for file in python_files(REPOSITORY / folder)})
    choices = [options for file in files for _, options in sorted(mutations_of(file).items())]
    draw = random.Random(seed)
    return [draw.choice(options) for options in draw.sample(choices, min(n_lines, len(choices)))]


def python_files(place: Path) -> list[Path]:
    """Return a file itself, or all of a folder and those within."""
    return [place] if place.suffix == ".py" else sorted(place.rglob("*.py"))


def mirror(path: Path) -> Path:
    """Return the file of tests of a module, relative to the repository."""
    inside = path.relative_to(REPOSITORY / "scalemani")
    return Path("tests") / inside.parent / f"test_{inside.stem}.py"


def importers(changed: Path) -> set[str]:
    """Return the names of all modules whose compiled functions may hold functions of a file, its own among them."""
    imported: dict[str, set[str]] = {}
    for path in python_files(REPOSITORY / "scalemani"):
        imported[module_name(path)] = set(re.findall(r"^\s*from (scalemani[\w.]*) import", path.read_text(), re.M))
    stale = {module_name(changed)}
    while more := {name for name, sources in imported.items() if sources & stale} - stale:
        stale |= more
    return stale


def module_name(path: Path) -> str:
    """Return the dotted name of a file of the package."""
    return ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)


def limit_memory() -> None:
    """Bound the memory of the process that this is called in."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


class Trial:
    """A copy of the repository in which tests run."""

    def __init__(self, folder: Path, tests: list[str]) -> None:
        self.folder, self.tests, self.seconds = folder, tests, dict[tuple[str, ...], float]()
        for name in COPIED:
            source = REPOSITORY / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
            else:
                shutil.copy(source, folder / name)

    def passes(self, path: Path, seconds: float | None = None) -> bool:
        """Return whether the tests of a file pass within some seconds."""
        here = {"PYTHONPATH": str(self.folder), "NUMBA_CACHE_DIR": str(self.folder / "compiled")}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        process = subprocess.Popen(
            [*command, *self.tests_of(path)],
            cwd=self.folder,
            env={**os.environ, **here},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=limit_memory,
        )
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what a test has started goes too
            process.wait()

    def tests_of(self, path: Path) -> list[str]:
        """Return the files of tests that a change of a file is to be noticed by."""
        inside = mirror(path)
        wanted = [str(inside), *WHOLE_RUNS.get(inside.parts[1], []), *self.tests]
        return list(dict.fromkeys(name for name in wanted if (self.folder / name).exists()))

    def kills(self, mutation: Mutation) -> bool:
        """Return whether the tests notice a mutation."""
        path = mutation.path
        seconds = self.seconds_of(path)
        copy = self.folder / path.relative_to(REPOSITORY)
        whole = copy.read_text()
        lines = whole.split("\n")
        lines[mutation.line - 1] = mutation.changed
        self.forget_compiled(path)
        copy.write_text("\n".join(lines))
        try:
            return not self.passes(path, PATIENCE * seconds)
        finally:
            copy.write_text(whole)
            self.forget_compiled(path)

    def seconds_of(self, path: Path) -> float:
        """Return the seconds that the tests of a file take without a mutation."""
        tests = tuple(self.tests_of(path))
        if tests not in self.seconds:
            begin = time.monotonic()
            if not self.passes(path):
                raise SystemExit(f"the tests of {path} fail without a mutation: {tests}")
            self.seconds[tests] = time.monotonic() - begin
        return self.seconds[tests]

    def forget_compiled(self, path: Path) -> None:
        """Remove what was compiled of a file and of all that may hold functions of it."""
        for name in importers(path):
            for compiled in self.folder.glob(f"compiled/*/{name.rpartition('.')[2]}.*"):
                compiled.unlink()


def main() -> None:
    """Draw mutations, try each, print which survive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", help="folders or files of scalemani/")
    parser.add_argument("--lines", type=int, default=20, help="how many lines to change, one at a time")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--tests", nargs="*", default=[], help="further files of tests for every line")
    asked = parser.parse_args()
    survived, without = 0, 0
    mutations = drawn_mutations(asked.folders, asked.lines, asked.seed)
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder), asked.tests)
        for mutation in mutations:
            place = f"{mutation.path.relative_to(REPOSITORY)}:{mutation.line}"
            if not trial.tests_of(mutation.path):
                without += 1
                print(f"no tests  {place}", flush=True)
                continue
            killed = trial.kills(mutation)
            survived += not killed
            print(f"{'killed  ' if killed else 'SURVIVED'}  {place}  {mutation.changed.strip()}", flush=True)
    print(f"{len(mutations) - survived - without} of {len(mutations)} killed, {survived} survived, {without} untested")


if __name__ == "__main__":
    main()
