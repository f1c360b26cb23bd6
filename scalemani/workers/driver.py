"""One task a unit on the workers of a Dask cluster, by a driver that outlives them.

The driver says which worker runs which unit. It knows how many run side by side in the memory of each (`Roster`), and
which units a lost worker had (`Dispatch`). A unit that two lost workers were at work on is tried in a process of its
own below a worker (`Attempts`): this tells units that end processes from workers that are killed from outside. A task
is a few kilobytes: what to do, as bytes that each worker unpacks once, and the unit. No result stays on the cluster
once it was fetched.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from distributed import Client

from scalemani.workers.budget import Batch
from scalemani.workers.dispatch import Dispatch
from scalemani.workers.roster import Roster

POLL_SECONDS = 0.25  # between two looks at the workers: units of a lost one wait for as long


@dataclass
class ClusterMap:
    """A function on every unit, on the workers that there are at any moment.

    `advance` is called for each unit that is done. `restore` is called while workers are looked at: it may bring lost
    ones back. `keep` is given the number of each unit and its result, in the order in which they come. Without it,
    results are not fetched, and a unit that is a list and whose worker was lost is done in parts.
    """

    client: Client
    function: Callable[[Any], Any]
    units: Sequence[Any]
    batch: Batch
    advance: Callable[[], None]
    restore: Callable[[], None]
    keep: Callable[[int, Any], Any] | None = None

    def run(self) -> None:
        """Call the function on every unit.

        Raises
        ------
        PoisonTaskError
            Where a unit ends the processes that work on it.
        WorkersLostError
            Where there are no workers for long, or none lasts until a unit is done.
        SchedulerLostError
            Where the scheduler does not answer for long.
        Exception
            What the function raises; errors of the system may pass, and are raised after several attempts.
        """
        roster = Roster(self.client, self.batch, self.restore)
        dispatch = Dispatch(self.client, self.function, self.units, self.batch, roster, divisible=self.keep is None)
        n_done, next_look = 0, time.monotonic()
        try:
            while n_done < dispatch.n_units:
                if time.monotonic() >= next_look:
                    lost = roster.refresh()
                    if lost is not None:
                        dispatch.requeue_lost(lost)
                        roster.check_capacity()
                    next_look = time.monotonic() + POLL_SECONDS
                dispatch.submit()
                for number, result in dispatch.collect(next_look - time.monotonic(), self.keep is not None):
                    if self.keep is not None:
                        self.keep(number, result)
                    if number < len(self.units):
                        self.advance()
                    n_done += 1
        finally:
            dispatch.cancel()
