#!/usr/bin/env bash
# A verdict with a known error rate, and the change that mends it: sentence by sentence, on real input. Run from anywhere,
# against a fresh clone: tests/acceptance/verdict.sh [--quick]
# --quick leaves out what trains for minutes. The corpus' text is that of STABKIT_MULTI30K (../shared/data beside the clone).
. "$(dirname "$0")/common.sh"
cd "$root"
python="$root/.venv/bin/python"
own() { (cd "$root" && "$python" -m studies.own "$@"); }
probe() { "$python" -m stabkit probe "tests.own.probe_models:$1" --out "$work/out" "${@:2}"; }
export -f probe; export python work

# — 1 fresh batches and a schedule
block "loss(model, step), (loss, batches), none; one batch is said; the chain on a batch of its own" dev test tests/own/test_batches.py
block "--warmup, a scheduler as fourth value; the sentence says without warm-up" bash -c "cd '$root'; probe post_ln --depths 4 --seeds 0 --no-cures | tr '\n' ' ' | grep -q 'without warm-up' && probe post_ln_warm --depths 4 --seeds 0 --no-cures | tr '\n' ' ' | tr -s ' ' | grep -q 'with a warm-up of 50 updates'"
block "a loss that ignores the step works, and what that hides is said" bash -c "cd '$root'; probe one_batch --depths 4 --seeds 0 | tr '\n' ' ' | tr -s ' ' | grep -q 'learn it by heart'"
# — 2 the corpus
block "at least 400 trainings of the design, besides those that judge" own count --at-least 400
again() { # two cases trained anew: same outcomes, same first loss
  own train --data "$data" --rows "$work/again.csv" --minutes 0.05 && "$python" - "$work/again.csv" <<'PY'
import sys
from pathlib import Path
from studies.own import corpus
rows = corpus.read(Path("docs/own_corpus.csv"))
made = corpus.read(Path(sys.argv[1]))
assert len(made) >= 2 and all(
    row.ends == rows[n].ends and abs(row.measured.loss_start - rows[n].measured.loss_start) < 1e-3 for n, row in made.items()
)
PY
}
[ "$quick" ] || block "two rows made again are the rows" again
# — 3 the verdict is a forecast
block "the package's coefficients are the fit of the committed rows" dev test tests/studies/test_own_corpus.py
block "words, probability, n, right; exit 7 likely stuck, 8 under --strict" dev test tests/cli/test_probe_command.py
block "links pass or fail, each with the range of models that train" dev test tests/results/test_own.py
block "no warn is left" bash -c "! grep -rn '\"warn\"' stabkit/results/own stabkit/report/own"
block "sweep's forecast and probe's share one implementation" bash -c "grep -q 'results.forecast.logistic import' stabkit/results/own/forecast.py && grep -q 'results.forecast.logistic import' stabkit/results/forecast/model.py"
# — 4 what it is worth
block "docs/verdict.md is what the judging part gives" own judge --check
block "… beside the answer, in the JSON" bash -c "cd '$root'; probe pre_ln --depths 4 --seeds 0 --json | '$python' -c 'import json, sys; f = json.load(sys.stdin)[\"forecast\"]; assert f[\"n\"] >= 20 and f[\"right\"] <= f[\"n\"]'"
# — 5 the change that mends it
block "changes on a copy, cheapest first, a time limit, --no-cures; the page's table" dev test tests/own/test_changes.py
block "a deep Post-LN: a change that reaches likely trains, with its line of code" bash -c "cd '$root'; probe post_ln --depths 24 --seeds 0 --cure-time 300 --json --no-fail | '$python' -c 'import json, sys; d = json.load(sys.stdin); assert d[\"verdict\"] != \"likely trains\" and any(c[\"word\"] == \"likely trains\" for c in d[\"cures\"]), d[\"answer\"]'"
block "on the judging part: at least 40 models with a cure, 0.85 of which then train" own cured --at-least 40 --share 0.85
block "ten failing models, a page each" bash -c "[ \$(ls '$root'/reports/case-*.html | wc -l) -ge 10 ]"
# — 6 watch
block "alarms on the corpus, judged" bash -c "grep -q 'Alarms of a watch' docs/verdict.md"
block "a loss at the level of frequencies, a jump of a step; a warning names what to try" dev test tests/results/test_own_alarms.py
# — 7 words and pictures
block "captions say what this picture shows; an interval too wide is no exponent; next:" dev test tests/figures/test_own.py tests/report/test_own_words.py
# — what it must show
block "zoo: no model that trains is called likely stuck" bash -c "! grep -q 'likely stuck and trains' '$root/docs/library_models.md'"
# the cost beside an older checkout: git worktree add OLD 6c266e7; python benchmarks/probe_cost.py OLD
block "precision, recall, decided, AUC on the judging part (what is missed is named in docs/verdict.md)" own judge --asked
exit $failed
