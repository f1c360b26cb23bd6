"""Checks a built site: what pages load is in it, links within it lead somewhere, titles have the version.

python pipelines/docs/check_site.py SITE VERSION [--without-gallery]

--without-gallery: of pictures that examples and pages draw, none is looked for.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADING = {  # attributes whose address a browser loads by itself
    "audio": "src",
    "embed": "src",
    "iframe": "src",
    "img": "src",
    "input": "src",
    "link": "href",
    "object": "data",
    "script": "src",
    "source": "src",
    "track": "src",
    "video": "src",
}
DRAWN = ("built/pages/", "built/gallery/", "sphx_glr_")
LOADED_BY_STYLE = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class Page(HTMLParser):
    """What a page loads, where it leads, and the places in it that links lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = {""}
        self.title = "".join(re.findall("<title>(.*?)</title>", text, re.DOTALL))
        self.feed(text)
        self.loaded += style_addresses(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element loads, links to and is called."""
        values = {name: value or "" for name, value in attrs}
        self.places |= {values[name] for name in ("id", "name") if name in values}
        if tag in LOADING and LOADING[tag] in values:
            self.loaded.append(values[LOADING[tag]])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])


def style_addresses(text: str) -> list[str]:
    """Return the addresses that a style sheet, or the styles in a page, load."""
    return [first or second for first, second in LOADED_BY_STYLE.findall(text)]


def is_elsewhere(address: str) -> bool:
    """Return whether an address lies outside the site."""
    return bool(urlsplit(address).netloc)


def is_drawn(address: str) -> bool:
    """Return whether an address is that of a picture that an example or the code of a page draws."""
    return any(part in address for part in DRAWN)


def findings(site: Path, version: str, drawn: bool = True) -> list[str]:
    """Return a line for each address from elsewhere or that leads nowhere, and for each title without the version.

    Pictures that examples and the code of pages draw are looked for where they are `drawn`.
    """
    pages = {path.resolve(): Page(path.read_text()) for path in site.rglob("*.html")}
    lines = []
    for path in site.rglob("*.css"):
        lines += [f"{path} loads {address}" for address in style_addresses(path.read_text()) if is_elsewhere(address)]
    for path, page in pages.items():
        if version not in page.title and "_static" not in path.parts:
            lines.append(f"{path} has the title {page.title!r}, without {version}")
        lines += [f"{path} loads {address}" for address in page.loaded if is_elsewhere(address)]
        if "_static" not in path.parts:  # templates of the theme
            there = [address for address in page.loaded if not urlsplit(address).netloc and urlsplit(address).path]
            missing = [address for address in there if not (path.parent / unquote(urlsplit(address).path)).exists()]
            lines += [f"{path} shows {one}, which is not there" for one in missing if drawn or not is_drawn(one)]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = pages[target].places if target in pages else {unquote(parts.fragment)}
            if not target.exists() or unquote(parts.fragment) not in there:
                lines.append(f"{path} links to {link}, where there is nothing")
    return lines


if __name__ == "__main__":
    lines = findings(Path(sys.argv[1]), sys.argv[2], "--without-gallery" not in sys.argv[3:])
    print(*lines, sep="\n")
    sys.exit(f"{len(lines)} addresses to mend" if lines else 0)
