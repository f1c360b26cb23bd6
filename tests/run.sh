#!/usr/bin/env bash
# Passes the tests, in the environment that it makes first. Arguments go to pytest.
# SCALEMANI_DATA: a folder with mnist.npz and others; tests that need a file there are skipped where it is unset.
set -euo pipefail
cd "$(dirname "$0")/.."
bash deploy/environment.sh
exec "${SCALEMANI_VENV:-.venv}/bin/python" -m pytest -n 2 --dist worksteal "$@"
