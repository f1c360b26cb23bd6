#!/usr/bin/env bash
# The main job on real input: 20,000 elastically deformed handwritten digits by Laplacian eigenmaps and, on the same
# graph, by t-SNE; with picture, certificates and report, in the folder given (default quickstart).
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-quickstart}
SCALEMANI_FOR=quickstart bash deploy/environment.sh
scalemani="${SCALEMANI_VENV:-.venv}/bin/scalemani"

mkdir -p "$out"
[ -f "$out/digits.npy" ] || "$scalemani" generate deformed-digits "$out/digits.npy" --n-points 20000
asked=(--set affinities.perplexity=10 --labels "$out/digits.labels.npy")
"$scalemani" embed "$out/digits.npy" "$out/run" "${asked[@]}"
"$scalemani" export "$out/run" "$out/eigenmaps.npy"
"$scalemani" embed "$out/digits.npy" "$out/run" --method t-sne "${asked[@]}"
"$scalemani" export "$out/run" "$out/t-sne.npy"
"$scalemani" plot "$out/run" "$out/digits.png" --labels "$out/digits.labels.npy"
"$scalemani" info "$out/run" --json >"$out/certificates.json"
"$scalemani" report "$out/run" "$out/report.html" --labels "$out/digits.labels.npy"
echo "open $out/report.html; the embeddings are $out/eigenmaps.npy and $out/t-sne.npy, a picture $out/digits.png"
if [ -t 1 ] && command -v xdg-open >/dev/null; then
    xdg-open "$out/report.html" || true
fi
