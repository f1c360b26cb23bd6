"""The recipe of a conda package: rendered by the program that builds from it, and of the versions of pyproject.toml."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "deploy" / "conda" / "recipe.yaml"
REQUIREMENT = r"([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?(.*)"
NAMES = {"dask": "dask-core", "matplotlib": "matplotlib-base"}  # what conda calls the parts that are needed


def project() -> dict:
    """Return the project's description."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def as_conda(requirements: list[str]) -> set[str]:
    """Return requirements as conda writes them, without extras of packages."""
    parts = [re.fullmatch(REQUIREMENT, one).groups() for one in requirements]
    return {f"{NAMES.get(name, name)} {versions}" for name, versions in parts}


@pytest.fixture(scope="module")
def rendered() -> dict:
    """The recipe as rattler-build understands it."""
    rattler_build = pytest.importorskip("rattler_build", reason="py-rattler-build, of the group deploy, is missing")
    variants = rattler_build.Stage0Recipe.from_file(RECIPE).render(rattler_build.VariantConfig({}))
    assert len(variants) == 1
    return variants[0].recipe.to_dict()


def test_the_recipe_has_the_name_version_and_licence_of_the_project(rendered):
    described = project()
    assert rendered["package"] == {"name": described["name"], "version": described["version"]}
    assert rendered["about"]["license"] == described["license"]
    assert rendered["about"]["summary"] == described["description"]
    commands = [f"{name} = {place}" for name, place in described["scripts"].items()]
    assert rendered["build"]["python"]["entry_points"] == commands


def test_the_recipe_asks_for_the_versions_of_the_project(rendered):
    described, requirements = project(), rendered["requirements"]
    least = described["requires-python"].removeprefix(">=")
    assert set(requirements["run"]) == {f"python >={least}", *as_conda(described["dependencies"])}
    extras = [one for extra in described["optional-dependencies"].values() for one in extra]
    assert set(requirements["run_constraints"]) == as_conda(extras)
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert set(requirements["host"]) == {f"python {least}.*", "pip", *as_conda(built)}
    (python,) = (one["python"] for one in rendered["tests"] if "python" in one)
    assert python["python_version"] == f"{least}.*"


def test_the_source_of_the_recipe_is_this_checkout(rendered):
    (source,) = rendered["source"]
    assert (RECIPE.parent / source["path"]).resolve() == ROOT
    assert (ROOT / rendered["about"]["license_file"][0]).exists()


def test_a_wrong_key_is_refused():
    rattler_build = pytest.importorskip("rattler_build", reason="py-rattler-build, of the group deploy, is missing")
    with pytest.raises(rattler_build.RattlerBuildError):
        rattler_build.Stage0Recipe.from_yaml(RECIPE.read_text().replace("noarch:", "no_arch:"))
