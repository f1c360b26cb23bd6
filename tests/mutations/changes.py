"""Lines of the package with one thing changed on each, drawn at random."""

import ast
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
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
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
SWAPPED_NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}
TELLING = {"warn", "debug", "info", "warning", "error", "print", "echo", "say", "note", "add_note"}


class Mutation(NamedTuple):
    """A line of a file (relative to the repository, counted from 1), and what it becomes."""

    file: str
    line: int
    before: str
    after: str


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


def replaced(node: ast.expr | ast.stmt, text: str) -> Iterator[Span]:
    """Yield the replacement of an expression or a statement that stands on one line."""
    if node.lineno == node.end_lineno and node.end_col_offset is not None:
        yield Span(node.lineno, node.col_offset, node.end_col_offset, text)


def operators(node: ast.AST, lines: list[bytes]) -> Iterator[Span]:
    """Yield the swap of the first operator of a node."""
    match node:
        case ast.BinOp(left=left, op=operator, right=right):
            yield from between(left, right, operator, lines)
        case ast.AugAssign(target=left, op=operator, value=right):
            yield from between(left, right, operator, lines)
        case ast.BoolOp(values=[left, right, *_], op=operator):
            yield from between(left, right, operator, lines)
        case ast.Compare(left=left, ops=[operator, *_], comparators=[right, *_]):
            yield from between(left, right, operator, lines)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from replaced(node, f"({ast.unparse(operand)})")


def conditions(node: ast.AST) -> Iterator[Span]:
    """Yield the negation of a condition that has no operator of its own."""
    match node:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) | ast.comprehension(ifs=[test, *_]):
            if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
                yield from replaced(test, f"(not {ast.unparse(test)})")


def values(node: ast.AST) -> Iterator[Span]:
    """Yield other numbers, bounds and names, returned values in another order, and calls that are left out."""
    match node:
        case ast.Constant(value=bool() as value):
            yield from replaced(node, str(not value))
        case ast.Constant(value=int() | float() as value):
            yield from replaced(node, f"({ast.unparse(node)} {'+ 1' if value + 1 != value else '* 2'})")
        case ast.Slice(lower=ast.expr() as bound) | ast.Slice(lower=None, upper=ast.expr() as bound):
            yield from replaced(bound, f"{ast.unparse(bound)} + 1")
        case ast.Return(value=ast.Tuple(elts=[first, second, *_]) as value):
            swapped = ast.Tuple([second, first, *value.elts[2:]], ast.Load())
            yield from replaced(value, ast.unparse(swapped))
        case ast.Name(id=name) if name in SWAPPED_NAMES:
            yield from replaced(node, SWAPPED_NAMES[name])
        case ast.Expr(value=ast.Call()):
            yield from replaced(node, "pass")


def is_telling(call: ast.Call) -> bool:
    """Return whether a call says something to a person and does nothing else."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in TELLING


def left_alone(tree: ast.AST) -> set[int]:
    """Return the identities of nodes that are left alone.

    Annotations (`str | None` wherever it stands) and decorators, errors and other messages, the axis of a shape, and
    what is only asked of calls with wrong arguments (`strict`) or for speed (`copy`).
    """
    roots: list[ast.AST | None] = []
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                roots += [*node.decorator_list, node.returns]
            case ast.ClassDef(decorator_list=decorators):
                roots += decorators
            case ast.arg(annotation=root) | ast.AnnAssign(annotation=root):
                roots.append(root)
            case ast.Subscript(value=ast.Attribute(attr="shape"), slice=root):
                roots.append(root)
            case ast.Raise() | ast.JoinedStr() | ast.BinOp(right=ast.Constant(value=None)):
                roots.append(node)
            case ast.keyword(arg="strict" | "copy", value=root):
                roots.append(root)
            case ast.Expr(value=ast.Call() as call) if is_telling(call):
                roots.append(node)
    return {id(node) for root in roots if root is not None for node in ast.walk(root)}


def mutations_of(path: Path) -> dict[int, list[Mutation]]:
    """Return all mutations of a file by line."""
    source, file = path.read_bytes(), str(path.relative_to(REPOSITORY))
    tree, lines = ast.parse(source), source.split(b"\n")
    skipped = left_alone(tree)
    by_line: dict[int, list[Mutation]] = {}
    for node in ast.walk(tree):
        spans = [] if id(node) in skipped else [*operators(node, lines), *conditions(node), *values(node)]
        for span in spans:
            line = lines[span.line - 1]
            changed = line[: span.start] + span.text.encode() + line[span.stop :]
            by_line.setdefault(span.line, []).append(Mutation(file, span.line, line.decode(), changed.decode()))
    return by_line


def drawn_mutations(places: Iterable[str], n_lines: int, seed: int) -> list[Mutation]:
    """Return one mutation of each of `n_lines` lines, drawn uniformly among all lines that can be changed."""
    files = sorted({file for place in places for file in python_files(REPOSITORY / place)})
    choices = [options for file in files for _, options in sorted(mutations_of(file).items())]
    draw = random.Random(seed)
    return [draw.choice(options) for options in draw.sample(choices, min(n_lines, len(choices)))]


def python_files(place: Path) -> list[Path]:
    """Return a file itself, or all of a folder and those within."""
    return [place] if place.suffix == ".py" else sorted(place.rglob("*.py"))
