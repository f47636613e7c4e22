#!/usr/bin/env bash
# Findings that survive, sentence by sentence. Run from anywhere, against a fresh clone: tests/acceptance/findings.sh
# [--quick]; --quick leaves out what takes more than a minute.
. "$(dirname "$0")/common.sh"
cd "$root"
dev --version >/dev/null 2>&1 && dev libraries >/dev/null 2>&1
python="$root/.venv/bin/python"
text="--data $data --source de --target en"
ask() { "$python" - "$@"; }

# 1 The list
block "every sentence has condition, seeds, command, file and column; README, results and headlines say nothing else" dev test tests/test_findings.py tests/test_readme.py
block "results.md is written from the list" bash -c "$python -m studies.findings.listed && git diff --exit-code docs/results.md"
block "a sentence that compares outcomes names rate, warm-up, updates and seeds" bash -c "$python -m stabkit sweep --models post-ln,deepnorm --depths 6 --steps 250 --warmup 0 --out '$work/s' --quiet | tr '\n' ' ' | grep -q 'Without warm-up at 5e-4, after 250 updates, 1 seed, synthetic task'"

# 2 Tried to be broken
block "every cell filled or said why not" bash -c "! grep -n 'not run yet' docs/findings.md"

# 3 Near the line
block "a sweep says what ends near the line and what decides it" dev test tests/report/test_answer.py

# 4 The forecast's overconfidence
block "4 of 5 bins come true on groups that the repair has not seen, 60 % are decided" ask <<'PY'
from pathlib import Path
from studies.forecast.evaluation import Evaluation
from studies.rows import from_csv
found = Evaluation(from_csv(Path("docs/forecast.csv")))
assert found.calibrated() >= 4 and found.pooled().scores.coverage >= 0.6
PY
block "the package's coefficients are the widened ones" dev test tests/studies/test_evaluation.py

# 5 The second referee's list
block "F1 to F17 have an answer each" bash -c "for i in \$(seq 1 17); do grep -q \"^| F\$i \" docs/referee.md || exit 1; done"
block "F2 baselines beside the forecast, the headline what it adds" bash -c "grep -q '16 updates predict which runs of a new method train' reports/forecast.html && grep -q 'settings' reports/forecast.html"
block "F2 the docs have the same table" dev test tests/studies/test_later.py
block "F7 a horizon in every sentence that forecasts" bash -c "$python -m stabkit sweep --models deepnorm --depths 6 --warmup 0 --steps 16 --out '$work/s' --quiet | tr '\n' ' ' | grep -q 'forecast for 400 updates from the first 16'"
block "F7 a rate too low to train by then is out of range" bash -c "$python -m stabkit sweep --models deepnorm --depths 6 --warmup 0 --steps 16 --lr 1e-4 --out '$work/s' --quiet | grep -q 'out of range'"
block "F5 Depth-μP with the embedding's rate apart" bash -c "grep -q '^| \\*\\*Depth-μP has a lower loss than Pre-LN, embedding rates searched apart' docs/findings.md"
block "F11, F12 one rule of reach, one of single seeds" dev test tests/claims
block "F15 intervals know how little text there is" ask <<'PY'
from stabkit.results.intervals import drawn
from studies.recent.table import TOKENS
assert 0.04 < drawn(TOKENS) < 0.06
PY
exit $failed
