#!/usr/bin/env bash
# The issue "Does it hold at the size people train?", a block a sentence.
. "$(dirname "$0")/common.sh"
export PYTHONPATH=$root
study() { (cd "$root" && "$bin/python" -m studies.ladder "$@"); }
page() { tr -s '\n ' ' ' <"$root/$2" | grep -qE -- "$1"; }
cat >model.py <<'M'
from tests.own.carried_models import tiny as gpt  # noqa
M

block "1. forty recipes, ten schemes, two optimisers, three depths, with and without warm-up, by a seed" "$bin/python" -c "
from studies.ladder.design import recipes
own = recipes()
assert len(own) == 40 and len({r.setup.scheme for r in own}) == 10 and {r.setup.optimizer for r in own} == {'adamw', 'muon'}
assert {r.setup.depth for r in own} == {8, 16, 24} and {r.setup.warmup for r in own} == {0, 50}"
block "1. all cells of 64 to 256 have rows, and 20 of 40 recipes at 512" study count --asked
block "2. docs/ladder.md is what the rows give" study judge --check
block "2. … with the words at 64 kept, root and whole, at 256 and at the width itself, and the settings as a baseline" bash -c "
  grep -q 'kept' '$root/docs/ladder.md' && grep -q 'settings' '$root/docs/ladder.md' && grep -q 'by scheme' '$root/docs/ladder.md'"
block "2. README, SKILL and probe's note say what came out, with its n" bash -c "
  grep -q 'docs/ladder.md' '$root/README.md' && grep -qE '[0-9]+ of [0-9]+' <(grep -i 'width' '$root/SKILL.md')"
block "3. probe --widths says words by width, the law of the highest rate that trains, and what is expected" \
  says 'trains.*highest rate.*d\^.*96 wide' stab probe model:gpt --widths 16,32,64 --depths 4 --seeds 0 --predict 96 --no-fail --out p
block "4. docs/verdict.md names what sixteen updates cannot see, with the alarm and the update" page 'cannot see.*attention logit.*late spike.*data' docs/verdict.md
block "4. … and every answer's fold does" bash -c "grep -qi 'attention logit' p/reports/*.html"
block "4. the curve of the largest logit against the end" study logits --check
block "5. two slopes of the sensitivity with intervals" study sensitivity --check
block "5. transfer prints it" says 'sensitivity' stab transfer model:gpt --depths 2,4 --steps 40 --seeds 0 --lr 1e-3..1e-1 --out t
block "6. 48 cells of others, false alarms counted" study others --check
block "7. benchmarks/gpu.sh" bash -n "$root/benchmarks/gpu.sh"
block "docs/width.md no longer has the forecast tables" bash -c "! grep -q 'forecast' '$root/docs/width.md'"
exit $failed
