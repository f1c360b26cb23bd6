#!/usr/bin/env bash
# Builds the documentation as a static site into the folder given (default site): without a network, warnings are errors,
# examples of the gallery and pages with pictures are run where they have changed since the last build here, and links
# are checked. --without-gallery: neither is run, and what they draw is missing.
set -euo pipefail
tags=() checks=()
if [ "${1:-}" = --without-gallery ]; then
    tags=(--tag without_gallery) checks=(--without-gallery)
    shift
fi
out=$(realpath -m "${1:-site}")
cd "$(dirname "$0")/../.."
bash deploy/environment.sh
bin="${SCALEMANI_VENV:-.venv}/bin"
"$bin/python" -m pip install --quiet --constraint constraints.txt --group docs

docs=pipelines/docs
rm -rf "$out"
"$bin/python" -m sphinx --fail-on-warning --keep-going --quiet "${tags[@]}" \
    -d "$docs/built/doctrees" "$docs" "$out"
"$bin/python" "$docs/check_site.py" "$out" "$("$bin/scalemani" --version)" "${checks[@]}"
echo "open $out/index.html"
