"""Docstrings as readers of a terminal see them, made into reStructuredText: absolute values and Markdown's tables."""

from typing import Any


def as_restructured_text(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Change the lines of a docstring in place: Sphinx calls it for every one.

    Bars stand for absolute values, and open a substitution in reStructuredText; lines of bars are a table.
    """
    converted: list[str] = []
    table: list[str] = []
    for line in [*lines, ""]:
        if line.lstrip().startswith("| "):
            table.append(line)
            continue
        converted += as_list_table(table)
        table = []
        converted.append(line if line.lstrip().startswith((">>>", "...")) else line.replace("|", r"\|"))
    lines[:] = converted[:-1]


def as_list_table(rows: list[str]) -> list[str]:
    """Return the rows of a table in Markdown, the second of which parts head and body, as a `list-table`."""
    if not rows:
        return []
    indent = rows[0][: len(rows[0]) - len(rows[0].lstrip())]
    cells = [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in (rows[0], *rows[2:])]
    body = [f"{'*' if column == 0 else ' '} - {cell}" for row in cells for column, cell in enumerate(row)]
    return [
        f"{indent}{line}" for line in ("", ".. list-table::", "   :header-rows: 1", "", *(f"   {x}" for x in body), "")
    ]
