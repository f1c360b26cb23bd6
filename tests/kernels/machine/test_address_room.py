"""What is left of a limit of address space, in processes that have one."""

import re
import resource
import subprocess
import sys

import psutil
import pytest

from scalemani.errors import MemoryBudgetError
from scalemani.kernels.machine import address_room
from scalemani.kernels.machine.address_room import LEAST_ROOM, address_bytes, address_limit, check_address_room

SHORT = """
import resource
from scalemani.kernels.machine.address_room import LEAST_ROOM, address_bytes, check_address_room
limit = address_bytes() + LEAST_ROOM + 2 * 10**7
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
check_address_room(10**7)
taken = bytearray(10**7)
check_address_room(0)
check_address_room(2 * 10**7)
"""


def test_where_nothing_is_limited_there_is_always_room():
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY
    assert address_limit() is None
    check_address_room(2**62)


def test_what_a_process_takes_is_what_the_system_says():
    assert address_bytes() == pytest.approx(psutil.Process().memory_info().vms, rel=0.05)


def test_a_process_with_a_limit_is_refused_what_it_has_no_room_for():
    done = subprocess.run([sys.executable, "-c", SHORT], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "line 9" in done.stderr
    assert "MemoryBudgetError" in done.stderr


def test_a_refusal_says_what_is_left_what_is_asked_for_and_a_limit_that_is_larger(monkeypatch):
    limit = address_bytes() + LEAST_ROOM
    monkeypatch.setattr(address_room, "address_limit", lambda: limit)
    with pytest.raises(
        MemoryBudgetError, match=rf"MB are left of the {limit // 10**6} MB .* fewer --workers"
    ) as refused:
        check_address_room(10**9)
    assert f"{(10**9 + LEAST_ROOM) // 10**6} MB are to be free" in str(refused.value)
    assert int(re.search(r"ulimit -v (\d+)", str(refused.value))[1]) * 1024 >= limit + 10**9
