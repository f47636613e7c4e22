#!/usr/bin/env bash
# The subject's issue, sentence by sentence, on real input. Run from anywhere, against a fresh clone: tests/acceptance/documentation.sh [--quick]
# --quick leaves out what takes minutes. What is not here: three newcomers' eight questions, which people answer.
. "$(dirname "$0")/common.sh"
cd "$root"
python="$root/.venv/bin/python"

# — 1 the README
block "at most 150 lines and 800 words, no sentence of more than two numbers, no loose link" dev test tests/test_readme.py -k "readme"

# — 2 the documentation site
block "the site builds, strict" dev docs
block "  … whole offline, with formulas, commands, claims and a gallery" dev test tests/test_docs.py -k "loose" -m "slow or not slow"
[ "$quick" ] || block "each tutorial's commands run as printed" dev test tests/test_docs.py -k "tutorial" -m "slow or not slow"
for page in start page commands methods formulas probes claims outcome forecast gallery reliability dask performance architecture extend changelog citing; do
  block "  page: $page" test -s "docs/_build/html/$page.html"
done

# — 3 the command line as a person reads it
block "help fits two screens in panels, completion, first words, near words, last lines" dev test tests/cli/test_front.py
block "dir(stabkit) shows the library's names" bash -c "'$python' -c 'import stabkit; print(dir(stabkit))' | grep -q load_runs"
block "advice uses the depths that were asked for" bash -c "'$python' -m stabkit sweep --models deepnorm --depths 2,4 --steps 2 --hidden 16 --ffn 32 --out '$work/a' -q | grep -q 'next: stabkit sweep --models deepnorm --depths 2,4 '"
block "something on the screen within two seconds of a long start" bash -c "(timeout -s INT 6 '$python' -m stabkit sweep --models deepnorm --depths 300 --steps 400 --yes --out '$work/b' 2>'$work/err' & sleep 2.5; test -s '$work/err'; code=\$?; wait; exit \$code)"

# — 4 evidence by today's program
block "every row of evidence.json is of this version and its page says its command" dev test tests/report/test_committed.py
block "every part has a row" "$python" -c "
import json; from benchmarks.evidence import PARTS
rows = json.load(open('reports/evidence.json')); missing = set(PARTS) - set(rows); assert not missing, missing"
block "at most 20 MB of pages" bash -c "[ \$(find reports -name '*.html' -print0 | xargs -0 cat | wc -c) -lt 20000000 ]"

# — 5 ready to be published
block "wheel and sdist build, install and answer" dev test tests/test_package.py -m "slow or not slow"
block "the API's examples run" dev test tests/library
exit $failed
