#!/usr/bin/env bash
# The issue "Does it hold at the size people train?", a block a sentence.
#
# Left: Muon's twenty recipes at width 512 (flat ones first; about 20 minutes of a core each), logits at width 256 (14
# trainings of 7 minutes): python -m studies.ladder train|curves --data DIR; then judge, and the numbers of COPIED in
# stabkit/results/own/cell.py, README.md and SKILL.md (a test counts them).
. "$(dirname "$0")/common.sh"
export PYTHONPATH=$root
study() { (cd "$root" && "$bin/python" -m studies.ladder "$@"); }
page() { tr -s '\n ' ' ' <"$root/$2" | grep -qE -- "$1"; }
python3 - "$root/docs/own_model.md" >model.py <<'M'
import re, sys
code = re.findall(r"```python\n(.*?)```", open(sys.argv[1], encoding="utf-8").read(), re.S)[0]
print(code.replace("def gpt(depth):", "def gpt(depth, width=64):").replace("return GPT(depth)", "return GPT(depth, width)"))
M

block "1. forty recipes, ten schemes, two optimisers, three depths, with and without warm-up, by a seed" "$bin/python" -c "
from studies.ladder.design import recipes
own = recipes()
assert len(own) == 40 and len({r.setup.scheme for r in own}) == 10 and {r.setup.optimizer for r in own} == {'adamw', 'muon'}
assert {r.setup.depth for r in own} == {8, 16, 24} and {r.setup.warmup for r in own} == {0, 50}"
block "1. all cells of 64 to 256 have rows, and 20 of 40 recipes at 512" study count --asked
block "2. docs/ladder.md is what the rows give" study judge --check
block "2. … with the words at 64 kept, root and whole, at 256 and at the width itself, and the settings as a baseline" bash -c "
  grep -q 'kept' '$root/docs/ladder.md' && grep -q 'settings' '$root/docs/ladder.md' && grep -qi 'by scheme' '$root/docs/ladder.md'"
block "2. README, SKILL and probe's note say what came out, with its n" bash -c "
  grep -q 'docs/ladder.md' '$root/README.md' && grep -qE '[0-9]+ of [0-9]+' <(grep -i 'width' '$root/SKILL.md')"
block "3. probe --widths says words by width, the law of the highest rate that trains, and what is expected" \
  says 'trains at 32 to 128 wide.*highest rate that trains goes as d.*At 1024 wide' \
  stab probe model:gpt --widths 32,64,128 --depths 24 --seeds 0 --lr 1e-2 --time 300 --predict 1024 --out p
block "4. docs/verdict.md names what sixteen updates cannot see, with the alarm and the update" \
  page 'cannot see.*attention-logit growth.*`logits`.*output-logit drift.*late spikes.*data' docs/verdict.md
block "4. … and every answer's fold does" bash -c "grep -qi 'attention-logit growth' p/reports/*.html"
block "4. watch warns by what comes out: the limit is what the trainings of 250 updates choose, its record the others'" \
  "$bin/python" -m pytest -q "$root/tests/studies/test_ladder.py" -k 'alarm or rows' -p no:cacheprovider
block "4. 5. 6. the curve, the two slopes with intervals, the count of 48 cells" bash -c "
  grep -q 'rank correlation' '$root/docs/ladder.md' && grep -q 'Over depth the sensitivity goes as N' '$root/docs/ladder.md' &&
  grep -q 'Over width the sensitivity goes as d' '$root/docs/ladder.md' &&
  grep -qE '[0-9]+ false alarms of 48' '$root/docs/ladder.md'"
block "5. transfer prints it" says 'LR sensitivity.*nats' stab transfer model:gpt --depths 2,4 --steps 40 --seeds 0 --lr 1e-3..1e-1 --out t
block "7. benchmarks/gpu.sh" bash -n "$root/benchmarks/gpu.sh"
block "7. … says which stage it has not" ends 2 bash "$root/benchmarks/gpu.sh" . nothing
block "docs/width.md has no table of rates that were forecast and never trained" bash -c "! grep -qi 'forecast' '$root/docs/width.md'"
exit $failed
