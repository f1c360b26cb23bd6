"""Write the list of all packages that scalemani stands on in this environment, with versions, as CycloneDX JSON.

    python deploy/sbom.py OUT.json [--extra EXTRA ...]

The list holds what is installed here: make it in the environment of a release.
"""

import argparse
import json
import re
from importlib import metadata
from pathlib import Path

PROJECT = "scalemani"


def normalized(name: str) -> str:
    """Return a name as package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(requirements: list[str], extras: set[str]) -> set[str]:
    """Return the names of requirements that apply without extras or with one of these."""
    names = set()
    for requirement in requirements:
        wanted = re.search(r"extra\s*==\s*['\"]([^'\"]+)", requirement)
        if wanted is None or wanted[1] in extras:
            names.add(normalized(re.match(r"[A-Za-z0-9_.-]+", requirement)[0]))  # type: ignore[index]
    return names


def parts(extras: set[str]) -> list[dict[str, str]]:
    """Return every package that the project needs, directly or not, as components."""
    installed = {normalized(distribution.metadata["Name"]): distribution for distribution in metadata.distributions()}
    waiting, seen = needed(metadata.requires(PROJECT) or [], extras), set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in installed:
            continue
        seen.add(name)
        waiting |= needed(installed[name].requires or [], set())
    versions = {name: installed[name].version for name in sorted(seen)}
    return [
        {"type": "library", "name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"}
        for name, version in versions.items()
    ]


def main() -> None:
    """Write the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--extra", action="append", default=[], help="an extra of the project that is installed")
    arguments = parser.parse_args()
    whole = {"type": "library", "name": PROJECT, "version": metadata.version(PROJECT)}
    described = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": whole}}
    arguments.out.write_text(json.dumps({**described, "components": parts(set(arguments.extra))}, indent=1))


if __name__ == "__main__":
    main()
