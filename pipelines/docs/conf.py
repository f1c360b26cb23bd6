"""The documentation: pages of this folder, a gallery that runs, and references made from the code itself."""

import importlib.metadata
import re
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import docstrings  # noqa: E402 - modules next to this file
import page_code  # noqa: E402
import references  # noqa: E402
import tree_pages  # noqa: E402
from peak_memory import call_and_measure  # noqa: E402

project = "scalemani"
author = "scalemani developers"
copyright = "scalemani developers"
version = release = importlib.metadata.version("scalemani")

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["gallery/**", "built/gallery/*.py", "built/gallery/*.ipynb"]
templates_path = ["templates"]
# Functions among the settings cannot be stored between builds.
suppress_warnings = ["config.cache"]
runs_gallery = not tags.has("without_gallery")  # noqa: F821 - Sphinx provides them, those of --tag
if not runs_gallery:  # pictures are missing
    suppress_warnings += ["image.not_readable"]
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "built/gallery",
    "filename_pattern": r"\.py$",
    "plot_gallery": runs_gallery,
    "show_memory": call_and_measure,
    "min_reported_time": 0,
    "write_computation_times": False,  # their page loads scripts from elsewhere; each example shows its time
    "backreferences_dir": "built/backreferences",
    "doc_module": ("scalemani",),
    "download_all_examples": False,
    "show_signature": False,
    "reference_url": {"scalemani": None},
}

html_theme = "pydata_sphinx_theme"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_title = f"scalemani {release}"  # on top of every page, and in its title
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_persistent": [
        "search-by-name.html"
    ],  # the theme's has a name for those who hear a page that is not its text
    "navigation_with_keys": False,
    "collapse_navigation": True,  # with the pages below every other page, each would be as long as the site
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}

# Outputs of examples show what was warned of, not where on this machine.
warnings.formatwarning = lambda message, category, *_: f"{category.__name__}: {message}\n"

EMPTY_HEADING = re.compile(r'<th class="head[^"]*">\s*<p></p>\s*</th>')
LINK_AND_TOGGLE = re.compile(r"(<a [^>]*>((?:(?!</a>).)*)</a>\s*<details[^>]*>\s*<summary)>", re.DOTALL)


def named_toggles(made: Any, *args: Any, **options: Any) -> str:
    """Return the pages at the side as the theme makes them, the toggle next to each named for those who hear a page."""
    return LINK_AND_TOGGLE.sub(
        lambda found: f'{found[1]} aria-label="Pages of {re.sub("<[^>]*>", "", found[2])}">',
        str(made(*args, **options)),
    )


def with_names(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Have toggles at the side named, and headings of columns without a text made plain cells."""
    if "generate_toctree_html" in context:
        context["generate_toctree_html"] = partial(named_toggles, context["generate_toctree_html"])
    if "body" in context:
        context["body"] = EMPTY_HEADING.sub("<td></td>", context["body"])


def setup(app: Sphinx) -> None:
    """Write the pages that are made from the code and from pages elsewhere, before Sphinx looks for pages."""
    built = HERE / "built"
    references.write(built)
    tree_pages.write(built)
    if runs_gallery:
        page_code.write(built)
    app.connect("autodoc-process-docstring", docstrings.as_restructured_text, priority=100)  # before numpydoc
    app.connect("html-page-context", with_names, priority=900)  # after the theme
