#!/usr/bin/env bash
# The subject's issue, sentence by sentence, on real input. Run from anywhere, against a fresh clone: tests/acceptance/found.sh [--quick]
# --quick leaves out what installs from empty or trains for minutes.
. "$(dirname "$0")/common.sh"
stab="python3 '$root/dev.py'"
python="$root/.venv/bin/python"
cd "$root"

# — 1 README
block "one screen and a half: at most 150 lines" bash -c "[ \$(wc -l < README.md) -le 150 ]"
block "its commands, its sample that ends in a cure, its limits" dev test tests/test_readme.py
block "what was found: five sentences, each with its page" bash -c "[ \$(sed -n '/^## What was found/,/^What each became/p' README.md | grep -c '^- ') -eq 5 ]"

# — 2 a lighter installation
block "libraries" dev libraries
block "a command that needs an extra says which; a sweep on the synthetic task needs none" dev test tests/test_extras.py
block "time and size of both, from empty, in docs/start.md" bash -c "grep -qE '[0-9]+ MB' docs/start.md && grep -q 'papers' docs/start.md"
light() {
  python3 -m venv "$work/light" && "$work/light/bin/pip" install -q "torch==2.13.0+cpu" "$root" transformers &&
    "$work/light/bin/python" -c "import importlib.util as u; assert not any(map(u.find_spec, ('sentencepiece', 'sacrebleu')))"
}
first() ( # a first verdict on transformers' GPT-2, at most a minute of it ours
  cd "$work" && sed -n '/^# model.py/,/^```/p' "$root/README.md" | sed '$d' > model.py && SECONDS=0 &&
    "$work/light/bin/stabkit" probe model:gpt --depths 6,12,24 --no-fail && [ $SECONDS -le 60 ]
)
[ -n "$quick" ] || block "wheel to first verdict: an empty environment" light
[ -n "$quick" ] || block "  … and a verdict on a transformers GPT-2 within a minute" first

# — 3 the site
block "the site builds strictly; it prints where it is" bash -c "$stab docs 2>&1 | tee '$work/site' ; grep -q 'the site: ' '$work/site'"
block "no dead link on a forge; the generated pages are those of the program" dev test tests/test_docs.py -k 'not tutorial'
block "API pages from typed signatures; the version in the header" bash -c "grep -q 'class=\"sig' docs/_build/html/api.html && grep -q 'stabkit [0-9]' docs/_build/html/index.html"

# — 4 where people work
block "the notebook runs" dev test tests/test_notebook.py -m "slow or not slow or libraries"
block "trackers: TensorBoard, Weights & Biases, MLflow, Trackio, offline" dev test tests/own/test_writers.py -m "slow or libraries"
block "recipes of at most 20 lines, as printed" dev test tests/test_recipes.py -m "slow or not slow or libraries"
block "export --to parquet" dev test tests/storage/test_export.py -m "slow or not slow or libraries"

# — 5 CI that gates
block "the tutorial's example ends with 7 for the bad change and 0 for the good one" dev test tests/test_docs.py -k ci -m "slow or not slow"
block "--baseline, --update-baseline, --strict, annotations, a step summary, action.yml" dev test tests/cli -k "gate or baseline or annotation or action" -m "slow or not slow"

# — 6 agents as users
block "a JSON Schema of every --json, made from the types" dev test tests/report/test_schemas.py -m "slow or not slow"
block "stabkit schema sweep" bash -c "$stab schema sweep | python3 -c 'import json, sys; assert json.load(sys.stdin)[\"title\"]'"
block "llms.txt on the site, SKILL.md" bash -c "test -s SKILL.md && test -s docs/_build/html/llms.txt"
running() ( # a training that goes on, read from outside
  cd "$work" && cat > live.py <<'P'
import time, torch, stabkit
from torch import nn
model = nn.Sequential(*[nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True) for _ in range(3)])
optimizer = torch.optim.AdamW(model.parameters())
watch = stabkit.watch(model, optimizer, out="live")
for _ in range(600):
    optimizer.zero_grad(), model(torch.randn(2, 8, 16)).pow(2).mean().backward(), optimizer.step(), time.sleep(0.1)
P
  "$python" live.py 2> live.log & live=$!
  for _ in $(seq 120); do [ -n "$(ls live/own 2>/dev/null)" ] && break; sleep 0.5; done
  "$root/.venv/bin/stabkit" runs show "$(ls live/own)" --out live --json | python3 -c 'import json, sys; d = json.load(sys.stdin); assert not d["ended"] and d["records"]["update"], d'
  said=$?; kill -0 $live && kill $live; exit $said
)
block "runs show WATCH --json of a running training" running

# — 7 evidence by this version
block "every committed page is by its row's command and this version" dev test tests/report/test_committed.py
block "13 MB at most" bash -c "[ \$(cat reports/*.html reports/*/*.html | wc -c) -le 13000000 ]"
block "1.1.0, in the changelog" bash -c "$stab --version | grep -q '1\.1\.0' && grep -q '^## 1\.1\.0' docs/changelog.md"
exit $failed
