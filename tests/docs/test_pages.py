"""The pages of the site: their code runs as written, and messages that they explain are those of the package."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "pipelines" / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "built" not in page.parts)
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)  # others are shown, not run


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


def messages() -> str:
    """Return all texts of the package, a line each, with an ellipsis for what is put into them."""
    found = []
    for path in (ROOT / "scalemani").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(text.replace("\n", " ") for text in found)


def test_errors_that_a_page_explains_are_those_that_are_raised():
    texts = messages()
    rows = re.findall(r"^\| (.*?) \|", (DOCS / "errors.md").read_text(), re.MULTILINE)[2:]
    assert len(rows) > 10
    for said in rows:
        for part in filter(None, (part.strip(" ;:,") for part in said.split("..."))):
            words = "[ …]+".join(map(re.escape, part.split()))
            assert re.search(words, texts), f"no message has {part!r}"


def test_a_page_that_includes_part_of_another_finds_where_it_begins_and_ends():
    included = re.compile(r'^```\{include\} (\S+)\n:start-after: "(.*)"\n:end-before: "(.*)"$', re.MULTILINE)
    found = [(page, *part) for page in PAGES for part in included.findall(page.read_text())]
    assert len(found) > 3
    for page, target, first, last in found:
        text = (page.parent / target).read_text()
        assert 0 <= text.find(first) < text.find(last), f"{page.name}: {target} has no {first!r} before {last!r}"
