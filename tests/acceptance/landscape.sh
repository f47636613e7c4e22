#!/usr/bin/env bash
# The subject's issue, sentence by sentence, on real input. Run from anywhere, against a fresh clone: tests/acceptance/landscape.sh [--quick]
# Prints PASS or FAIL a block; exits 1 if any failed. --quick leaves out the blocks that train for minutes.
. "$(dirname "$0")/common.sh"
text="--data $data --source de --target en"

# — 1 Directions
block "filter, layer, model, none; rows, embeddings, vectors at rest; orthogonal; PCA, Hao; projection" dev test tests/surface/test_directions.py
# — 2 Surfaces
block "exact middle, absolute points, NaN kept, three rulers, roughness" dev test tests/surface tests/surface/test_landscape.py
# — 3 Defaults
if [ -z "$quick" ]; then
  block "the flagship command, under four minutes" timeout 240 python3 "$root/dev.py" landscape --model deepnorm $text --out "$work/s" --json --quiet
  cp "$work/log" "$work/s.json"
  block "six-fold, two-fold and not at all (diagnostics.md): the ratios by ruler" check rulers "$work/s.json"
  block "the same again trains and draws nothing" bash -c "python3 '$root/dev.py' landscape $text --out '$work/s' 2>&1 >/dev/null | grep -q '26 cached, 0 to draw'"
  block "Fig. 5: three depths, at most 8 MB" bash -c "python3 '$root/dev.py' landscape --depths 6,18,50 $text --out '$work/s' --quiet | tee '$work/five' && page=\$(sed -n 's/^report: //p' '$work/five') && [ \$(stat -c %s \"\$page\") -lt 8000000 ] && grep -q 'figure-path_plane' \"\$page\""
fi
# — 4 Trajectory
block "snapshots at their own weights and at their projections, and what lies outside" dev test tests/surface/test_landscape.py -k "path or middle"
# — 5 loss-landscapes
block "a metric of the library unchanged; both engines agree; the seven regressions" dev test tests/surface/test_anymodel.py
block "--engine loss-landscapes" dev test tests/surface/test_landscape.py -k librarys
# — 6 Any model
block "--factory, --weights" dev test tests/own/test_factory.py
# — 7 Fast
block "a finished tile is not computed again" dev test tests/surface/test_landscape.py -k tile
[ -n "$quick" ] || block "1.8 times the library's own loop (idle machine)" bash -c "cd '$root' && .venv/bin/python benchmarks/landscape.py | tee '$work/bench' && awk '/^median/ {exit !(\$2 >= 1.8)}' '$work/bench'"
# — 8 Pictures
block "in a browser: unpacked when seen, nothing fetched, light and dark, 400 pixels" dev test -m "slow or not slow" tests/report/test_report_in_browser.py -k surface
# — 9 Claims
block "Fig. 1 and Fig. 5 as claims under all rulers" dev test tests/claims/test_surface_claims.py
# — 10 Evidence
block "the page under reports/, under 12 MB, linked from the results" bash -c "cd '$root' && [ \$(cat reports/multi30k-landscape*.html | wc -c) -lt 12000000 ] && grep -q multi30k-landscape docs/results.md"
# — Bad input
block "bad input" dev test tests/surface/test_landscape.py tests/own/test_factory.py -k "bad or named or differs or stranger"
exit $failed
