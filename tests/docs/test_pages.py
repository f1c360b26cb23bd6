"""The pages of the site: their code runs as written, and messages that they explain are those of the package."""

import ast
import contextlib
import importlib
import re
import shlex
import sys
from pathlib import Path

import matplotlib
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "pipelines" / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "built" not in page.parts)
sys.path.insert(0, str(DOCS))
try:
    page_code = importlib.import_module("page_code")
finally:
    sys.path.remove(str(DOCS))
SAVED = re.compile(r'scalemani plot \S+ ([\w-]+\.png)|(?:savefig\(|path=)"([\w-]+\.png)"')
WITH_CODE = [page for page in PAGES if any(page_code.blocks(page))]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs_as_written_and_draws_its_pictures(page, scalemani, tmp_path, monkeypatch):
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)

    def command(arguments):
        status, _, told = scalemani(*arguments)
        assert status == 0, f"{page}: scalemani {shlex.join(arguments)}: {told}"

    page_code.run(page, command)
    for picture, owner in page_code.pictures(page).items():
        assert owner == page.stem
        assert Image.open(picture).size > (100, 100)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("```python\nprint(1 + 1)\n```\n\n```text\n2\n```\n", None),
        ("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n", r"a\.md:1 prints\n2\n.*shows\n3"),
        ("\n```bash\nscalemani info run # so\nls\n```\n", r"a\.md:2: ls is no command of ours"),
    ],
)
def test_what_a_page_prints_is_what_it_shows(tmp_path, text, told):
    ran = []
    (tmp_path / "a.md").write_text(text)
    with contextlib.nullcontext() if told is None else pytest.raises(ValueError, match=told):
        page_code.run(tmp_path / "a.md", ran.append)
    assert ran == ([["info", "run"]] if "bash" in text else [])


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_a_page_shows_the_pictures_that_its_code_writes(page):
    saved = {name for block in page_code.blocks(page) for found in SAVED.findall(block.code) for name in found if name}
    assert saved <= set(page_code.pictures(page))


def test_names_of_pages_are_distinct():
    """Folders of pictures are called after them."""
    assert len({page.stem for page in PAGES} - {"index"}) == len([page for page in PAGES if page.stem != "index"])


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
