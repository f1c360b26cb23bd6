"""The code of pages: blocks of Python and commands, in order, and the pictures that they draw, which pages show."""

import contextlib
import hashlib
import io
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parent
# A block of text right below a block of Python is what this prints; other kinds of blocks are shown alone.
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
INCLUDE = re.compile(r'^```\{include\} (\S+)\n:start-after: "(.*)"\n:end-before: "(.*)"\n```$', re.MULTILINE)
PICTURE = re.compile(r"!\[[^\]]*\]\([./]*built/pages/([\w-]+)/([\w.-]+)\)")


class Block(NamedTuple):
    """A block of code: the number of the line before it, python or bash, the code, and what it should print."""

    line: int
    kind: str
    code: str
    printed: str | None


def text_of(page: Path) -> str:
    """Return the text of a page, with what it includes of others."""

    def included(found: re.Match[str]) -> str:
        other, first, last = found.groups()
        return (page.parent / other).read_text().partition(first)[2].partition(last)[0]

    return INCLUDE.sub(included, page.read_text())


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of code of a page."""
    text = text_of(page)
    for found in BLOCK.finditer(text):
        yield Block(text[: found.start()].count("\n") + 1, *found.groups())


def commands(code: str) -> list[list[str]]:
    """Return the arguments of every command of a block, one a line unless a backslash ends it."""
    lines = code.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def pictures(page: Path) -> dict[str, str]:
    """Return the pictures of a page that its code draws, each with the name of the page that it is said to be of."""
    return {picture: owner for owner, picture in PICTURE.findall(page.read_text())}


def run(page: Path, command: Callable[[list[str]], None]) -> None:
    """Run the code of a page in the current folder; `command` runs the arguments of one `scalemani`.

    Raises
    ------
    ValueError
        Where a block of commands has another program, or a block of Python prints other text than the page shows.
    """
    namespace = {"__name__": page.stem}
    for block in blocks(page):
        if block.kind == "bash":
            for program, *arguments in commands(block.code):
                if program != "scalemani":
                    raise ValueError(f"{page}:{block.line}: {program} is no command of ours: show it as console")
                command(arguments)
            continue
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile("\n" * block.line + block.code, page, "exec"), namespace)  # noqa: S102 - pages of ours
        if block.printed is not None and output.getvalue().strip() != block.printed.strip():
            raise ValueError(f"{page}:{block.line} prints\n{output.getvalue()}and the page shows\n{block.printed}")


def run_command(arguments: list[str]) -> None:
    """Run one `scalemani` in a process of its own, and end with what it says where it fails."""
    ended = subprocess.run([sys.executable, "-m", "scalemani", *arguments], capture_output=True, text=True)
    if ended.returncode:
        raise ValueError(f"scalemani {shlex.join(arguments)}: {ended.stderr}")


def write(built: Path) -> None:
    """Draw the pictures of pages into `built/pages`, where a page is not that of the last build."""
    for page in sorted(page for page in DOCS.rglob("*.md") if "built" not in page.parts):
        folder, wanted = built / "pages" / page.stem, pictures(page)
        digest = hashlib.sha256(text_of(page).encode()).hexdigest()
        note = folder / "page.sha256"
        if not wanted or (note.exists() and note.read_text() == digest):
            continue
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
            run(page, run_command)
            for picture in wanted:
                shutil.copy(picture, folder)
        note.write_text(digest)
