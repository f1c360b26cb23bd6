"""Do the tests notice? Draw lines of the package, change one thing on each, run the tests that run the line.

    PYTHONPATH=$PWD:tests/mutations REACHED=/dev/shm/reached python -m pytest -n 0 -p reached tests/stages tests/cli
    python tests/mutations --reached /dev/shm/reached --seed 0 --lines 20 scalemani/stages scalemani/cli

A line is killed when a test fails or does not end, and survives when all pass. A survivor is a promise that no test
makes, or a line that changes no promise (the size of a block, say): look at each. All happens in a copy of the
repository, one process at a time.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from changes import Mutation, drawn_mutations
from selection import Record, tests_for
from trial import Trial


def arguments() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", help="folders or files of scalemani/")
    parser.add_argument("--lines", type=int, default=20, help="how many lines to change, one at a time")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--reached", type=Path, help="which lines tests run, as recorded by reached.py")
    parser.add_argument("--seconds", type=float, default=90, help="of tests for a line that survives")
    parser.add_argument("--tests", nargs="*", default=[], help="tests to run first, for every line")
    parser.add_argument(
        "--log", type=Path, help="lines of JSON with the results; those that it holds are not tried again"
    )
    parser.add_argument("--again", action="store_true", help="try those again that survived by the log")
    return parser.parse_args()


def logged(path: Path | None) -> dict[Mutation, str | None]:
    """Return the mutations of a log, each with the test that kills it."""
    rows = map(json.loads, path.read_text().splitlines() if path is not None and path.exists() else ())
    return {Mutation(*row["mutation"]): row["killer"] for row in rows}


def main() -> None:
    """Draw mutations, try each, print which survive."""
    asked = arguments()
    record, killers = Record(asked.reached), logged(asked.log)
    mutations = drawn_mutations(asked.places, asked.lines, asked.seed)
    memory = "/dev/shm" if Path("/dev/shm").is_dir() and shutil.disk_usage("/dev/shm").free > 2**30 else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        trial = Trial(Path(folder), record.seconds)
        for mutation in mutations:
            if mutation not in killers or (asked.again and killers[mutation] is None):
                tests = list(
                    dict.fromkeys([*asked.tests, *tests_for(record, mutation.file, mutation.line, asked.seconds)])
                )
                killers[mutation] = trial.killer(mutation, tests)
                row = {"mutation": mutation, "killer": killers[mutation], "tests": len(tests)}
                if asked.log is not None:
                    with asked.log.open("a") as file:
                        file.write(json.dumps(row) + "\n")
            killer = killers[mutation]
            word = "SURVIVED" if killer is None else "killed  "
            print(f"{word}  {mutation.file}:{mutation.line}  {mutation.after.strip()}  {killer or ''}", flush=True)
    survived = sum(killers[mutation] is None for mutation in mutations)
    print(f"{len(mutations) - survived} of {len(mutations)} killed, {survived} survived")


if __name__ == "__main__":
    main()
