"""The wait for a signal that ends a process."""

import os
import subprocess
import sys

import pytest

from scalemani.kernels.machine.plain import PLAIN
from scalemani.kernels.machine.stop_signals import end_on_signal

pytestmark = pytest.mark.skipif(PLAIN, reason="functions of the C library are called by compiled code alone")


def test_bytes_that_are_no_signals_to_stop_are_read_until_the_pipe_is_closed():
    reader, writer = os.pipe()
    os.write(writer, bytes([1, 10, 17]))
    os.close(writer)
    end_on_signal(reader, (2, 15), 128, 0)
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_signal_to_stop_ends_the_process_with_its_status():
    program = """
import os
from scalemani.kernels.machine.stop_signals import end_on_signal
reader, writer = os.pipe()
os.write(writer, bytes([10, 15]))
end_on_signal(reader, (2, 15), 128, 1)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 143
