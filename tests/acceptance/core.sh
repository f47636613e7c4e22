#!/usr/bin/env bash
# The core issue (values, an API under the command line, research beside the package), sentence by sentence, on real
# input. Run from anywhere, against a fresh clone: tests/acceptance/core.sh [--quick]
# --quick leaves out the captures, which train and render for half an hour. What is not here: twenty questions "where
# would I change …?" to fresh eyes, and an architect's reading, which people do.
. "$(dirname "$0")/common.sh"
cd "$root"
python="$root/.venv/bin/python"
before=ffcc4d4 # what all later versions are compared with

# — 0 captures: the same commands give the same numbers
captures() { # what both versions print, write and exit with, from one store; read what differs
  git clone -q "$root" "$work/before" && git -C "$work/before" checkout -q $before || return 1
  export STABKIT_CAPTURES="$work/captures"
  "$python" tests/acceptance/captures.py take "$work/before" "$work/trained" || return 1
  "$python" tests/acceptance/captures.py take "$work/before" "$work/old" --store "$work/trained/store" || return 1
  "$python" tests/acceptance/captures.py take "$root" "$work/new" --store "$work/trained/store" || return 1
  "$python" tests/acceptance/captures.py compare "$work/old" "$work/new"
}
[ "$quick" ] || block "captures equal but for what the steps say (read the list)" captures

# — 1 frame and prediction apart
block "the page of a probe loads at most 100 of our modules; its verdict no figure, claim or page" dev test tests/report/test_what_a_page_loads.py
block "predicting imports no fitting, and nothing of the studies" dev test tests/results/test_forecast.py -k "imports_no_fitting"
block "matrix, answer and headline are computed once a command" bash -c "[ \$(grep -rnE '[^_.a-z]matrix\(' stabkit --include=*.py | grep -vc 'def matrix') -eq 1 ] && [ \$(grep -rnE '[^_.a-z]headline\(' stabkit --include=*.py | grep -v 'def headline' | grep -vc paper/) -eq 1 ]"

# — 2 values
block "every outcome, label, condition, risk and reason reworded: the same colours, places, verdicts, exit code, next command" dev test tests/report/test_reworded.py
block "no sentence is searched for words that decide" bash -c "! grep -rnE 'AT_RISK|startswith\(\"(timeout|at risk|At )|\.condition\.split|\.label == \"|== \"(Post-LN|DeepNorm|ADMIN)\"' stabkit --include=*.py"
block "a lost job's kind is a value" bash -c "grep -q 'kind' stabkit/*/executors/base.py && ! grep -rn 'reason.startswith\|partition(\" (attempt' stabkit --include=*.py"

# — 3 studies beside the package
block "the wheel is without studies, the studies' libraries are no dependency" dev test tests/test_package.py -m "slow or not slow"
block "stabkit imports neither studies nor their libraries" bash -c "! grep -rnE '^ *(from|import) (studies|scipy|sklearn)' stabkit --include=*.py"
block "dev.py evidence forecast calls them" bash -c "grep -q '\"-m\", \"studies\"\|studies' benchmarks/evidence.py"

# — 4 a Python API that the command line calls
block "one place of an option: api.py" test -s stabkit/api.py
block "no function takes **options: Any" bash -c "! grep -rn 'options: Any' stabkit --include=*.py"
block "stabkit.probe() in a fresh process imports neither typer nor matplotlib" dev test tests/test_api.py -k "fresh_process"
block "what a function returns has .runs, .verdict, .page and _repr_html_; an editor and mypy know names and choices" dev test tests/test_api.py -m "slow or not slow"
block "an option is one line in a signature, with its help and panel" bash -c "! ls stabkit/cli/flags.py stabkit/cli/options.py stabkit/library stabkit/cli/parsing 2>/dev/null"

# — 5 one shelf, one plan
block "one generic shelf; a store of 1.0.0 is read and written again, bit for bit" dev test tests/storage
block "a probe is one file and one row" dev test tests/probes

# — 6 pictures as values
block "a picture is one value; the tables hold values" dev test tests/figures/test_figures.py
block "no private matplotlib, no second process, no lean SVG" bash -c "! ls stabkit/figures/quick/panel.py stabkit/figures/drawing/lean.py stabkit/report/drawn.py 2>/dev/null"

# — 7 names
block "a public class name exists once" dev test tests/test_names.py
block "the map of the code is made from the package" dev test tests/test_docs.py -k "architecture or map or rooms"

block "a small module of one neighbour is part of it" dev test tests/test_architecture.py
block "fold is one file; BLEU stays" bash -c "test -f stabkit/model/fold.py && test -f stabkit/quality/decode.py"
block "claims that no such run could decide are one line of a page" dev test tests/report/test_html.py -k "no_such_run"

# — what it must show
block "README's commands, lint, types, rooms" dev lint
block "lines (read them): about 32,000 in the package, 3,500 in studies" bash -c "find stabkit -name '*.py' | xargs cat | wc -l; find studies -name '*.py' | xargs cat | wc -l; find stabkit -name '*.py' | wc -l"
[ "$quick" ] || block "the mutants: no smaller share killed (read the number)" "$python" benchmarks/mutants.py fates core
exit $failed
