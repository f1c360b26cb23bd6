#!/usr/bin/env bash
# The main job on real input: 20,000 elastically deformed handwritten digits to a two-dimensional embedding, with its
# picture and certificates, in the folder given (default quickstart).
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-quickstart}
bash deploy/environment.sh
scalemani="${SCALEMANI_VENV:-.venv}/bin/scalemani"

mkdir -p "$out"
[ -f "$out/digits.npy" ] || "$scalemani" generate deformed-digits "$out/digits.npy" --n-points 20000
"$scalemani" embed "$out/digits.npy" "$out/run" --set affinities.perplexity=10 --labels "$out/digits.labels.npy"
"$scalemani" plot "$out/run" "$out/digits.png" --labels "$out/digits.labels.npy"
"$scalemani" export "$out/run" "$out/embedding.npy"
"$scalemani" info "$out/run" --json >"$out/certificates.json"
echo "the embedding is $out/embedding.npy, its picture $out/digits.png, its certificates $out/certificates.json"
