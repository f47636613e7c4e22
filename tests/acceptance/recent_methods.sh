#!/usr/bin/env bash
# The subject's issue, sentence by sentence, on real input. Run from anywhere, against a fresh clone: tests/acceptance/recent_methods.sh [--quick]
# --quick leaves out what trains for minutes.
. "$(dirname "$0")/common.sh"
stab="python3 '$root/dev.py'"
cd "$root"
text="--data '$data' --source de --target en"
refused() { # exit code 2, one line on stderr, and in it this text
  local text=$1; shift
  bash -c "$stab $*" 2>"$work/err" >/dev/null; [ $? -eq 2 ] && [ "$(wc -l <"$work/err")" -eq 1 ] && grep -q -- "$text" "$work/err"
}
TEN="peri-ln sandwich-ln reordered-norm mix-ln keel layernorm-scaling dyt depth-mup completep gpt2-init"

# — head: one command holds them side by side
block "sweep --models today --arch decoder-only --block llama --depths 6,18,50,100 is planned" bash -c "$stab sweep --models today --arch decoder-only --block llama --depths 6,18,50,100 --dry-run --json --out '$work/plan' >'$work/plan.json' && python3 -c \"import json; m = {r['spec']['method'] for r in json.load(open('$work/plan.json'))['runs']}; assert len(m) == 13, m\""
block "  … and runs, at small depths" bash -c "$stab sweep --models today --arch decoder-only --block llama --depths 2,6 --steps 4 --warmup 0 -q --out '$work/today'"
# — 1 Methods
block "one file and one row each" bash -c "for m in $TEN; do ls stabkit/methods/today/\$(echo \$m | tr - _).py || exit 1; done; [ \"\$(ls stabkit/methods/today/*.py | wc -l)\" -eq 12 ]"
block "formula, constants, second implementation, of every method in every block and architecture" dev test tests/methods tests/training/test_factors.py
block "bits of the twelve stay (reference runs)" dev test tests/running/test_determinism.py -k committed_one
block "stabkit methods lists what is out, with reason and slot" bash -c "$stab methods >'$work/m'; for w in nGPT hyper-connections SiameseNorm 'value residual'; do grep -q \"\$w\" '$work/m' || exit 1; done"
for set in papers:12 today:13 all:23; do
  block "--models ${set%:*}: ${set#*:} methods" bash -c "$stab sweep --models ${set%:*} --depths 2 --steps 1 --warmup 0 --dry-run --json --out '$work/plan' >'$work/p.json' && python3 -c \"import json; m = {r['spec']['method'] for r in json.load(open('$work/p.json'))['runs']}; assert len(m) == ${set#*:}, m\""
done
# — 2 Does the forecast hold for them?
block "120 labelled runs and more, both blocks, scored before they are joined; coefficients are of what is said" dev test tests/studies/test_today.py tests/studies/test_evaluation.py
block "the page tells the hold-out by method and by block, and where no forecast is given" bash -c "$stab studies today $text --rows docs/today.csv --out '$work/page' --json --quiet >'$work/today.json' && python3 -c \"
import json
d = json.load(open('$work/today.json')); f = d['forecast']
near = f['the search, at rates of its corpus']; assert near['n'] >= 120 and 0 < near['trained'] < near['n'], near
blocks = [f'its {b} block' for b in ('classic', 'llama')]; assert sum(f[b]['n'] for b in blocks) == near['n']
own = {k: v for k, v in f.items() if not k.startswith(('its ', 'the '))}; assert len(own) == 13, own
assert sum(v['n'] for v in own.values()) == near['n'] and all(f[b]['skill'] >= 0.25 for b in blocks)
low = [k for k, v in own.items() if v['skill'] != 'nan' and v['skill'] < 0.25]; assert low and all(any(k in t and 'No forecast' in t for t in d['sentences']) for k in low), low
\""
block "llama's block has a forecast now, DyT none" bash -c "$stab sweep --models pre-ln,dyt --arch decoder-only --block llama --depths 6 --steps 16 --warmup 0 $text --json -q --out '$work/given' >'$work/given.json' && python3 -c \"
import json
f = {r['spec']['method']: r['forecast'] for r in json.load(open('$work/given.json'))['runs']}
assert f['pre-ln']['p_trains'] > 0.9 and f['dyt']['p_trains'] is None and f['dyt']['axes'] == ['method'], f\""
# — 3 The table
block "the page follows from the committed rows alone" bash -c "python3 -c \"import json; d = json.load(open('$work/today.json')); assert not d['missing'] and len(d['table']) == 2 * 13 * 4, (d['missing'], len(d['table']))\""
block "docs/today.md is what the rows say; the README's row and sentence too" dev test tests/studies/test_today.py -k "docs or results"
block "one central claim a method from its own paper" bash -c "$stab methods --json >'$work/m.json' && python3 -c \"import json; by = {m['key']: m['claims'] for m in json.load(open('$work/m.json'))['methods']}; [print(k) for k in '$TEN residual'.split() if not any(c['weight'] == 'central' for c in by[k])]; assert all(sum(c['weight'] == 'central' for c in by[k]) >= 1 for k in '$TEN residual'.split())\""
# — Bad input
block "an undefined combination, with reason and source" refused "is not defined here" sweep --models t-fixup --arch decoder-only --depths 2
block "a name that is nearly one" refused "peri-ln" sweep --models peri-lm --depths 2
block "a name that people use" bash -c "$stab methods olmo-2 | grep -q 'OLMo 2 order'"
block "not here yet" refused "not here yet" sweep --models nGPT --depths 2
for m in $TEN; do
  block "audit and fold say what they can do for $m" bash -c "$stab methods $m >'$work/m' && grep -q 'audit' '$work/m' && grep -q 'fold' '$work/m'"
done
exit $failed
