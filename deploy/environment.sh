#!/usr/bin/env bash
# Makes the environment that every script here runs in: a virtual environment with pinned versions.
# SCALEMANI_VENV: where (default .venv). SCALEMANI_PYTHON: which Python (default python3, 3.11 or later).
# SCALEMANI_EXTRAS: extras beside those of the tests, such as slurm or ssh,s3.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${SCALEMANI_VENV:-.venv}
if [ ! -x "$venv/bin/scalemani" ] || [ pyproject.toml -nt "$venv/made" ] || [ constraints.txt -nt "$venv/made" ]; then
    "${SCALEMANI_PYTHON:-python3}" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --upgrade "pip>=25.1"
    "$venv/bin/python" -m pip install --quiet --constraint constraints.txt \
        --editable ".[figures,parquet,anndata,s3,tls]" --group dev
    touch "$venv/made"
fi
if [ -n "${SCALEMANI_EXTRAS:-}" ]; then
    "$venv/bin/python" -m pip install --quiet --constraint constraints.txt --editable ".[$SCALEMANI_EXTRAS]"
fi
