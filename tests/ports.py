"""Ports of this machine for servers that have to be told theirs; `python tests/ports.py 2` prints two."""

import secrets
import socket
import sys
from pathlib import Path

LOWEST = 10_000
GIVEN = Path("/proc/sys/net/ipv4/ip_local_port_range")  # to connections, and to servers that ask for any port


def free_port() -> int:
    """Return a port of the loopback interface that nothing listens on, of those that the system gives to nobody.

    One that it gives, and that is closed for a server to take, is the next moment's connection's of another test.
    """
    stop = int(GIVEN.read_text().split()[0]) if GIVEN.exists() else 0
    while True:
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", LOWEST + secrets.randbelow(stop - LOWEST) if stop > LOWEST else 0))
            except OSError:
                continue
            return int(tried.getsockname()[1])


if __name__ == "__main__":
    print(*(free_port() for _ in range(int(sys.argv[1]))))
