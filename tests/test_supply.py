"""What is installed: exact versions of everything that the project asks for, and a list of it all for a release."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PINNED = (ROOT / "constraints.txt", ROOT / "pipelines" / "airflow" / "requirements.txt")


def name_of(requirement):
    return re.match(r"[A-Za-z0-9_.-]+", requirement)[0].lower().replace("_", "-")


def test_what_is_installed_has_an_exact_version():
    for path in PINNED:
        lines = [line for line in path.read_text().splitlines() if line and not line.lstrip().startswith(("#", "--"))]
        assert lines
        assert [line for line in lines if not re.match(r"[A-Za-z0-9_.\[\]-]+\s*(==|@)", line)] == [], path


def test_everything_asked_for_is_pinned_and_has_a_least_version():
    groups = (*PROJECT["project"]["optional-dependencies"].values(), *PROJECT["dependency-groups"].values())
    wanted = [*PROJECT["project"]["dependencies"], *(requirement for group in groups for requirement in group)]
    assert [requirement for requirement in wanted if ">=" not in requirement] == []
    pinned = {name_of(line) for line in PINNED[0].read_text().splitlines() if line and not line.startswith("#")}
    assert {name_of(requirement) for requirement in wanted} <= pinned


def test_the_list_of_parts_has_every_package_that_the_project_stands_on(tmp_path):
    command = [sys.executable, str(ROOT / "deploy" / "sbom.py"), str(tmp_path / "sbom.json")]
    subprocess.run(command, check=True)
    listed = json.loads((tmp_path / "sbom.json").read_text())
    assert (listed["bomFormat"], listed["specVersion"]) == ("CycloneDX", "1.5")
    names = {part["name"] for part in listed["components"]}
    assert {name_of(requirement) for requirement in PROJECT["project"]["dependencies"]} <= names
    assert all(part["purl"] == f"pkg:pypi/{part['name']}@{part['version']}" for part in listed["components"])
