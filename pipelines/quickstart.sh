#!/usr/bin/env bash
# The main job on real input, quickstart.py, in an environment that is made for it: 20,000 deformed handwritten digits by
# Laplacian eigenmaps and by t-SNE; with picture, certificates and report, in the folder given (default quickstart).
set -euo pipefail
cd "$(dirname "$0")/.."
SCALEMANI_FOR=quickstart bash deploy/environment.sh
asked=("${1:-quickstart}")
if [ -t 1 ] && command -v xdg-open >/dev/null; then
    asked+=(--open)
fi
exec "${SCALEMANI_VENV:-.venv}/bin/python" pipelines/quickstart.py "${asked[@]}"
