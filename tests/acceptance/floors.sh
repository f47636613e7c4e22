#!/usr/bin/env bash
# The house (issue: one floor for values, one for sentences, one for drawing): rooms, their order, their budget.
. "$(dirname "$0")/common.sh"
cd "$root"
count() { find "$1" -name '*.py' -exec cat {} + | wc -l; }

block "rooms in one order, no circle, claims know no figure" "$bin/lint-imports" --no-cache
block "each room within its budget of lines" "$bin/python" -c "import dev; raise SystemExit(dev.budget())"
block "the rules of a verdict stand once: the study calls the command's" "$bin/python" -m pytest -q tests/studies/test_own_corpus.py -k "word or page"
block "names are the field's" "$bin/python" -m pytest -q tests/test_names.py
block "no room below the command line prints; help loads nothing heavy" "$bin/python" -m pytest -q tests/test_architecture.py
block "no wording decides anything" "$bin/python" -m pytest -q -m "slow or not slow" tests/report/test_reworded.py
block "stabkit at most 42,000 lines in 340 files" bash -c "[ $(count stabkit) -le 42000 ] && [ $(find stabkit -name '*.py' | wc -l) -le 340 ]"
block "studies at most 6,000" [ "$(count studies)" -le 6000 ]
block "tests at most 27,000" [ "$(count tests)" -le 27000 ]
block "benchmarks at most 3,500" [ "$(count benchmarks)" -le 3500 ]
exit $failed
