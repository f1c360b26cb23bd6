"""What is left of this process's address space where that is limited (`ulimit -v`), as batch systems do.

Where it is used up, libraries abort, wait or fail each in its own way, most of them by a signal. So it is looked at
before what takes much of it.
"""

import mmap

from scalemani.errors import MemoryBudgetError

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None

LEAST_ROOM = 48 * 2**20  # for what libraries take beside: a stack, what a codec works in, a heap that grows


def address_limit() -> int | None:
    """Return the bytes of address space that this process may take, None where there is no limit."""
    if resource is None:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def limit_command(n_bytes: int) -> str:
    """Return what a shell is told to limit address space, not below so many bytes."""
    return f"ulimit -v {-(-n_bytes // 1024)}"


def check_address_room(n_bytes: int = 0) -> None:
    """Refuse to go on where so many bytes, and what libraries take beside, are not left.

    Raises
    ------
    MemoryBudgetError
        It names a limit with which the process would have had half as much again.
    """
    limit = address_limit()
    if limit is None:
        return
    left = limit - address_bytes()
    if left >= n_bytes + LEAST_ROOM:
        return
    raised = (limit + n_bytes) * 3 // 2
    raise MemoryBudgetError(
        f"{max(left, 0) // 10**6} MB are left of the {limit // 10**6} MB that the address space of this process is "
        f"limited to, and {(n_bytes + LEAST_ROOM) // 10**6} MB are to be free here: raise that limit "
        f"({limit_command(raised)}) or ask for fewer --workers, then run the same command again, which goes on"
    )


def address_bytes() -> int:
    """Return the address space that this process has taken, resident or not; nothing where the system does not say."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as statm:
            return int(statm.read().split()[0]) * mmap.PAGESIZE
    except OSError:
        return 0
