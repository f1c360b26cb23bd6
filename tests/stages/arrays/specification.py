"""The tables of `FORMAT.md`, made from the catalogue.

`python -m tests.stages.arrays.specification` writes them anew into the file, between its two markers.
"""

from collections.abc import Iterable
from pathlib import Path

from scalemani.config.methods import provided
from scalemani.config.routes import PACKAGES
from scalemani.engine.reading import StoredStage
from scalemani.stages.arrays.catalogue import DIMENSIONS, stored_stages
from scalemani.store.schema import ArrayDescription

FORMAT_FILE = Path(__file__).parents[3] / "scalemani" / "FORMAT.md"
FIRST_MARKER = "<!-- tables: python -m tests.stages.arrays.specification writes them -->"
LAST_MARKER = "<!-- end of tables -->"


def dimension_meanings() -> dict[str, str]:
    """Return what the dimensions of all stages count."""
    own = (provided(package, stage, "DIMENSIONS") or {} for stage, package in PACKAGES.items())
    return {**DIMENSIONS, **{name: meaning for dimensions in own for name, meaning in dimensions.items()}}


def format_tables() -> str:
    """Return a table of dimensions and one table of arrays a stage, in Markdown."""
    dims = table(("dimension", "what it counts"), dimension_meanings().items())
    return "\n\n".join(["### Dimensions", dims, *map(stage_section, stored_stages())])


def stage_section(stored: type[StoredStage]) -> str:
    """Return the section of a stage: its first sentence and its arrays."""
    header = ("path", "kind", "dimensions", "dtype", "units", "meaning")
    says = (stored.__doc__ or "").splitlines()[0]
    return f"### {stored.STAGE}\n\n{says}\n\n{table(header, map(array_row, stored.ARRAYS))}"


def array_row(described: ArrayDescription) -> tuple[str, ...]:
    """Return the cells of an array in the table of its stage."""
    return (
        ", ".join(f"`{path}`" for path in described.paths),
        described.kind,
        ", ".join(described.dims) or "none",
        described.dtype if isinstance(described.dtype, str) else described.dtype.text,
        described.units,
        described.meaning,
    )


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    cells = list(header)
    return "\n".join(map(table_line, [cells, ["---"] * len(cells), *rows]))


def table_line(cells: Iterable[str]) -> str:
    """Return one line of a table."""
    return f"| {' | '.join(cells)} |"


def with_tables(text: str) -> str:
    """Return the text of `FORMAT.md` with the tables that the catalogue gives between its markers.

    Raises
    ------
    ValueError
        Where a marker is missing.
    """
    before, first, rest = text.partition(FIRST_MARKER)
    _, last, after = rest.partition(LAST_MARKER)
    if not first or not last:
        raise ValueError(f"{FORMAT_FILE} needs the lines {FIRST_MARKER!r} and {LAST_MARKER!r} around its tables")
    return f"{before}{first}\n\n{format_tables()}\n\n{last}{after}"


if __name__ == "__main__":
    FORMAT_FILE.write_text(with_tables(FORMAT_FILE.read_text()))
