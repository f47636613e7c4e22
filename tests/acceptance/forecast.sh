#!/usr/bin/env bash
# The subject's issue, sentence by sentence, on real input. Run from anywhere, against a fresh clone: tests/acceptance/forecast.sh [--quick]
# --quick leaves out what trains for minutes.
. "$(dirname "$0")/common.sh"
text="--data $data --source de --target en"
stab="python3 '$root/dev.py'"
studies="$stab studies"
cd "$root"

# — 1 The study
block "beside the package: no item of paper, which says where it is" bash -c "$stab paper forecast 2>&1 | grep -q 'dev.py evidence forecast'"
block "the corpus as designed: 650 runs, every method, depth, rate, warm-up, task, architecture; 60 of other widths" dev test tests/studies/test_corpus.py
block "planned by cost" bash -c "$studies forecast $text --dry-run --out '$work/p' | grep -q 'forecast'"
block "its rows are committed, below 1 MB, and what has a row is not trained again" bash -c "[ \$(stat -c %s docs/forecast.csv) -lt 1000000 ] && $studies forecast $text --rows docs/forecast.csv --dry-run --out '$work/p' | grep -q 'forecast: 0 runs'"
block "the hold-outs were committed before the first fit" bash -c "a=\$(git log --diff-filter=A --format=%ct --follow -- studies/forecast/holdouts.json | tail -1); b=\$(git log --diff-filter=A --format=%ct -- stabkit/results/forecast/coefficients.json | tail -1); [ -n \"\$a\" ] && [ \"\$a\" -lt \"\$b\" ]"
block "coefficients refitted from the rows, features of updates 0 to 16 alone, shuffles at chance" dev test tests/results/test_forecast.py tests/studies/test_evaluation.py
study() { bash -c "$studies forecast $text --rows docs/forecast.csv --json --quiet --out '$work/p' >'$work/study.json'"; }
block "the page, from the rows alone" study
block "  … every number that was asked for is there, and those that are met are met" check study "$work/study.json"
block "  … the figure of the links, each alone and all together, with intervals" bash -c "grep -q 'id=\"figure-which_link\"' '$work'/p/reports/forecast.html"
block "  … the width in the headline" bash -c "grep -o '<p class=\"headline\">[^<]*' '$work'/p/reports/forecast.html | grep -q 'widths'"
block "  … a page under reports/ and a place in the README" bash -c "test -s reports/forecast.html && grep -q 'reports/forecast.html' README.md"

# — 2 In the product
sweep() { bash -c "$stab sweep $text --out '$work/s' --json >'$work/s.json'"; }
[ -n "$quick" ] || block "the default sweep" sweep
[ -n "$quick" ] || block "  … an answer, a word in every cell, forecasts of 16 updates, out of range under the warm-up" check answers "$work/s.json"
[ -n "$quick" ] || block "  … terminal and page lead with the sentence" bash -c "$stab sweep $text --out '$work/s' | head -1 | grep -q '^Without warm-up at 5e-4, forecast for [24][05]0 updates from the first 16, [0-9] seed' && grep -h -o '<p class=\"headline\">[^<]*' '$work'/s/reports/sweep-*.html | grep -q 'Without warm-up at 5e-4'"
block "a given --warmup replaces both; --max-tokens is 256" bash -c "$stab sweep --depths 2 --warmup 0 --dry-run --json --out '$work/q' | python3 -c 'import json,sys; r = json.load(sys.stdin)[\"runs\"]; assert len(r) == 4 and {x[\"spec\"][\"train\"][\"max_tokens\"] for x in r} == {256}'"
block "early and forecast look unlike an outcome; the sentence by hand" dev test tests/report/test_answer.py tests/report/test_matrix.py
block "verified on the default grid: forecast and what became of it" bash -c "grep -q 'verified on Multi30k' reports/forecast.html && grep -c '<td>right</td>' reports/forecast.html"

# — 3 The highest stable rate of each depth
block "the search: by factors of 2, then of √2, every seed" dev test tests/results/test_transfer.py tests/running/test_transfer.py -k highest
block "the papers' claims on tolerated rates have an item" bash -c "$stab paper ls | grep -q 'tables67'"

# — Bad input
block "damaged or foreign coefficients, a file that is no rows: one line with the digest or the line" dev test tests/results/test_forecast.py tests/studies/test_evaluation.py -k "refused"
block "no data, other items beside it, bad --verdict-at: one line" bash -c "cd '$work'; for a in 'paper forecast' 'paper forecast fig4 $text' 'sweep --verdict-at 20 --steps 800' 'sweep --verdict-at 900 --steps 800' 'transfer --models pre-ln --depths 0'; do $stab \$a >out 2>err; c=\$?; [ \$c -eq 2 ] && [ \$(wc -l <err) -eq 1 ] || { echo \"\$a: \$c\"; cat err; exit 1; }; done"
exit $failed
