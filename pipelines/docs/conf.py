"""The documentation: pages of this folder, a gallery that runs, and references made from the code itself."""

import importlib.metadata
import sys
import warnings
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import docstrings  # noqa: E402 - modules next to this file
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
html_title = "scalemani"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}

# Outputs of examples show what was warned of, not where on this machine.
warnings.formatwarning = lambda message, category, *_: f"{category.__name__}: {message}\n"


def setup(app: Sphinx) -> None:
    """Write the pages that are made from the code and from pages elsewhere, before Sphinx looks for pages."""
    built = HERE / "built"
    references.write(built)
    tree_pages.write(built)
    app.connect("autodoc-process-docstring", docstrings.as_restructured_text, priority=100)  # before numpydoc
