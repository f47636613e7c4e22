#!/usr/bin/env bash
# The subject's issue, sentence by sentence, on real input. Run from anywhere, against a fresh clone: tests/acceptance/methods.sh [--quick]
# Prints PASS or FAIL a block; exits 1 if any failed. --quick leaves out the blocks that train for minutes.
. "$(dirname "$0")/common.sh"
text="--data $data --source de --target en"

# — 1 Methods
block "every method against its published numbers and a second, obvious implementation" dev test tests/methods tests/model
block "sweep --models all trains every method, one base initialisation and one rate" dev sweep --models all --depths 6 --steps 3 --out "$work/all" --json --quiet
cp "$work/log" "$work/all.json"
block "twelve methods, one base, one rate, one warm-up" check shared "$work/all.json"
block "--recipe paper: own base, rate and warm-up, and the page says so" bash -c "python3 '$root/dev.py' sweep --models all --recipe paper --depths 2 --steps 2 --out '$work/paper' --quiet | tee '$work/out' && grep -q 'by its own recipe' \$(sed -n 's/^report: //p' '$work/out')"
# — 2 Architectures
for arch in encoder-only decoder-only; do
  block "--arch $arch, synthetic" dev sweep --arch $arch --models all --depths 6 --steps 3 --out "$work/$arch" --quiet
  block "--arch $arch, real text" dev sweep --arch $arch --models post-ln,deepnorm,sub-ln --depths 6 --steps 3 $text --out "$work/$arch-text" --quiet
done
block "N ≠ M" dev sweep --models all --depths 6x2,2x6 --steps 2 --out "$work/unequal" --quiet
block "what is not defined is refused with reason and source" bash -c "! python3 '$root/dev.py' sweep --arch encoder-only --models t-fixup --depths 6 2>&1 | tee /dev/stderr | grep -q Traceback && python3 '$root/dev.py' sweep --arch encoder-only --models t-fixup --depths 6 2>&1 | grep -q 'Huang'"
# — 3 Optimisers and schedules
for optimizer in adam sgd radam radam-torch; do
  block "--optimizer $optimizer, warm-up and none" dev sweep --optimizer $optimizer --depths 6 --steps 8 --warmup 0,4000 --out "$work/$optimizer" --quiet
done
block "RAdam as in its paper and as in torch" dev test tests/training/test_optim.py
# — 4 stabkit methods
block "the table" dev methods
block "every constant at 100L-100L" bash -c "python3 '$root/dev.py' methods deepnorm --depths 100x100 | tee /dev/stderr | grep -q '3.4157'"
block "--json" bash -c "python3 '$root/dev.py' methods --json | python3 -c 'import json, sys; assert len(json.load(sys.stdin)[\"methods\"]) == 12'"
block "an unknown name gets the nearest" bash -c "python3 '$root/dev.py' methods deepnrom 2>&1 | grep -q \"did you mean 'deepnorm'\""
# — 5 Theory beside measurement
block "slope of one SGD step, ranked at every depth" bash -c "python3 '$root/dev.py' slope --depths 6,18,50 --out '$work/slope' --json --quiet >'$work/slope.json'"
block "Post-LN at least ten times DeepNorm" check slope "$work/slope.json"
block "in float32, 1e-4 and 1e-5 within 5 %" bash -c "python3 '$root/dev.py' slope --depths 6 --models post-ln,deepnorm --dtype float32 --out '$work/slope32' --quiet | grep -q 'agree'"
block "R² of predicted against measured, Theorem 4" dev test tests/results/test_theorem.py tests/figures/depth/test_slope.py
# — 6 Folding back: a recipe
block "exact to rounding in float64" dev test -m slow tests/test_recipes.py -k fold
# — 7 Audit
block "defects named, correct models without a false alarm" dev test tests/own/test_audit.py
# — 8 ADMIN's own diagnostics
block "dependency, perturbation, its fits" dev test tests/probes tests/figures -k "dependency or perturbation"
# — 9 Report
block "a convergence table in the shape of Table 1" dev test tests/figures/methods/test_table1.py
block "all methods in one page, in a browser, by group" dev test -m "slow or not slow" tests/report/test_report_in_browser.py
# — Tests
block "every method, 6 and 100 layers, every architecture, every tap" dev test tests/methods/test_every_method.py -m "slow or not slow"
exit $failed
