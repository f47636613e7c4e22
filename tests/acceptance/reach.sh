#!/usr/bin/env bash
# Reach: the models and the optimisers that people train today, sentence by sentence, on real input. Run from anywhere,
# against a fresh clone: tests/acceptance/reach.sh [--quick]
# --quick leaves out what trains for minutes. The cases are those of STABKIT_CASES (../shared/cases beside the clone).
. "$(dirname "$0")/common.sh"
cd "$root"
python="$root/.venv/bin/python"
cases=${STABKIT_CASES:-$root/../shared/cases}

block "the libraries can be installed" dev libraries
# — 1 several optimisers
block "a list, a container, a scaler, a skip, a critic, one that never steps; bits as without; gradients those of both" dev test tests/own/test_optimizers.py -m "libraries or not libraries"
block "Lightning with two optimisers; transformers' Trainer" dev test tests/own/test_adapters.py -m libraries
block "one line in each doc page, README's example" bash -c "grep -q '\[muon, adamw\]' README.md && grep -q 'stabkit.watch(model, \[muon, adamw\])' docs/watch.md && grep -q '(model, loss, \[muon, adamw\])' docs/own_model.md && grep -q 'Optimizers that were run' docs/watch.md"
# — 2 what a link means under Muon
block "measured, and the page says it" bash -c "grep -q '| optimiser | muon |' docs/verdict.md && grep -q 'Muon' docs/own_model.md && grep -q 'MUON' stabkit/own/chain/updates.py"
# — 3 streams
block "nanochat, Attention Residuals, mHC, hyper-connections, a U-Net: layers counted right, read again after an update" dev test tests/own/test_recent.py -m "libraries or not libraries"
[ "$quick" ] || block "none of them fails; λ = 1.5 in float16 does, by head-room; dilution; without a norm at the end the old limits" dev test tests/own/test_recent.py tests/own/test_controls.py -m "slow or not slow"
probe() { # the verdict of a factory, without --blocks
  "$python" -m stabkit probe "tests.own.recent_models:$1" --depths 3,6,12 --seeds 0 --out "$work/$1" "${@:2}"
}
for name in nanochat attention_residuals mhc; do
  block "$name without a hint: no failure" probe "$name"
done
block "nanochat with λ = 1.5 and float16 fails, by head-room" bash -c "cd '$root'; '$python' -m stabkit probe tests.own.recent_models:nanochat_steep --depths 3,6,12,18 --seeds 0 --out '$work/steep' | tr '\n' ' ' | tr -s ' ' | grep -qE 'does not train as it stands.* (of the largest|overflows) float16'"
# — 4 the zoo
block "at least 30 models, each with what was found, time and whether it trains" bash -c "[ \$(grep -cE '^\| .*\`.* \| [0-9]+ s \| (trains|stuck|diverged)' docs/library_models.md) -ge 30 ]"
# — 5 the cases
[ "$quick" ] || { [ -d "$cases" ] && block "every case with the expected word; the healthy twins pass" "$python" tests/acceptance/cases.py "$cases"; }
block "the kinds, rebuilt as tests" dev test tests/own/test_reported.py
# — 6 audit without --method
block "DeepNorm by its constant, β missing or by its factor" dev test tests/own/test_audit.py -k "method or constant or beta or factor"
# — what it must show besides
[ "$quick" ] || block "watch's overhead (read it: between readings, over 1,000 updates)" "$python" benchmarks/watch_overhead.py 6x128
exit $failed
