#!/usr/bin/env bash
# The first minutes: help, a first sweep, its page, and what a typo is answered.
. "$(dirname "$0")/common.sh"
tiny="--depths 2 --steps 2 --hidden 16 --ffn 24 --vocab 200 --max-tokens 128"

block "the version" says '^stabkit [0-9]' stab --version
block "help names the commands" says 'sweep.*probe.*audit' stab --help
block "a sweep answers, writes a page and says what is next" says 'report: .*html next: stabkit' stab sweep $tiny --out s
block "the same again trains nothing" says 'nothing to train' stab sweep $tiny --out s
block "a page is one file without a network" bash -c '! grep -qE "(src|href)=\"https?://[^\"]*\.(js|css|png)" s/reports/*.html'
block "--json is one document" bash -c "'$bin/python' -m stabkit sweep $tiny --out s --json -q | python3 -m json.tool"
block "--dry-run trains nothing" says '4 .*runs|4 runs' stab sweep --dry-run --depths 6 --warmup 0 --out empty
block "runs are listed, shown and verified" bash -c "'$bin/python' -m stabkit runs ls --out s && '$bin/python' -m stabkit runs verify --out s"
block "numbers are exported" says 'run,step,probe,site,value' stab export --store s
block "a typo in a method is named" says "did you mean 'deepnorm'" stab sweep --models deepnrom
block "  … and ends with 2" ends 2 stab sweep --models deepnrom
block "a typo in an option is named" says 'did you mean --depths' stab sweep --depth 2
block "the API does the same" "$bin/python" -c "
import stabkit
swept = stabkit.sweep('deepnorm', depths=2, steps=2, hidden=16, ffn=32, vocab=200, out='s')
assert len(swept.runs) == 2 and stabkit.load_records('s').shape[1] == 5"
exit $failed
