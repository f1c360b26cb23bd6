"""Run the commands of all sections, each into a folder of its own, and print what became of them.

A section that ended well leaves `mark.json`: a digest of its command, of the sources of the package and of the
reproductions, and of the files of SCALEMANI_DATA. It is left out as long as the digest is the same, so that a run that
was stopped resumes with the section it was in. `log.txt` of a folder holds what the command printed. All of them take
hours; `--only` names some. Exit code 1 where a section failed.

    python pipelines/reproductions/run_all.py FOLDER
    python pipelines/reproductions/run_all.py FOLDER --only locally-linear theta
    python pipelines/reproductions/run_all.py FOLDER --list
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "scalemani"
IN_FOLDER = "FOLDER"  # what stands for the folder of a section in its command
# Sections whose commands say more than the folder; the others are added below.
SECTIONS = {
    "locally-linear": "locally_linear.py FOLDER --figures 4.1 4.2 4.4",
    "four-methods": "locally_linear.py FOLDER --figures 4.6 4.9",
    "dpp-graphs": "dpp_graphs.py FOLDER --points 20000 --landmarks 1000 --neighbors 10 40 120",
    "dpp-digits": "dpp_digits.py FOLDER --sizes 200 --references 10000",
    "gp-toys": "gp.py FOLDER toys --draws 10",
    "gp-words-pictures": "gp.py FOLDER words pictures --steps 300",
    "gp-seconds": "gp.py FOLDER seconds --sizes 5 20 50 --steps 100 --draws 3",
    "gp-digits": "gp.py FOLDER digits --sizes 20 50 100 200",
    "cameraman": "segmentation.py cameraman FOLDER --runs 3",
    "house": "segmentation.py house FOLDER",
    "warm": "segmentation.py warm FOLDER --memory 8GB",
    "nystrom": "segmentation.py nystrom FOLDER --memory 8GB --runs 3",
    "video": "segmentation.py video FOLDER --memory 8GB",
    "lda-digits": "lda.py FOLDER --landmark-neighbors 50 --runs 3",
    "lda-objects": "lda.py FOLDER --images coil --landmark-neighbors 50 --landmarks 50 100 200 500 1000 2000 "
    "--subsets 5000 10000 15000 --runs 2",
    "clusters": "clustering_selection.py FOLDER grid beside",
    "classification": "classification.py FOLDER --points 35000",
}
NAMED = {command.split()[0] for command in SECTIONS.values()} | {Path(__file__).name}
SECTIONS |= {
    path.stem.replace("_", "-"): f"{path.name} {IN_FOLDER}"
    for path in sorted(HERE.glob("*.py"))
    if path.name not in NAMED and "__main__" in path.read_text()
}


def digest_of(paths: list[Path]) -> str:
    """Return a digest of names and contents of files."""
    found = hashlib.sha256()
    for path in paths:
        found.update(path.name.encode())
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def data_files() -> list[Path]:
    """Return the files of SCALEMANI_DATA, none where it is not set."""
    folder = os.environ.get("SCALEMANI_DATA")
    return sorted(Path(folder).glob("*.npz")) if folder else []


def run(name: str, folder: Path, shared: str) -> dict[str, str]:
    """Run a section unless its mark is there; return its row of the table."""
    script, *arguments = SECTIONS[name].split()
    own = folder / name
    own.mkdir(parents=True, exist_ok=True)
    mark, key = own / "mark.json", hashlib.sha256(f"{SECTIONS[name]} {shared}".encode()).hexdigest()
    if mark.exists():
        earlier = json.loads(mark.read_text())
        if earlier["key"] == key:
            return {"section": name, "state": "reused", "seconds": earlier["seconds"], "when": earlier["when"]}
    mark.unlink(missing_ok=True)
    command = [sys.executable, str(HERE / script), *(str(own) if one == IN_FOLDER else one for one in arguments)]
    started, when = time.monotonic(), time.strftime("%Y-%m-%d %H:%M")
    with (own / "log.txt").open("w") as log:
        code = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
    seconds = f"{time.monotonic() - started:.0f}"
    if code:
        return {"section": name, "state": f"failed ({code}), see {own / 'log.txt'}", "seconds": seconds, "when": when}
    written = mark.with_suffix(".part")
    written.write_text(json.dumps({"key": key, "seconds": seconds, "when": when}))
    written.replace(mark)
    return {"section": name, "state": "ran", "seconds": seconds, "when": when}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=tuple(SECTIONS), metavar="SECTION")
    parser.add_argument("--list", action="store_true", help="print the sections and their commands, and run nothing")
    arguments = parser.parse_args()
    if arguments.list:
        for name in arguments.only:
            print(f"{name}: {SECTIONS[name]}")
        return 0
    shared = digest_of([*sorted(PACKAGE.rglob("*.py")), *sorted(HERE.glob("*.py")), *data_files()])
    print("| section | state | seconds | when |\n| --- | --- | --- | --- |")
    failed = False
    for name in arguments.only:
        row = run(name, arguments.folder, shared)
        failed |= row["state"].startswith("failed")
        print("| " + " | ".join(row.values()) + " |", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
