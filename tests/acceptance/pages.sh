#!/usr/bin/env bash
# The subject's issue, sentence by sentence, on real input. Run from anywhere, against a fresh clone: tests/acceptance/pages.sh [--quick]
# --quick leaves out what trains for minutes.
. "$(dirname "$0")/common.sh"
stab="python3 '$root/dev.py'"
python="$root/.venv/bin/python"
cd "$root"
text="--data '$data' --source de --target en"
page() { ls "$work/$1"/reports/*.html | head -1; }
holds() { grep -q -- "$2" "$(page "$1")"; }
lacks() { ! holds "$1" "$2"; }
open_cards() { # cards that stand before the first folded section
  "$python" - "$(page "$1")" "$2" <<'P'
import sys
text = open(sys.argv[1], encoding="utf-8").read()
count = text.partition('<details class="fold"')[0].count('<article class="card"')
assert 1 <= count <= int(sys.argv[2]), count
P
}

# — 1 headline by command, matrix, three figures, the rest folded
block "a sweep" bash -c "$stab sweep --models post-ln,deepnorm --depths 6,18 --steps 60 --warmup 0 --out '$work/sweep' -q"
block "a landscape" bash -c "$stab landscape --model deepnorm --against post-ln --depths 2 --steps 40 --warmup 0 --points 7 --out '$work/landscape' -q"
block "an ablation" bash -c "$stab ablate --model deepnorm --alpha-scale 0.5,1,2 --depths 2 --steps 60 --warmup 0 --out '$work/ablate' -q"
block "slopes" bash -c "$stab slope --models post-ln,deepnorm --depths 2,6,12 --out '$work/slope' -q"
block "  sweep: who trains where" holds sweep 'Does it stay stable at this depth?'
block "  landscape: how rough, by whose ruler" holds landscape 'class="headline">[^<]*loss surface'
block "  ablate: how far off" holds ablate 'class="headline">[^<]*α'
block "  slope" holds slope 'class="headline">[^<]*SGD step'
for kind in sweep landscape ablate slope; do block "  $kind: three figures stand open" open_cards $kind 3; done
block "opened by a click, by printing, by a link and by search" dev test -m "slow or not slow" tests/report/test_report_in_browser.py -k 'paper or pointing or downloads'

# — 2 the cell
block "the cell shows what decides; sorted on request; the best marked" dev test -m "slow or not slow" tests/report/test_matrix.py tests/report/test_report_in_browser.py -k 'cell or sorted or saturated or lowest'

# — 3 figures that have nothing to show
block "one line says which and what they need" holds sweep 'class="needs"'
block "marks are explained where they are drawn" lacks sweep '✕: diverged'

# — 4 many methods
block "of many methods three are in colour" dev test -m "slow or not slow" tests/report/test_report_in_browser.py -k 'colour'
block "colours for protanopia, deuteranopia and grey print" dev test tests/figures -k 'protanopia'

# — 5 paper
block "an index and a page an item; one file on request" dev test tests/paper/test_paper.py -k "index or order or command"

# — 6 to be shared
block "title and description from the answer" bash -c "grep -q '<meta name=\"description\" content=\"[^\"]*surface' '$work'/landscape/reports/*.html"
block "names that say command and grid" bash -c "ls '$work/sweep/reports' | grep -qE '^sweep-6L-18L-post-ln-deepnorm-[0-9a-f]{4}.html$'"

# — 7 phone, print, screen reader
block "axe-core, narrow screens, paper" dev test -m "slow or not slow" tests/report/test_report_in_browser.py

# — 8 sizes
block "8 MB at most" bash -c "! find '$work' reports -name '*.html' -size +8M | grep ."
exit $failed
