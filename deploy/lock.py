"""Write the digests of all files that the image installs, as pip reads them with --require-hashes.

    python deploy/lock.py     # makes deploy/compose/requirements.txt anew, after other requirements or constraints.txt

pip chooses the files, as it would in the image, for each kind of processor; nothing is installed. The Python of the
image has to run it, since that decides what packages require. The digests are those that the index in use names.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "deploy" / "compose" / "requirements.txt"
DOCKERFILE = ROOT / "deploy" / "compose" / "Dockerfile"
PROCESSORS = ("x86_64", "aarch64")
LIBC = ("2_17", "2_24", "2_26", "2_27", "2_28", "2_31", "2_34", "2_35", "2_36")  # up to that of Debian 12, the image's
HEAD = "# Made by deploy/lock.py: the files that the image installs, by the digests of their contents.\n"


def requirements_of(extras: set[str]) -> list[str]:
    """Return the requirements of the project with some extras, and of what builds it."""
    described = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = described["project"]
    more = [wanted for extra in sorted(extras) for wanted in project["optional-dependencies"][extra]]
    return [*project["dependencies"], *more, *described["build-system"]["requires"]]


def of_image() -> tuple[str, set[str]]:
    """Return the version of Python, such as 3.12, and the extras of the image."""
    text = DOCKERFILE.read_text()
    python, extras = re.search(r"^FROM python:(\d+\.\d+)", text, re.M), re.search(r'"\.\[([a-z0-9,]+)\]"', text)
    assert python is not None
    assert extras is not None
    return python[1], set(extras[1].split(","))


def chosen(python: str, processor: str, requirements: list[str]) -> dict[str, tuple[str, str]]:
    """Return the version and the SHA-256 of the wheel of every package that is installed for a processor."""
    platforms = [f"--platform=manylinux_{libc}_{processor}" for libc in LIBC]
    platforms += [f"--platform=manylinux2014_{processor}", f"--platform=linux_{processor}"]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed"]
        command += ["--target", folder, "--report", os.path.join(folder, "report.json"), "--only-binary=:all:"]
        command += [*platforms, f"--python-version={python}", "--constraint", str(ROOT / "constraints.txt")]
        subprocess.run([*command, *requirements], check=True)
        report = json.loads(Path(folder, "report.json").read_text())
    wheels = {}
    for installed in report["install"]:
        name = re.sub(r"[-_.]+", "-", installed["metadata"]["name"]).lower()
        digest = installed["download_info"]["archive_info"]["hashes"]["sha256"]
        wheels[name] = (installed["metadata"]["version"], digest)
    return wheels


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=LOCK)
    arguments = parser.parse_args()
    python, extras = of_image()
    if python != f"{sys.version_info.major}.{sys.version_info.minor}":
        raise SystemExit(f"the image has Python {python}: run this with the same")
    everywhere = [chosen(python, processor, requirements_of(extras)) for processor in PROCESSORS]
    lines = [HEAD]
    for name in sorted(set().union(*everywhere)):
        (version,) = {wheels[name][0] for wheels in everywhere if name in wheels}
        digests = sorted({wheels[name][1] for wheels in everywhere if name in wheels})
        lines.append(f"{name}=={version} " + " ".join(f"--hash=sha256:{digest}" for digest in digests) + "\n")
    arguments.out.write_text("".join(lines))


if __name__ == "__main__":
    main()
