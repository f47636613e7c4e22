#!/usr/bin/env bash
# Muon and AdamW as axes, many streams and attention over depth as wirings, the table again; sentence by sentence, on
# real input. Run from anywhere, against a fresh clone: tests/acceptance/optimizers.sh [--quick]
# --quick leaves out what trains for more than a minute.
. "$(dirname "$0")/common.sh"
cd "$root"
dev --version >/dev/null 2>&1 && dev libraries >/dev/null 2>&1
python="$root/.venv/bin/python"
text="--data $data --source de --target en"
stabkit() { "$python" -m stabkit "$@"; }
tiny="--depths 2 --steps 3 --max-tokens 128 --vocab 200 --hidden 16 --ffn 32 -q"

# — 1 optimisers
block "a table with one file each" bash -c "for name in adam adamw muon lion sgd radam; do ls stabkit/training/optimizers/\$name.py || exit 1; done"
block "each against torch's or its authors' own, over a run of 6L" dev test tests/training/test_optimizers.py
block "a method's factors under each" dev test tests/training/test_factors.py
refused() { ! stabkit sweep --models completep --optimizer "$1" $tiny --out "$work/r" 2>"$work/said" && grep -q "$2" "$work/said"; }
block "CompleteP under Muon is refused with the reason" refused muon 2603.00541
block "and under SGD" refused sgd "steps of SGD"
block "CompleteP under AdamW trains" stabkit sweep --models completep --optimizer adamw $tiny --out "$work/c"
for command in sweep "ablate --model deepnorm --alpha-scale 0.5,1"; do
  block "$command --optimizer muon" stabkit $command --optimizer muon $tiny --out "$work/o"
done
block "slope is SGD's alone, and says so" bash -c "! '$python' -m stabkit slope --models deepnorm --depths 2 --optimizer muon --out '$work/s' 2>'$work/said' && grep -qi optimizer '$work/said'"
block "old runs keep their ids and bits" dev test tests/test_spec.py tests/storage/test_kept_runs.py

# — 2 methods
for name in hc mhc mhc:start=identity mhc:start=static attnres attnres:form=block nanochat siamesenorm gated-attention value-residual derf gpas; do
  block "methods $name" stabkit methods "${name%%:*}"
  block "sweep --models $name" stabkit sweep --models "$name" $tiny --out "$work/m"
done
block "a second implementation of each, and the numbers that each holds" dev test tests/methods/test_second_implementations.py tests/methods/test_parts.py
block "the contract of every method, to a hundred layers" dev test tests/methods/test_every_method.py tests/training/test_contract.py
block "no wiring is asked for by name in the model" bash -c "! grep -nE 'wiring (==|in)|isinstance\(.*(Hyper|History|TwoStreams)' stabkit/model/transformer.py"
block "the gain of the product of mixings is recorded of HC and mHC, and of no other" dev test tests/probes/test_mixing.py
block "a claim or two of each paper" dev test tests/studies/test_recent_claims.py

# — 3 the table again
block "the study of 2026: its search, its table, its page" dev test tests/studies/test_recent.py tests/studies/test_ladder.py
block "its rows are committed and it goes on where they end" bash -c "'$python' -m studies recent --data '$data' --source de --target en --rows docs/2026.csv --dry-run --out '$work/rec'"

# — 4 forecast
block "AdamW and Muon, scored first by a fit without them, are joined" dev test tests/studies/test_later.py tests/studies/test_evaluation.py
for name in adamw muon; do
  block "a forecast under $name" bash -c "'$python' -m stabkit sweep --models pre-ln --arch decoder-only --block llama --depths 6 --lr 4e-3 --max-tokens 256 --seeds 5 --optimizer $name --warmup 0 $text --json -q --out '$work/f' >'$work/f.json' && '$python' -c \"import json; f = json.load(open('$work/f.json'))['runs'][0]['forecast']; assert f['p_trains'] is not None, f\""
done
block "other optimisers are out of the forecast's range, and it says so" bash -c "'$python' -m stabkit sweep --models pre-ln --depths 6 --optimizer lion --warmup 0 --out '$work/f' 2>&1 | grep -q 'out of range'"

# — what it must show
block "a newcomer's method with a wiring of two streams" dev test tests/test_docs.py -k two_streams
[ "$quick" ] && exit $failed
block "five methods under Muon at 6, 50, 100 layers, and a page that answers" bash -c "'$python' -m stabkit sweep --models mhc,hc,attnres,deepnorm,pre-ln --optimizer muon --arch decoder-only --block llama --depths 6,50,100 --out '$work/show' && ls '$work'/show/reports/*.html"
exit $failed
