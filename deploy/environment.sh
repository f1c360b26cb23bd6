#!/usr/bin/env bash
# Makes the environment that every script here runs in: a virtual environment with pinned versions.
# SCALEMANI_VENV: where (default .venv). SCALEMANI_PYTHON: which Python (default python3, 3.11 or later).
# SCALEMANI_FOR: tests (default), or quickstart, which needs a third of the packages.
# SCALEMANI_EXTRAS: extras beside those, such as slurm or ssh,s3.
set -euo pipefail
cd "$(dirname "$0")/.."

held_pip='import ensurepip, pathlib; print(next(pathlib.Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl")))'
venv=${SCALEMANI_VENV:-.venv}
case ${SCALEMANI_FOR:-tests} in
tests) asked=(".[figures,parquet,anndata,s3,tls]" --group dev) ;;
quickstart) asked=(".[figures]") ;;
*) echo "SCALEMANI_FOR is $SCALEMANI_FOR: give tests or quickstart" >&2 && exit 2 ;;
esac
made="$venv/made-for-${SCALEMANI_FOR:-tests}"
# What suffices for the tests suffices for the quickstart.
[ -e "$made" ] || [ ! -e "$venv/made-for-tests" ] || made="$venv/made-for-tests"
if [ ! -x "$venv/bin/scalemani" ] || [ ! -e "$made" ] || [ pyproject.toml -nt "$made" ] || [ constraints.txt -nt "$made" ]; then
    python=${SCALEMANI_PYTHON:-python3}
    # The pip that most Pythons hold installs a later one from where it lies: `venv` would install, and compile, both.
    if [ ! -x "$venv/bin/python" ] && held=$("$python" -c "$held_pip" 2>/dev/null); then
        "$python" -m venv --without-pip "$venv"
        "$venv/bin/python" "$held/pip" install --quiet --no-compile "pip>=25.1"
    else
        [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
        "$venv/bin/python" -m pip install --quiet --upgrade "pip>=25.1"
    fi
    # A run imports a part of all modules: Python compiles these when it does.
    "$venv/bin/python" -m pip install --quiet --no-compile --constraint constraints.txt --editable "${asked[@]}"
    touch "$venv/made-for-${SCALEMANI_FOR:-tests}"
fi
if [ -n "${SCALEMANI_EXTRAS:-}" ]; then
    "$venv/bin/python" -m pip install --quiet --constraint constraints.txt --editable ".[$SCALEMANI_EXTRAS]"
fi
