"""The citation file names the software as the package does."""

import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_the_citation_file_says_what_the_package_says_of_itself():
    cited = yaml.safe_load((ROOT / "pipelines/docs/CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert cited["cff-version"] == "1.2.0"
    assert (cited["title"], cited["version"], cited["license"]) == tuple(
        project[key] for key in ("name", "version", "license")
    )
    assert cited["abstract"].rstrip(".") == project["description"]
    assert {"message", "authors", "type"} <= set(cited)
