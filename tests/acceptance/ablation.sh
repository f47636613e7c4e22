#!/usr/bin/env bash
# The subject's issue, sentence by sentence, on real input. Run from anywhere, against a fresh clone: tests/acceptance/ablation.sh [--quick]
# Prints PASS or FAIL a block; exits 1 if any failed. --quick leaves out the blocks that train for minutes.
. "$(dirname "$0")/common.sh"
text="--data $data --source de --target en"
plan() { dev ablate "$@" --dry-run --json --out "$work/none" >"$work/plan.json"; }

# — The command
block "neither option: nine runs of DeepNorm at 18L-18L, lr 2e-3, no warm-up, 250 steps, factors exact" bash -c "python3 '$root/dev.py' ablate --dry-run --json --out '$work/none' >'$work/plan.json' && python3 '$root/tests/acceptance/check.py' nine '$work/plan.json'"
block "one option alone, --grid, spans and lists" dev test tests/cli/test_ablate.py -k "axis or scales"
block "what is refused (F17), and methods without α and β" dev test tests/cli/test_ablate.py -k "refused or without"
block "grid and sweeps share runs; factors of 1 are the very run of sweep; bits exact in the store" dev test tests/cli/test_ablate.py -k shares
if [ -z "$quick" ]; then
  block "Fig. 9 in two seeds, and Table 11 at warm-up 0 and 150, on real text" bash -c "python3 '$root/dev.py' ablate --seeds 0,1 --drop deepnorm,init $text --out '$work/s' --json --quiet >'$work/s.json' && python3 '$root/tests/acceptance/check.py' fig9 '$work/s.json'"
  block "the sweep's own rate: only half of Fig. 9 (diagnostics.md), said so" bash -c "python3 '$root/dev.py' ablate --lr 5e-4 --alpha-scale 0.25,1,4 $text --out '$work/s' --json --quiet >'$work/h.json' && python3 '$root/tests/acceptance/check.py' half '$work/h.json'"
  block "the same again trains nothing" bash -c "python3 '$root/dev.py' ablate --seeds 0,1 --drop deepnorm,init $text --out '$work/s' 2>&1 >/dev/null | grep -q 'reused 28, new 0'"
  block "every figure of the ablation as SVG, PNG, PDF and CSV" bash -c "python3 '$root/dev.py' report --store '$work/s' --figures '$work/f' --out '$work/s.html' && for n in ablation table11 scale_map boundary; do for k in svg png pdf csv; do test -s '$work/f/'\$n.\$k || exit 1; done; done && grep -q 'figure-scale_map' '$work/s.html' && grep -q 'figure-boundary' '$work/s.html'"
fi
# — The report
block "heat maps, boundary, Table 11: exact frames, drawing survives" dev test tests/figures
block "the paper's sentences as claims, each holding, failing and untested where it should" dev test tests/claims
block "the README says it" bash -c "grep -q 'stabkit ablate' '$root/docs/results.md' && ls '$root'/reports/multi30k-ablation.html"
exit $failed
