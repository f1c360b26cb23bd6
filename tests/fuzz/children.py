"""What a child process does: it reads damaged files with little memory, and says what came of each."""

import random
import resource
import shutil
import traceback
import warnings
from multiprocessing.connection import Connection
from pathlib import Path

from scalemani.errors import ScalemaniError
from tests.fuzz.readers import use, write_damaged

ADDRESSES = 3 * 2**30  # of a child, beside what it has mapped when it starts: three times its budget
RESIDENT = 10**9  # bytes that a child may hold at most: its budget


def outcome(kind: str, folder: Path) -> str:
    """Return what came of reading one case: "read", "refused", or what is amiss."""
    try:
        use(kind, folder)
    except ScalemaniError:
        return "refused"
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {str(error)[:200]}"
    return "read"


def read_cases(kind: str, whole: Path, folder: Path, numbers: range, seed: int, answers: Connection) -> None:
    """Read cases of a kind, made in a folder from whole files in another, one by one; send what came of each."""
    warnings.simplefilter("ignore")
    use(kind, whole)
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + ADDRESSES, mapped + ADDRESSES))
    for number in numbers:
        case = folder / "case"
        shutil.rmtree(case, ignore_errors=True)
        write_damaged(kind, whole, case, random.Random(f"{seed} {kind} {number}"))
        found = outcome(kind, case)
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        answers.send(f"{resident} bytes resident" if resident > RESIDENT else found)
        if resident > RESIDENT:
            return
