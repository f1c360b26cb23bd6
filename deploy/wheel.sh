#!/usr/bin/env bash
# Builds the wheel and the source distribution into FOLDER, with the list of all packages that the wheel stands on
# (CycloneDX) beside it, and embeds with what installs from them:
#   bash deploy/wheel.sh FOLDER [EXTRA ...]
# the wheel alone, the wheel with each EXTRA (figures, parquet ...), and the source distribution, each in an environment of
# its own that ends with the script. What is installed of the wheel alone cannot be written while it runs, nor any cache.
# SCALEMANI_PYTHON: which Python (default python3, 3.11 or later).
set -euo pipefail
built=$(mkdir -p "$1" && cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
python=${SCALEMANI_PYTHON:-python3}
room=$(mktemp -d)
chmod 755 "$room"
trap 'chmod -R u+w "$room"; rm -rf "$room"' EXIT

# Runs a command as a user without a home, who may write nothing of what is installed.
confined() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent "$@"
    else
        env HOME=/nonexistent "$@"
    fi
}

# Installs what is named after the label in a new environment, and embeds a Swiss roll with it, far from the sources.
embed_with() {
    local label=$1
    shift
    "$python" -m venv "$room/$label"
    "$room/$label/bin/python" -m pip install --quiet --constraint constraints.txt "$@"
    (
        mkdir "$room/$label-work"
        cd "$room/$label-work"
        export PATH="$room/$label/bin:$PATH"
        run=
        if [ "$label" = wheel ] && confined python -c "" 2>/dev/null; then # another user may not reach Python below root's home
            run=confined
            chmod -R a-w "$room/$label"
            chmod 777 .
            echo "$label: by a user who can write nothing of it"
        fi
        # Type checkers ask whether the package says its types.
        $run python -c 'from importlib.resources import files; assert (files("scalemani") / "py.typed").is_file()'
        $run scalemani generate swiss-roll points.npy --n-points 1000
        $run scalemani embed points.npy run --quiet
        $run scalemani export run map.npy
        [ "$label" != figures ] || { scalemani plot run map.png && scalemani report run report.html; }
        [ "$label" != parquet ] || scalemani export run map.parquet
        [ "$label" != anndata ] || scalemani export run map.h5ad
    )
    echo "$label: $("$room/$label/bin/scalemani" --version) on $("$room/$label/bin/python" --version)"
}

"$python" -m venv "$room/build"
"$room/build/bin/python" -m pip install --quiet build
"$room/build/bin/python" -m build --outdir "$built" . >/dev/null
wheel=("$built"/scalemani-*.whl)
source=("$built"/scalemani-*.tar.gz)
embed_with wheel "${wheel[-1]}"
"$room/wheel/bin/python" deploy/sbom.py "${wheel[-1]%.whl}.cdx.json"
for extra in "$@"; do
    embed_with "$extra" "${wheel[-1]}[$extra]"
done
[ $# = 0 ] || embed_with source "${source[-1]}"
