#!/usr/bin/env bash
# Makes the environment that Airflow runs in, apart from scalemani's own, and prints its folder.
# SCALEMANI_AIRFLOW: where (default: a cache folder named after the pinned versions, made once).
# SCALEMANI_PYTHON: which Python (default python3, 3.11 or later).
set -euo pipefail
cd "$(dirname "$0")"

python=${SCALEMANI_PYTHON:-python3}
digest=$({ "$python" --version && cat requirements.txt; } | sha256sum | cut -c -12)
venv=${SCALEMANI_AIRFLOW:-${XDG_CACHE_HOME:-$HOME/.cache}/scalemani/airflow-$digest}
mkdir -p "$(dirname "$venv")"
exec 9>"$venv.lock"
flock 9  # two test processes may ask at the same moment
if [ "$(cat "$venv/made" 2>/dev/null)" != "$digest" ]; then
    "$python" -m venv --clear --upgrade-deps "$venv" >&2
    "$venv/bin/python" -m pip install --quiet --requirement requirements.txt >&2
    echo "$digest" >"$venv/made"
fi
echo "$venv"
