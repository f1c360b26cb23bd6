"""What workers do that are lost: a module of its own, as every process that is started imports the one of its task.

The imports of a test take seconds of processor time, and these tests start some fifty processes.
"""

import contextlib
import ctypes
import os
import time

from scalemani.errors import StoreError


def slow_square(number):
    time.sleep(0.3)
    return number * number


def crash(folder, unit):
    with open(os.path.join(folder, f"{unit}-{os.getpid()}"), "w"):
        pass
    if unit == 5:
        ctypes.string_at(0)
    return unit


def always_end(folder, unit):
    with open(os.path.join(folder, f"{unit}-{os.getpid()}"), "w"):
        pass
    os._exit(3)


def grow(unit):
    held = []
    while unit == 3:
        held.append(b"x" * 2**23)
        time.sleep(0.01)


def noted_square(folder, number):
    with open(os.path.join(folder, f"{number}-{os.getpid()}"), "w"):
        pass
    return slow_square(number)


def end_at_zero(folder, unit):
    with open(os.path.join(folder, f"{unit}-{os.getpid()}"), "w"):
        pass
    if unit == 0:
        os._exit(3)
    return unit


def refuse(unit):
    raise StoreError(f"unit {unit} is not to be had")


def end_beside_the_first(folder, unit):
    """Note when a unit begins and ends; the first takes long, and all others end their worker until it is done.

    A unit that has ended is passed over, as blocks are that are written.
    """
    ended = os.path.join(folder, f"{unit}.ended")
    if os.path.exists(ended):
        return unit
    begun, path = time.monotonic(), os.path.join(folder, f"{unit}-{os.getpid()}")
    with open(path, "w") as file:
        file.write(f"{begun} {begun}")
    first = is_first(folder, unit)
    if not first and not os.path.exists(os.path.join(folder, "done")):
        os._exit(3)
    time.sleep(8.0 if first else 0.2)
    with open(path, "w") as file:
        file.write(f"{begun} {time.monotonic()}")
    if first:
        os.mkdir(os.path.join(folder, "done"))
    os.mkdir(ended)
    return unit


def is_first(folder, unit):
    """Return whether a unit is the one that has begun before all others."""
    first = os.path.join(folder, "first")
    with contextlib.suppress(FileExistsError):
        os.symlink(str(unit), first)
    return os.readlink(first) == str(unit)
