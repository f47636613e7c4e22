#!/usr/bin/env bash
# The subject's issue, sentence by sentence, on real input. Run from anywhere, against a fresh clone: tests/acceptance/sweep_page.sh [--quick]
# Prints PASS or FAIL a block; exits 1 if any failed. --quick leaves out the blocks that train for minutes.
. "$(dirname "$0")/common.sh"

block "a sweep to look at" bash -c "python3 '$root/dev.py' sweep --depths 2,3 --steps 20 --out '$work/t' --json >'$work/t.json' 2>/dev/null"
# — 1 Figures
block "every figure of the papers as SVG, PNG, PDF and CSV" bash -c "python3 '$root/dev.py' report --store '$work/t' --figures '$work/f' --out '$work/t.html' && for n in grad_start grad_last validation_loss update_method ln_input ln_input_omega grad_norm update update_depth exponent branch_ratio chain; do for k in svg png pdf csv; do test -s '$work/f/'\$n.\$k || exit 1; done; done"
block "frames exact, drawing survives none, one, diverged at step 0, forty" dev test tests/figures
# — 2 Claims
block "at least twelve claims, each with source, number and verdict; each holds, fails and is untested where it should" dev test tests/claims
block "--json holds them; the untested name a command" check claims "$work/t.json" 12
# — 3 and 4 The page, in a browser
block "the page in Chromium: no request, hover, switch, downloads, themes, widths, print, hostile names" dev test tests/report
block "several sweeps in one page" bash -c "python3 '$root/dev.py' sweep --depths 2 --steps 5 --models deepnorm --warmup 0 --out '$work/u' --quiet && python3 '$root/dev.py' report '$work'/t/runs/deepnorm-* '$work'/u/runs/deepnorm-* --out '$work/both.html' && grep -q 'no warm-up' '$work/both.html'"
# — 5 Terminal
block "the verdict matrix and the failing claims, 80 columns" bash -c "COLUMNS=80 python3 '$root/dev.py' sweep --depths 2,3 --steps 20 --out '$work/t' 2>/dev/null | tee '$work/term' | grep -q 'central claims' && ! grep -v '^report:' '$work/term' | grep -qE '^.{81,}'"
# — 6 Evidence
block "reports/ holds both pages, under 5 MB together" bash -c "cd '$root/reports' && test -s multi30k-default.html && test -s multi30k-no-warmup.html && [ \$(cat multi30k-default.html multi30k-no-warmup.html | wc -c) -lt 5000000 ]"
if [ -z "$quick" ]; then
  block "18L-18L with and without warm-up, three seeds" bash -c "python3 '$root/dev.py' sweep --data '$data' --source de --target en --depths 18 --steps 400 --warmup 0,4000 --seeds 0..2 --out '$work/w' --json --quiet >'$work/w.json'"
  block "the sentences of DeepNet §2 that hold there" check hold "$work/w.json" vanishing vanishing-init stuck
  block "the default sweep: under 1.5 MB" bash -c "python3 '$root/dev.py' sweep --data '$data' --source de --target en --out '$work/m' --json --quiet >'$work/m.json' && [ \$(cat '$work'/m/reports/*.html | wc -c) -lt 1500000 ]"
  block "growth and size of the update there" check hold "$work/m.json" smaller vanishing
fi
exit $failed
