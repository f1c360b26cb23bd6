"""What the site takes from the code and the tree: every public name, option, parameter and certificate, every page."""

import importlib
import re
import sys
from pathlib import Path

import pytest

import scalemani as sm
from scalemani.config.params import Parameters, names_of_parameters
from scalemani.interfaces.cli.commands import app

DOCS = Path(__file__).parents[2] / "pipelines" / "docs"
LINK = re.compile(r"\]\(([^)#\s]+\.(?:md|rst|png))\)")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of pages that are made when the site is built, without Sphinx."""
    sys.path.insert(0, str(DOCS))
    try:
        folder = tmp_path_factory.mktemp("built")
        for name in ("references", "tree_pages"):
            importlib.import_module(name).write(folder)
        return folder
    finally:
        sys.path.remove(str(DOCS))


def test_every_public_name_is_in_the_reference(built):
    listed = re.findall(r"^   (\w+)$", (built / "reference" / "api.rst").read_text(), re.MULTILINE)
    assert sorted(listed) == sm.__all__


def test_every_option_of_the_command_line_is_in_the_reference(built, scalemani):
    text = (built / "reference" / "command_line.md").read_text()
    for command in app.registered_commands:
        name = command.name or command.callback.__name__
        status, printed, _ = scalemani(name, "--help")
        section = text.partition(f"## scalemani {name}\n")[2].partition("\n## ")[0]
        assert status == 0
        assert set(re.findall(r"--[a-z][a-z-]+", printed)) - {"--help"} <= set(re.findall(r"--[a-z][a-z-]+", section))


def test_every_parameter_is_in_the_reference_with_its_default(built):
    text = (built / "reference" / "parameters.md").read_text()
    for name in names_of_parameters():
        value = Parameters().value(name)
        if "." in name:
            assert f"| `{name}` | {'follows' if value is None else f'`{value}`'} |" in text


def test_every_link_of_a_page_leads_to_a_page(built):
    examples = {f"built/gallery/{path.parent.name}/{path.stem}" for path in (DOCS / "gallery").rglob("*.py")}
    for page in DOCS.rglob("*.md"):
        if "built" in page.parts:
            continue
        for target in LINK.findall(page.read_text()):
            place = (page.parent / target).resolve().relative_to(DOCS)
            if place.parts[:2] == ("built", "pages"):  # drawn by the code of a page, and looked at where that runs
                continue
            made = built / place.relative_to("built") if place.parts[0] == "built" else DOCS / place
            example = str(place).replace("images/sphx_glr_", "").removesuffix("_001.png").removesuffix(".rst")
            assert made.exists() or example in examples, f"{page.name} leads to {target}"


def test_the_search_finds_pages_of_record_by_their_titles_alone(built):
    unsearched = [page.stem for page in (built / "tree").glob("*.md") if page.read_text().startswith("---\nno-search")]
    assert {"changelog", "benchmarks"} <= set(unsearched)
    assert not {"kubernetes", "slurm", "format"} & set(unsearched)


def test_every_page_is_in_the_table_of_contents(built):
    pages = [page for page in DOCS.rglob("*.md") if "built" not in page.parts]
    made = [Path("built") / page.relative_to(built) for page in built.rglob("*.*") if page.suffix in (".md", ".rst")]
    names = {str(page.with_suffix("")) for page in (*(page.relative_to(DOCS) for page in pages), *made)}
    listed = set()
    for page in pages:
        folder = page.parent.relative_to(DOCS)
        listed |= {str(folder / name) for name in re.findall(r"^([\w/]+)$", page.read_text(), re.MULTILINE)}
    assert names - {"index"} <= listed
