"""Damaged files of every kind, read in child processes: an error of ours or an answer, in time and in little memory.

    python -m tests.fuzz FOLDER [KIND ...] [--cases N] [--first N] [--seconds N] [--seed N]

A child reads one case after the other. Whatever ends or stops it is blamed on the case it was at, and another child
goes on with the next. Of what is amiss, the first of a kind is printed with the number of its case;
`--first NUMBER --cases 1` makes that again, and leaves the files in FOLDER.
"""

import argparse
import collections
import multiprocessing
import re
import sys
from pathlib import Path

from tests.fuzz.children import read_cases
from tests.fuzz.readers import DESCRIPTIONS, KINDS, write_whole


def try_kind(kind: str, folder: Path, numbers: range, seconds: float, seed: int) -> collections.Counter[str]:
    """Return how many cases of a kind were read, refused and amiss; print what is amiss."""
    whole = folder.parent / ("whole-run" if kind in DESCRIPTIONS else f"whole-{folder.name}")
    if not whole.exists():
        whole.mkdir(parents=True)
        write_whole(kind, whole)
    context, counts, left = multiprocessing.get_context("forkserver"), collections.Counter[str](), numbers
    told: set[str] = set()
    while left:
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=read_cases, args=(kind, whole, folder, left, seed, sender))
        child.start()
        sender.close()
        waiting = 10 * seconds  # for the libraries to load and kernels to compile
        while left:
            try:
                found = receiver.recv() if receiver.poll(waiting) else f"no answer for {waiting:g} s"
            except EOFError:
                child.join()
                found = f"the process ended with {child.exitcode}"
            waiting = seconds
            counts[found if found in ("read", "refused") else "amiss"] += 1
            if found not in ("read", "refused") and (alike := re.sub(r"\d+", "N", found)) not in told:
                told.add(alike)
                print(f"{kind}, case {left[0]}: {found}", flush=True)
            left = left[1:]
            if found.startswith(("no answer", "the process")) or found.endswith("resident"):
                break
        child.join(0 if left else waiting)
        child.kill()
        child.join()
    return counts


def main() -> int:
    """Try the kinds that are asked for; return 1 where a case is amiss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a new folder")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)} (default: all)")
    parser.add_argument("--cases", type=int, default=1000, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--seconds", type=float, default=30, help="that a case may take")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    multiprocessing.set_forkserver_preload(["tests.fuzz.children"])  # children have the libraries from the start
    numbers, amiss = range(asked.first, asked.first + asked.cases), 0
    for kind in asked.kinds or KINDS:
        folder = asked.folder / kind.replace(" ", "-")
        folder.mkdir(parents=True)
        counts = try_kind(kind, folder, numbers, asked.seconds, asked.seed)
        amiss += counts["amiss"]
        print(f"{kind}: {', '.join(f'{count} {name}' for name, count in sorted(counts.items()))}", flush=True)
    return 1 if amiss else 0


if __name__ == "__main__":
    sys.exit(main())
