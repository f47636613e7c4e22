#!/usr/bin/env bash
# The subject's issue, sentence by sentence, on real input. Run from anywhere, against a fresh clone: tests/acceptance/translation.sh [--quick]
# Prints PASS or FAIL a block; exits 1 if any failed. --quick leaves out the blocks that train for minutes.
. "$(dirname "$0")/common.sh"
text="--data $data --source de --target en"
stab="python3 '$root/dev.py'"
small="--models deepnorm --depths 2 --steps 40 --warmup 0 --lr 2e-3"

# — Quality
block "--bleu, beam, synthetic" bash -c "$stab sweep $small --bleu --out '$work/q' --json --quiet >'$work/beam.json'"
block "--bleu, greedy, the same runs" bash -c "$stab sweep $small --bleu --beam 1 --out '$work/q' --json --quiet >'$work/greedy.json'"
block "--bleu on real text" bash -c "$stab sweep $small $text --bleu --out '$work/t' --json --quiet >'$work/text.json'"
block "signature, perplexity, token accuracy, time a step" check quality "$work/beam.json" "$work/greedy.json" "$work/text.json"
block "remembered keys and values: token by token against decoding without" dev test tests/quality/test_decode.py -m "slow or not slow"
block "time a step as it finishes" bash -c "$stab sweep $small --seeds 1 --out '$work/q' 2>&1 | grep -q 'ms a step'"
block "--stop-when-decided" dev test tests/training/test_decided.py
[ -n "$quick" ] || block "a stuck run ends early, and says so" bash -c "$stab sweep --models post-ln --depths 18 --steps 3000 --warmup 0 --lr 1e-3 --max-tokens 256 $text --stop-when-decided --out '$work/s' 2>&1 | tee /dev/stderr | grep -q 'stuck (ended at step [0-9]* of 3000)'"

# — stabkit paper
block "ls names every item" bash -c "$stab paper ls --json | python3 -c 'import json, sys; keys = [one[\"key\"] for one in json.load(sys.stdin)[\"items\"]]; assert keys == [*(f\"fig{i}\" for i in range(1, 10)), \"table1\", \"table2\", \"table4\", \"table11\", \"admin-fig2a\", \"admin-fig2b\", \"admin-table1\", \"admin-table3\"], keys'"
block "what cannot be rerun is listed with the reason" bash -c "$stab paper ls | grep -q 'OPUS-100'"
block "one item" dev paper fig9 --depths 2 --steps 3 --out "$work/p" --quiet
block "--dry-run shows the plan within the budget" bash -c "$stab paper all --budget 2h --dry-run --out '$work/p' | tee /dev/stderr | grep -q 'cheapest first'"
block "grids of the sweep: rate, batch, width" bash -c "$stab sweep --models deepnorm --depths 2 --steps 2 --lr 5e-4,1e-3 --max-tokens 256,512 --hidden 32,64 --ffn 2x --out '$work/g' --json --quiet | python3 -c 'import json, sys; assert len(json.load(sys.stdin)[\"runs\"]) == 8'"
block "asymmetric shapes" dev paper admin-table3 --steps 2 --depths 3x2,2x3 --out "$work/p" --quiet
block "every item, the plan, the budget, an interrupted all" dev test tests/paper -m "slow or not slow"

# — Evidence
page="$root/reports/paper/index.html"
block "paper all on Multi30k, committed, under 6 MB" bash -c "test -s '$page' && test \$(wc -c <'$page') -lt 6000000 && grep -q 'stabkit paper all --data .* --budget 75m' '$page'"
block "Post-LN is stuck at 18L-18L where Post-LN-init trains; the items of a budget" check paper "$page"

# — Bad input
block "an unknown item gets the nearest" bash -c "$stab paper fgi9 2>&1 | grep -q \"did you mean 'fig9'\""
block "a budget that fits nothing says the cheapest item's cost" bash -c "$stab paper all --budget 1s --out '$work/p2' 2>&1 | tee /dev/stderr | grep -q 'nothing fits; the cheapest item'"
mkdir "$work/notest"; cp "$data"/train.* "$data"/val* "$work/notest/"
block "a corpus without a test set is refused before training" bash -c "! $stab sweep --models deepnorm --depths 2 --bleu --data '$work/notest' --source de --target en --out '$work/n' 2>&1 | tee '$work/out' | grep -q Traceback && grep -q 'test.de' '$work/out' && ! test -e '$work/n/runs'"
exit $failed
