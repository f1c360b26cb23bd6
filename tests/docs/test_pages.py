"""The pages of the site: their code runs as written, and what they lead to is there."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import pytest

DOCS = Path(__file__).parents[2] / "pipelines" / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "built" not in page.parts)
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)  # others are shown, not run
LINK = re.compile(r"\]\(([^)#\s]+\.(?:md|rst|png))\)")


def blocks(page: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the blocks of code of a page: the line before it, whether it is Python or commands, and the code."""
    text = page.read_text()
    for found in BLOCK.finditer(text):
        yield text[: found.start()].count("\n") + 1, found[1], found[2]


def commands(code: str) -> list[list[str]]:
    """Return the arguments of every command of a block, one a line unless a backslash ends it."""
    lines = code.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page))], ids=lambda page: page.stem)
def test_the_code_of_a_page_runs_as_written(page, scalemani, tmp_path, monkeypatch):
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": page.stem}
    for line, kind, code in blocks(page):
        if kind == "python":
            exec(compile("\n" * line + code, page, "exec"), namespace)
            continue
        for program, *arguments in commands(code):
            assert program == "scalemani", f"{page}:{line}: what else is run is shown as console"
            status, _, told = scalemani(*arguments)
            assert status == 0, f"{page}:{line}: scalemani {shlex.join(arguments)}: {told}"
