"""What every message says, read in the sources: nothing is raised without telling what is wrong and what is right."""

import ast
import re
import time
from pathlib import Path

import scalemani
from scalemani import errors

SOURCES = Path(scalemani.__file__).parent
KINDS = {
    name
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.ScalemaniError) and kind is not errors.ScalemaniError
}
# What follows a colon or semicolon is what to do, or the reason; else the message says what is allowed.
ALLOWED = re.compile(
    r"[:;] |\b(must|takes?|needs?|required|at least|at most|go together|goes? with|is written|allowed)\b"
)
SOME = 400  # messages at least that are literals: fewer, and this test reads something else than the sources


def message_of(node):
    """Return the text of a message with braces for its values; None where it is made elsewhere."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.BinOp):
        parts = [message_of(side) for side in (node.left, node.right)]
        return "".join("{}" if part is None else part for part in parts)
    return None


def calls_and_raises():
    """Yield the place of every call and every `raise` in the sources, and its node."""
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call | ast.Raise):
                yield f"{path.relative_to(SOURCES)}:{node.lineno}", node


def test_every_error_has_a_message_that_says_what_is_allowed_or_what_to_do():
    """One test for all of them: to read the sources takes seconds."""
    nodes = list(calls_and_raises())
    made = {
        place: node.args[0] if node.args else None
        for place, node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS
    }
    assert [place for place, message in made.items() if message is None] == []
    literals = {place: text for place, message in made.items() if (text := message_of(message))}
    assert len(literals) >= SOME
    assert {place: text for place, text in literals.items() if not ALLOWED.search(text)} == {}
    raised = [(place, node.exc) for place, node in nodes if isinstance(node, ast.Raise)]
    assert [place for place, error in raised if isinstance(error, ast.Name) and error.id in KINDS] == []


def test_words_of_any_length_are_searched_for_secrets_in_time_by_their_length():
    began = time.process_time()
    word = 100_000 * "x"
    assert errors.without_secrets(f"unknown method {word}", [word]) == f"unknown method {word}"
    secret = "s3://key:word@bucket/points.zarr?token=value"
    assert errors.without_secrets(f"{word}{secret}", [secret]) == f"{word}s3://bucket/points.zarr"
    assert time.process_time() - began < 3
