#!/usr/bin/env bash
# One command, one decision (issue: `stabkit probe` ends where it knows, and shows the change at work).
. "$(dirname "$0")/common.sh"
export PYTHONPATH=$root
model=tests.own.probe_models
document() { stab probe "$@" --json --out p 2>"$work/err" >"$work/document.json"; }                  # then `holds EXPRESSION`
holds() { "$bin/python" -c "import json, sys; d = json.load(open('document.json')); sys.exit(not ($1))"; } # of d
asked() { local expression=$1; shift; document "$@"; holds "$expression"; }
words="('trains', 'probably trains', 'undecided', 'probably fails', 'fails')"

block "before the first worker it says how long it will take" says 'about [0-9]+ s.*at most [0-9]+' \
  stab probe $model:pre_ln --depths 2,4 --out p
block "--time is the only knob: --cure-time and --no-cures are gone" bash -c \
  "'$bin/python' -m stabkit probe --help | grep -q -- --time && ! '$bin/python' -m stabkit probe --help | grep -qE -- '--cure-time|--no-cures'"
cat >lost.py <<'MODEL'
import torch
from tests.own import probe_models


def lost(depth):
    model = probe_models.Stack(depth)
    torch.nn.init.constant_(next(model.parameters()), float("nan"))
    return model
MODEL
block "a parameter that is not finite fails within seconds, as a verdict: 7" ends 7 stab probe lost:lost --depths 2 --out p
block "every depth has its word, its basis, its probability, its updates" asked \
  "len(d['depths']) == 3 and all(one['word'] in $words and one['basis'] in ('forecast', 'seen') and one['updates'] >= 1 for one in d['depths'])" \
  $model:post_ln --depths 2,6,24 --lr 3e-3
block "the verdict is the deepest's word" holds "d['verdict'] == d['depths'][-1]['word'] == 'fails'"
block "a change is trained as far as the model was, on the same batches" holds \
  "any(one['basis'] == 'seen' and one['word'] == 'trains' and one['loss'] < one['without'] and one['updates'] >= 16 for one in d['cures'])"
block "where the gradient is lost, the norm and DeepNorm's constants come before the rate" holds \
  "[one['change'] for one in d['cures']].index(next(one['change'] for one in d['cures'] if 'rate' not in one['change'])) == 0"
block "a healthy Pre-LN of 24 layers gets a firm word" asked "d['verdict'] == 'trains'" $model:pre_ln --depths 24 --lr 3e-4
block "  … within 45 s" holds "d['seconds'] <= 45"
block "what probably trains is offered no change" says 'if it stalls' stab probe $model:pre_ln --depths 24 --quick --out p
block "--strict ends with 8 unless it trains" ends 8 stab probe $model:pre_ln --depths 24 --quick --strict --out p
block "a regression gets a word" asked "d['verdict'] in $words" studies.own.factories:case_736 --depths 4,6
block "the rule's error is counted by the command's own function" "$bin/python" -m studies.own judge --check
block "what was asked of it holds, on judging rows and new cases" "$bin/python" -m studies.own judge --asked
block "  … of which there are 150 more" "$bin/python" -m studies.own count --judging 313
block "a watch says the probability once where it is firm" "$bin/python" -m pytest -q -m "not long" "$root/tests/own/test_watch.py" -k firm
block "baselines of 1.1.0 are read, or refused in one line" "$bin/python" -m pytest -q "$root/tests/cli/test_gate.py" -k as_it_was_written -m "not long"
exit $failed
