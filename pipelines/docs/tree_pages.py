"""Pages that stand elsewhere in the tree, as pages of the site: written once, read in both places."""

import re
import shutil
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The name of each page of the tree on the site, below `built/tree`.
PAGES = {
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "contributing",
    "deploy/README.md": "deploy",
    "deploy/compose/README.md": "compose",
    "deploy/kubernetes/README.md": "kubernetes",
    "deploy/slurm/README.md": "slurm",
    "deploy/ssh/README.md": "ssh",
    "pipelines/airflow/README.md": "airflow",
    "pipelines/benchmarks/README.md": "benchmarks",
    "pipelines/reproductions/README.md": "reproductions",
    "scalemani/DESIGN.md": "design",
    "scalemani/FORMAT.md": "format",
    "scalemani/LIMITS.md": "limits",
    "tests/RELIABILITY.md": "reliability",
}
# The search finds these by their titles alone: they name everything, and pages for readers come first.
UNSEARCHED = {"benchmarks", "changelog", "contributing", "design", "limits", "reliability", "reproductions"}
PICTURES = ("pipelines/figures/contact-sheet.png",)  # that other pages of the site show than those above
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")


def write(built: Path) -> None:
    """Write every page below `built/tree`, with its pictures next to it and its links led to where they go."""
    folder = built / "tree"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for page, name in PAGES.items():
        source = ROOT / page
        lead = partial(led, origin=source.parent, folder=folder)
        head = "---\nno-search: true\n---\n\n" if name in UNSEARCHED else ""
        (folder / f"{name}.md").write_text(head + LINK.sub(lead, source.read_text()))
    for picture in PICTURES:
        shutil.copy(ROOT / picture, folder)


def led(link: re.Match[str], origin: Path, folder: Path) -> str:
    """Return a link of a page in `origin` as one of a page in `folder`: to a page, a picture next to it, or as text.

    Raises
    ------
    FileNotFoundError
        Where there is nothing at the end of the link.
    """
    picture, text, target, anchor = link[1], link[2], link[3], link[4] or ""
    if "://" in target:
        return link[0]
    place = (origin / target).resolve(strict=True)
    if picture:
        shutil.copy(place, folder / place.name)
        return f"![{text}]({place.name})"
    name = PAGES.get(str(place.relative_to(ROOT)))
    # A file of the source that is no page of the site is named, not linked.
    return text if name is None else f"[{text}]({name}.md{anchor})"
