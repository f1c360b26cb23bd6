"""The page on reliability names tests and scripts that there are, and leaves no item out."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent
PAGE = (TESTS / "RELIABILITY.md").read_text()
ITEMS = {"R": 50, "S": 25, "P": 48}
N_INPUTS = 111
STATES = ("shown", "part", "script", "not shown", "does not apply")
ROWS = [tuple(cell.strip() for cell in row) for row in re.findall(r"^\| (.+?) \| (.+?) \|(.*?)\| (.+) \|$", PAGE, re.M)]
LINES = [row for row in ROWS if row[0] not in ("item", "items", "---")]


def numbers(text, letter):
    """Return the numbers of items such as "P5-P10, P12"."""
    found = set()
    for part in text.split(", "):
        ends = [int(end.removeprefix(letter)) for end in part.split("-")]
        found |= set(range(ends[0], ends[-1] + 1))
    return found


@pytest.mark.parametrize("letter", ITEMS)
def test_every_item_has_one_line(letter):
    listed = [number for row in LINES if row[0].startswith(letter) for number in sorted(numbers(row[0], letter))]
    assert sorted(listed) == list(range(1, ITEMS[letter] + 1))


def test_every_bad_input_has_one_line():
    listed = [number for row in LINES if row[0][0].isdigit() for number in sorted(numbers(row[0], ""))]
    assert sorted(listed) == list(range(1, N_INPUTS + 1))


@pytest.mark.parametrize("row", LINES, ids=lambda row: row[0])
def test_what_is_named_is_there_and_what_is_shown_names_a_test(row):
    _, _, shown_by, state = row
    assert state.startswith(STATES)
    named = re.findall(r"`([^`]+)`", shown_by)
    for name in named:
        path, _, test = name.partition("::")
        file = next((place / path for place in (TESTS, ROOT) if (place / path).is_file()), None)
        assert file is not None, name
        if test:
            defined = {node.name for node in ast.parse(file.read_text()).body if hasattr(node, "name")}
            assigned = set(re.findall(r"^(\w+) = ", file.read_text(), re.M))
            assert test in defined | assigned, name
    assert named or state.startswith(("not shown", "does not apply"))
