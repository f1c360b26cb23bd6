"""What workers do that are lost: a module of its own, as every process that is started imports the one of its task.

The imports of a test take seconds of processor time, and these tests start some fifty processes.
"""

import ctypes
import os
import time

from distributed import get_worker

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
    """Note whether a unit has a process of its own, which is no worker; end the process of unit 0."""
    try:
        place = "shared" if get_worker() else ""
    except ValueError:
        place = "alone"
    with open(os.path.join(folder, f"{unit}-{place}-{os.getpid()}"), "w"):
        pass
    if unit == 0:
        os._exit(3)


def end_process(unit):
    os._exit(3)


def refuse(unit):
    raise StoreError(f"unit {unit} is not to be had")


def do_no_more_than_two(folder, blocks):
    if len(blocks) > 2:
        os._exit(3)
    for block in blocks:
        with open(
            os.path.join(folder, str(block)), "w"
        ):  # again, where the news that it was done is lost with a worker
            pass
