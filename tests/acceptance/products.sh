#!/usr/bin/env bash
# The subject's issue, sentence by sentence, on real input. Run from anywhere, against a fresh clone: tests/acceptance/products.sh [--quick]
# --quick leaves out what trains for minutes: the pairs, the time to a verdict, the fit of the cost. Those want an idle
# machine; BEFORE names a directory with an older stabkit package to be paired with (without it: commit 5a70514).
. "$(dirname "$0")/common.sh"
python=$root/.venv/bin/python
text="--data $data --source de --target en"
stab="python3 '$root/dev.py'"
cd "$root"

# — 1 Products by processor
block "a run's environment records it" bash -c "$stab sweep --depths 2 --steps 2 --models deepnorm $text --out '$work/s' --quiet && grep -hE '\"products\": \"(MKL|oneDNN|torch)\"' '$work'/s/runs/*/environment.json"
block "workers of several vendors: a warning" dev test tests/running/executors/test_dask.py -k vendors
# — 3 Start once
block "made once, whole or absent, checked on reading; no worker trains a vocabulary" dev test tests/storage/test_texts.py
block "Dask workers and others read it: equal digests" dev test tests/running/executors/test_dask.py tests/running/test_determinism.py -m "slow or not slow"
start() { "$python" benchmarks/start.py "$data" 2 | tee "$work/start"; }
block "first update of a 6L-6L run" start
block "  … at most 5 s after the second sweep was typed" bash -c "awk '/again/ && \$NF+0 == 0 { sub(/.*within /, \"\"); if (\$1 > 5) bad = 1; n++ } END { exit bad || n != 2 }' '$work/start'"
block "  … the first line on the screen within two seconds" bash -c "awk '/first line after/ { sub(/.*after /, \"\"); if (\$1 > 2) bad = 1; n++ } END { exit bad || n != 3 }' '$work/start'"
# — 4 Page and store
sixteen() { bash -c "$stab sweep --steps 4 --depths 6,18,50,100 $text --out '$work/p' --quiet"; }
[ -n "$quick" ] || block "sixteen runs of the default sweep" sixteen
many() { bash -c "$stab sweep --steps 20 --depths 1,2,3 --seeds 0..11 --hidden 16 --ffn 24 --vocab 200 --max-tokens 128 --out '$work/m' --quiet"; }
[ -n "$quick" ] || block "144 small runs" many
[ -n "$quick" ] || block "a page of sixteen runs in under 1.5 s" check page "$work/p" 1.5
[ -n "$quick" ] || block "a page of 144 in under 6 s" check page "$work/m" 6
# — 5 Time to a verdict
block "what is decided early equals the full run on 60 runs, at least 15 of them at rates where something collapses late" check decided "$root/docs/decided.csv"
block "the rule" dev test tests/training/test_decided.py
before=${BEFORE:-$work/before}
[ -n "$quick" ] || [ -d "$before" ] || block "the program as it was" bash -c "git clone -q '$root' '$before' && git -C '$before' checkout -q 5a70514"
[ -n "$quick" ] || block "time to a verdict, before and after" "$python" benchmarks/verdict.py "$data" "$before" "$root"
# — 6 Cost
block "--dry-run tells a range" bash -c "$stab sweep --dry-run --out '$work/c' | tee /dev/stderr | grep -qE '16 to train: [0-9.]+ (s|min|h) to [0-9.]+ (s|min|h) on'"
block "  … and in --json" bash -c "$stab sweep --dry-run --json --out '$work/c' | python3 -c 'import json, sys; p = json.load(sys.stdin)[\"plan\"]; assert 0 < p[\"seconds_low\"] < p[\"seconds\"] < p[\"seconds_high\"]'"
cost() { "$python" benchmarks/cost.py | tee "$work/cost"; }
[ -n "$quick" ] || block "eight in ten runs of a mixed grid within a factor of 1.5" cost
[ -n "$quick" ] || block "  … by the constants and the store's pace" bash -c "awk -F'[ %]+' '/store.s pace/ { for (i = 1; i <= NF; i++) if (\$i == \"within\") exit \$(i-1) < 80 }' '$work/cost'"
# — 7 The GPU path
block "every method through fake tensors of a GPU; host synchronisations counted" dev test tests/training/test_gpu_placement.py -m "slow or not slow"
block "the README says what was checked and what was not" grep -q "placement checked, speed not measured" README.md
# — 8 ALGO_VERSION
block "a run of this version is read after a probe, a field and a word were added" dev test tests/storage/test_kept_runs.py
block "defaults left out, an old folder told first, probes an older run lacks" dev test tests/test_spec.py tests/storage/test_store.py tests/storage/test_hostile_store.py
# — To reach
peer=$root/../shared/peers/peer_sweep.py
[ -f "$peer" ] || peer=
pairs() { "$python" benchmarks/sweep.py "$data" 3 "$before" ${peer:+"$peer"} "$root" | tee "$work/pairs"; }
if [ -z "$quick" ]; then
  least=2; grep -q GenuineIntel /proc/cpuinfo && least=1.75
  block "the default sweep, before, by hand and now, three alternating rounds" pairs
  block "  … at most 0.80 of its time" bash -c "awk '/median ratio/ && !/peer_sweep/ { exit !(\$3 <= 0.80) }' '$work/pairs'"
  [ -z "$peer" ] || block "  … at least $least times as fast as by hand" bash -c "awk -v least=$least '/median ratio/ && /peer_sweep/ { sub(/.*: /, \"\"); exit !(\$1 >= least) }' '$work/pairs'"
fi
block "bits equal over workers, arrangements, resume" dev test tests/running tests/training/test_train.py -m "slow or not slow"
exit $failed
