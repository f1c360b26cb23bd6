#!/usr/bin/env bash
# Builds the wheel and the source distribution into FOLDER, with the list of all packages that the wheel stands on
# (CycloneDX) beside it, and embeds with what installs from them:
#   bash deploy/wheel.sh FOLDER [EXTRA ...]
# the wheel alone, the wheel with each EXTRA (figures, parquet ...), and the source distribution, each in an environment of
# its own that ends with the script. What is installed of the wheel alone cannot be written while it runs, nor any cache.
# On x86-64 there is a second wheel, for this Python alone, with the machine code of kernels for x86-64-v3 and x86-64-v4.
# It is the one that is run; the first t-SNE of 1,797 digits in an environment may take six seconds of processor time.
# SCALEMANI_PYTHON: which Python (default python3, 3.11 or later).
# SCALEMANI_CODE: a folder of machine code that deploy/record_code.py has filled with these sources and this Python, which
# takes ten minutes of processor time (default: it is filled here), or none, for no second wheel.
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
        [ "$label" != wheel ] || [ "$code" = none ] || embed_at_once $run
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

# Shows that the first process of the wheel compiles nothing; arguments are what commands are run by.
embed_at_once() {
    "$@" scalemani doctor | grep -E "^machine code +level [^ ]+, unused no$"
    (
        ulimit -t 6
        SCALEMANI_CACHE=$PWD/cache "$@" python -c "
import resource
from sklearn.datasets import load_digits
import scalemani
scalemani.TSNE().fit(load_digits().data)
print(f'digits: {sum(resource.getrusage(resource.RUSAGE_SELF)[:2]):.1f} s of processor time')"
    )
    [ ! -e cache ] # what is compiled is kept
}

"$python" -m venv "$room/build"
"$room/build/bin/python" -m pip install --quiet build
env --unset SCALEMANI_CODE "$room/build/bin/python" -m build --outdir "$built" . >/dev/null
wheel=$(echo "$built"/scalemani-*-py3-none-any.whl)
source=$(echo "$built"/scalemani-*.tar.gz)
code=${SCALEMANI_CODE:-$room/code}
[ "$(uname -m)" = x86_64 ] || code=none
if [ "$code" != none ]; then
    if [ ! -d "$code" ]; then
        "$python" -m venv "$room/record"
        "$room/record/bin/python" -m pip install --quiet --constraint constraints.txt "${wheel}[figures,parquet]" \
            pandas pytest pytest-timeout hypothesis
        "$room/record/bin/python" deploy/record_code.py "$code"
    fi
    SCALEMANI_CODE=$(realpath "$code") "$room/build/bin/python" -m build --wheel --outdir "$built" . >/dev/null
    version=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("py_version_nodot"))')
    wheel=$(echo "$built"/scalemani-*-"cp$version"-manylinux_*.whl)
    [ "$(stat --format %s "$wheel")" -le 15000000 ]
fi
embed_with wheel "$wheel"
"$room/wheel/bin/python" deploy/sbom.py "${wheel%.whl}.cdx.json"
for extra in "$@"; do
    embed_with "$extra" "${wheel}[$extra]"
done
[ $# = 0 ] || embed_with source "$source"
