"""The digests of what the image installs: complete, of the versions that are tested, and those of the index."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "deploy" / "compose" / "requirements.txt"
LINE = re.compile(r"([a-z0-9-]+)==(\S+)((?: --hash=sha256:[0-9a-f]{64})+)")
SMALL = ("six", "toolz", "zict")


@pytest.fixture(scope="module")
def lock():
    specification = importlib.util.spec_from_file_location("lock", ROOT / "deploy" / "lock.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def locked():
    """The version of every package of the image."""
    lines = [line for line in LOCK.read_text().splitlines() if not line.startswith("#")]
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found), lines
    return {line[1]: line[2] for line in found}


def test_the_versions_are_those_that_are_tested(lock, locked):
    python, _ = lock.of_image()
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    wanted = [Requirement(line) for line in lines]
    there = {"python_version": python, "python_full_version": f"{python}.0"}
    tested = {
        canonicalize_name(one.name): one.specifier for one in wanted if not one.marker or one.marker.evaluate(there)
    }
    assert [name for name, version in locked.items() if name in tested and version not in tested[name]] == []
    builders = {"hatchling", "packaging", "pathspec", "pluggy", "tomlkit", "trove-classifiers"}
    assert locked.keys() - tested.keys() <= builders


def test_everything_that_the_image_asks_for_is_there(lock, locked):
    _, extras = lock.of_image()
    assert {"figures", "s3", "tls"} <= extras
    requirements = [Requirement(wanted) for wanted in lock.requirements_of(extras)]
    assert [str(one) for one in requirements if locked.get(canonicalize_name(one.name)) not in one.specifier] == []


def test_compiled_packages_have_a_file_for_each_processor(lock):
    text = LOCK.read_text()
    for name in ("numpy", "scipy", "numba", "llvmlite", "psutil", "pyarrow"):
        line = next(line for line in text.splitlines() if line.startswith(f"{name}=="))
        assert line.count("--hash=") == len(lock.PROCESSORS)


def test_the_index_has_files_of_these_digests_and_another_digest_is_refused(tmp_path):
    lines = [line for line in LOCK.read_text().splitlines() if line.split("==")[0] in SMALL]
    assert len(lines) == len(SMALL)
    (tmp_path / "right.txt").write_text("\n".join(lines))
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--dest"]
    done = subprocess.run(
        [*command, tmp_path, "-r", tmp_path / "right.txt"], capture_output=True, text=True, check=False
    )
    if "HASHES" not in done.stderr and done.returncode != 0:
        pytest.skip(f"packages cannot be had: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr
    last = lines[0][-1]
    (tmp_path / "wrong.txt").write_text(lines[0][:-1] + ("0" if last != "0" else "1"))
    done = subprocess.run(
        [*command, tmp_path, "-r", tmp_path / "wrong.txt"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "HASHES" in done.stderr
