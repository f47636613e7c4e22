#!/usr/bin/env bash
# What only a GPU can tell, in 40 minutes: benchmarks/gpu.sh DATA [STAGE…]
#
#   ladder    studies/ladder's cells that have no row yet, wide ones before Muon's: docs/evidence/ladder_gpu.csv, 24 minutes
#   probe     GPT-2 of 124 M parameters at 12, 24 and 48 layers: benchmarks/gpu/probe.json
#   watch     what a watch costs, with and without torch.compile: benchmarks/gpu/watch.txt
#   stacked   a sweep of 32 runs, one after another and 16 at once: benchmarks/gpu/stacked.csv
#
# A stage that has its rows is not run again; the ladder goes on where it stopped. DATA: the folder of train.en.gz.
set -eu
cd "$(dirname "$0")/.."
data=$1; shift
rows=benchmarks/gpu
mkdir -p "$rows"
export OMP_NUM_THREADS=1 PYTHONPATH=.
python=${PYTHON:-python}
store=${STORE:-$(mktemp -d)}

ladder() {
  "$python" -m studies.ladder train --data "$data" --device cuda --workers "${WORKERS:-6}" --minutes "${MINUTES:-24}"
}
probe() {
  [ -s "$rows/probe.json" ] && return
  "$python" -m stabkit probe benchmarks.own_gpu:gpt2_124m --depths 12,24,48 --seeds 0 --time 300 --no-fail --json \
    --out "$store/probe" >"$store/probe.json" && mv "$store/probe.json" "$rows/probe.json"
}
watch() {
  [ -s "$rows/watch.txt" ] && return
  "$python" benchmarks/own_gpu.py cost >"$store/watch.txt" && mv "$store/watch.txt" "$rows/watch.txt"
}
stacked() {
  [ -s "$rows/stacked.csv" ] && return
  echo "together,runs,seconds" >"$store/stacked.csv"
  for together in 1 16; do
    local begin=$SECONDS
    "$python" -m stabkit sweep --models post-ln,deepnorm --depths 18 --seeds 0..15 --steps 200 --warmup 0 --device cuda --quiet \
      --together "$together" --yes --out "$store/stacked-$together" >/dev/null
    echo "$together,32,$((SECONDS - begin))" >>"$store/stacked.csv"
  done
  mv "$store/stacked.csv" "$rows/stacked.csv"
}

[ $# -gt 0 ] || set -- ladder probe watch stacked
for stage in "$@"; do
  case $stage in
    ladder | probe | watch | stacked) "$stage" ;;
    *) echo "benchmarks/gpu.sh: no stage $stage: ladder, probe, watch, stacked" >&2; exit 2 ;;
  esac
done
