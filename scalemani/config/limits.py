"""The most of everything that has a most: checks read this table, and `LIMITS.md` shows it."""

from dataclasses import dataclass
from typing import NamedTuple

from scalemani.errors import ConfigError, DataError, ScalemaniError, StoreError

# Beyond these a certificate says that its result falls short.
MUCH_AT_FLOOR = 0.1  # share of the edges; a few far neighbours of a point may well be there
MOST_ANGLE = 0.1  # radians, of a subspace apart from its neighbours: 6 degrees can just be seen in a picture
# Tolerances that nine in ten single points may err by. In maps of digits and cells they err by three to four times as
# much as the whole does; isolated points of a wide map, which hardly count in the whole, by a hundred times as much.
SINGLE_POINTS = 10.0
LEAST_DOF, MOST_DOF = 0.1, 100.0  # of Student's kernel: of fewer, forces hardly end; of more, it is the Gaussian


@dataclass(frozen=True)
class Limit:
    """The most of something, in which unit, for which reason, what to do about more, and the error of more."""

    most: int
    unit: str
    reason: str
    remedy: str
    error: type[ScalemaniError] = DataError


LIMITS = {
    "points": Limit(2**31 - 1, "rows", "neighbours are stored as 32-bit rows", "give fewer points"),
    "dense row": Limit(
        2**21 - 1,
        "bytes",
        "1,024 rows are compressed at once, of less than 2 GiB",
        "reduce the features first, for example by a truncated singular value decomposition",
    ),
    "column names": Limit(
        2**23,
        "bytes",
        "the plan of a run holds them, and each process reads it",
        "give shorter names, or the points as an array without names",
    ),
    "configuration": Limit(2**20, "bytes", "parameters take a few hundred", "give a table a stage", ConfigError),
    "blocks": Limit(
        2**19, "blocks", "a record of a stage lists what each of them wrote", "give more --block-rows", ConfigError
    ),
    "description": Limit(
        2**24,
        "bytes",
        "marks, plans and shapes take thousands",
        "run the same command again if a run wrote it; else copy or write it again",
        StoreError,
    ),
    "record": Limit(
        2**29,
        "bytes",
        "each object of a stage takes about a hundred",
        "run the same command again if a run wrote it; else copy or write it again",
        StoreError,
    ),
}


def check_limit(name: str, count: int, what: str) -> None:
    """Refuse more of something than its limit, in words that say what came, what is allowed and what to do."""
    limit = LIMITS[name]
    if count > limit.most:
        raise limit.error(
            f"{what} has {count} {limit.unit}, at most {limit.most} are taken ({limit.reason}): {limit.remedy}"
        )


class ClusterTimeouts(NamedTuple):
    """Seconds after which a scheduler does not answer, and a cluster has lost its workers."""

    connect: float = 30.0
    answer: float = 10.0  # that the scheduler has
    lost_workers: float = 75.0


CLUSTER_TIMEOUTS = ClusterTimeouts()
