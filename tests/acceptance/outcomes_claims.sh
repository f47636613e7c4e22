#!/usr/bin/env bash
# The subject's issue, sentence by sentence, on real input. Run from anywhere, against a fresh clone: tests/acceptance/outcomes_claims.sh [--quick]
# --quick leaves out what trains for minutes.
. "$(dirname "$0")/common.sh"
text="--data $data --source de --target en"
stab="python3 '$root/dev.py'"
cd "$root"

# — 1 What a verdict is
block "words, weights, thresholds, seeds, intervals, parts: the rule" dev test tests/claims/test_verdict.py
block "every claim on real runs, one number changed: it is able to hold and able to fail" dev test -m "slow or not slow" tests/claims/test_able.py
block "one number, one threshold: VANISHED is 1e-2 and the only one" bash -c "grep -q '^VANISHED = 1e-2' stabkit/results/outcome.py && ! grep -rnE '(<|>|<=|>=) 1e-[24]\\b' stabkit/claims stabkit/report"
block "words before a verdict: at risk, no warning sign, nothing where nothing was seen" dev test tests/results/test_outcome.py
sweep() { bash -c "$stab sweep --steps 16 --depths 6,18,50 $text --out '$work/s' --json >'$work/s.json'"; }
[ -n "$quick" ] || block "the default sweep" sweep
[ -n "$quick" ] || block "  … schema stabkit/2, claims with weight, threshold and places; one word for the whole" check tribunal "$work/s.json"
summary() { bash -c "$stab sweep --steps 16 --depths 6,18,50 $text --out '$work/s' | tee '$work/said'" && grep -q "central claims" "$work/said" && ! grep -qE "[0-9]+ of [0-9]+ claims" "$work/said"; }
[ -n "$quick" ] || block "  … its summary counts central claims by verdict, and gives no ratio" summary
block "one number, one place: no two numbers of a page disagree" dev test tests/report/test_one_number.py
# — 2 The list
block "citations stand in the papers" env STABKIT_REQUIRE=papers STABKIT_PAPERS="${STABKIT_PAPERS:-$root/../shared/papers}" python3 "$root/dev.py" test tests/test_citations.py
block "which link breaks: a sentence at the top, a figure, a probe of the tokens' cosine" dev test tests/figures/chain tests/probes
block "answers to the referee's list" test -s docs/referee.md
# — 3 The instrument's loose ends
block "methods admin names base, task and batch" bash -c "$stab methods admin | grep -q 'xavier_normal.*' && $stab methods admin | tr '\n' ' ' | grep -q '512 tokens'"
block "loss_surface's second direction as Li et al. by default" dev test tests/surface/test_anymodel.py
block "its profile at 12L-10L of the released size against stored values with their source" dev test -m long tests/methods/test_admin.py
block "the outcome rule's blind test: 60 runs and more, 20 near a limiting rate, two readings; the rule agrees with both" check blind "$root/docs/blind.csv"
block "  … κ is reported, and what was mended" bash -c "grep -q 'κ' docs/outcome.md && grep -q 'mended' docs/outcome.md"
block "frozen layers are a measurement and get said" dev test tests/results/test_outcome.py -k "early_run_says"
[ -n "$quick" ] || block "  … 500L-500L" bash -c "$stab sweep --models post-ln --depths 500 --steps 4 --max-tokens 128 $text --out '$work/f' | grep -q 'layers frozen'"
# — What it must show
for page in multi30k-default multi30k-no-warmup multi30k-slope multi30k-landscape multi30k-ablation paper; do
  block "a page of $page" test -s "reports/$page.html"
done
block "GOAL has a figure and a place in the README" bash -c "grep -q 'goal.png' docs/results.md && test -s docs/goal.png"
exit $failed
