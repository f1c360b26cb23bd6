#!/usr/bin/env bash
# Passes the tests, in the environment that it makes first. Arguments go to pytest.
# SCALEMANI_DATA: a folder with mnist.npz and others; tests that need a file there are skipped where it is unset.
set -euo pipefail
cd "$(dirname "$0")/.."
bash deploy/environment.sh

# Tests start hundreds of processes: where none may keep its byte code, each compiles all that it imports, for seconds.
unset PYTHONDONTWRITEBYTECODE

# Dense problems that tests compare with: their threads, in each of several processes, would wait for each other.
export OPENBLAS_NUM_THREADS=1

# Stores have every object written through to the disk, a hundred of them in the smallest run. A file system in memory
# does not wait for that. Tests that need a disk take one themselves.
memory=/dev/shm
if [ -w $memory ] && [ "$(df --output=avail --block-size=1G $memory | tail -n 1)" -ge 6 ] &&
    [ "$(awk '/^MemAvailable/ {print int($2 / 2^20)}' /proc/meminfo)" -ge 10 ]; then
    TMPDIR=$(mktemp -d $memory/scalemani-tests-XXXXXX)
    export TMPDIR
    trap 'rm -rf "$TMPDIR"' EXIT
    chmod 755 "$TMPDIR" # tests that drop privileges pass through
fi

# Three processes keep two cores at work: some of the tests wait for workers, servers and time limits.
"${SCALEMANI_VENV:-.venv}/bin/python" -m pytest -n 3 --dist worksteal "$@"
