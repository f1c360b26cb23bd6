"""How often the units of a map were tried and why they failed: what decides between another try and giving up."""

import collections
from collections.abc import Sequence
from typing import Any

from scalemani.errors import PoisonTaskError, ScalemaniError, WorkersLostError
from scalemani.workers.own_process import OwnProcessEndedError

MOST_ATTEMPTS = 4  # at a unit that fails with errors that may pass
OWN_PROCESS_AFTER = 2  # workers that were lost at work on a unit; from then on it has a process of its own
MOST_OWN_PROCESSES = 2  # that a unit may end
MOST_LOST = 12  # workers that may be lost at work on a unit that ends no process of its own


class Attempts:
    """What happened to each unit of a stage, by its number."""

    def __init__(self, stage: str, units: Sequence[Any]) -> None:
        self._stage, self._units = stage, units
        self._failures: collections.Counter[int] = collections.Counter()
        self._lost_workers: collections.Counter[int] = collections.Counter()
        self._ended_processes: collections.Counter[int] = collections.Counter()

    def was_lost(self, number: int) -> bool:
        """Whether a worker was lost while it was at work on the unit."""
        return self._lost_workers[number] > 0

    def needs_own_process(self, number: int) -> bool:
        """Whether so many workers were lost at work on a unit that it may have ended them."""
        return self._lost_workers[number] >= OWN_PROCESS_AFTER

    def note_lost_worker(self, number: int) -> None:
        """Count a worker that was lost at work on a unit; raise WorkersLostError once it is too many."""
        self._lost_workers[number] += 1
        if self._lost_workers[number] >= MOST_LOST:
            raise workers_lost_error(self._stage, self._units[number], self._lost_workers[number])

    def note_failure(self, number: int, error: BaseException) -> None:
        """Count an error of a unit that may pass.

        Raises PoisonTaskError where the unit has ended its processes, and all other errors as they are.
        """
        if isinstance(error, OwnProcessEndedError):
            self._ended_processes[number] += 1
            if self._ended_processes[number] >= MOST_OWN_PROCESSES:
                ended = self._lost_workers[number] + self._ended_processes[number]
                raise poison_task_error(self._stage, self._units[number], ended, str(error)) from error
            return
        self._failures[number] += 1
        may_pass = isinstance(error, OSError) and not isinstance(error, ScalemaniError)
        if not may_pass or self._failures[number] >= MOST_ATTEMPTS:
            raise error


def poison_task_error(stage: str, unit: Any, ended: int, last: str) -> PoisonTaskError:
    """Return the error of a unit that ends the processes that work on it.

    Parameters
    ----------
    stage, unit : what was computed
    ended : how many processes ended
    last : how the last of them did
    """
    return PoisonTaskError(
        f"stage {stage}, block {unit_name(unit)}: {ended} processes ended while they worked on it; the last had "
        f"nothing else to do and ended {last}: it needs more memory than there is, or compiled code crashed; give "
        "workers more memory, or start a new run with smaller blocks (--block-rows)"
    )


def workers_lost_error(stage: str, unit: Any, lost: int) -> WorkersLostError:
    """Return the error of a unit whose workers are ended by something else."""
    return WorkersLostError(
        f"stage {stage}, block {unit_name(unit)}: {lost} workers were lost while they had it, though it ended no "
        "process of its own: something ends workers sooner than blocks are done (a limit of the batch system or of a "
        "container, preemption: their logs say more); the same command goes on where this one ended"
    )


def unit_name(unit: Any) -> str:
    """Return the number of a block, or the numbers of a run of blocks."""
    return ", ".join(map(str, unit)) if isinstance(unit, list) else str(unit)
