#!/usr/bin/env bash
# The answer first, in one sentence: every sentence of the issue "plain" that a command can show.
. "$(dirname "$0")/common.sh"
py=$bin/python
small="--hidden 32 --ffn 64 --vocab 500 --max-tokens 128"
tiny="--hidden 16 --ffn 24 --vocab 200 --max-tokens 128"
same() { # the sentence of a page's headline stands in the terminal and in --json
  "$py" -m stabkit "$@" >plain.txt 2>/dev/null; "$py" -m stabkit "$@" --json -q >plain.json 2>/dev/null
  "$py" - <<'P'
import html, json, pathlib, re
text = " ".join(pathlib.Path("plain.txt").read_text().split())
page = pathlib.Path(re.search(r"report: (\S+)", text)[1]).read_text()
head = html.unescape(re.sub("<[^>]+>", "", re.search(r'<p class="headline">(.*?)</p>', page)[1])).rstrip(".")
body = json.loads(pathlib.Path("plain.json").read_text())
answer = body.get("answer") or body.get("verdict")
flat = lambda sentence: " ".join(sentence.split())
assert flat(str(answer)) in text, (answer, text[-600:])
print(head); print(answer)
P
}

block "1 a sweep: what trains to which depth, and the link that goes first" says "Post-LN's gradient had vanished before the first update from 18L-18L on" \
  stab sweep --models post-ln,deepnorm --depths 6,18,50 --out s
block "1   the same words in the terminal and in --json" same sweep --models post-ln,deepnorm --depths 6,18,50 --out s
block "1 an ablation names every factor" says 'DeepNorm trains with .*×' \
  stab ablate --depths 6 --steps 120 $small --lr 5e-3 --alpha-scale 0.5,1,2 --beta-scale 1 --out a
block "1   the same words in --json" same ablate --depths 6 --steps 120 $small --lr 5e-3 --alpha-scale 0.5,1,2 --beta-scale 1 --out a
block "1 a landscape ends with its page's headline" says "loss is .*rougher" \
  stab landscape --model deepnorm --depths 2 --steps 4 --points 7 --cut-points 9 --direction-seeds 0 $small --out l
block "1 a paper's item: the number beside the paper's sentence" says "nearly constant in depth.*here N\^" \
  stab paper fig4 --data "${MULTI30K:-$root/../shared/data/multi30k}" --source de --target en --out p
block "1   and 'cite this' with commit, data, seeds, BibTeX" bash -c 'grep -rlq "@misc{stabkit" p/reports && grep -rlqi "commit" p/reports'
block "2 the default sweep is one condition" bash -c "'$py' -m stabkit sweep --dry-run | grep -q '16 runs'"
block "3 the ablation is one figure" bash -c '[ $(grep -o "id=\"figure-[a-z0-9_]*\"" a/reports/*.html | sort -u | wc -l) -eq 1 ]'
block "4 a dry run counts surfaces, and adds them" says 'more, .* in all' stab landscape --dry-run
block "4 what is said lies within a factor of 1.5 of what it takes, in nine of ten (5 minutes, an idle machine)" bash -c "
cd '$root' && '$py' benchmarks/times.py | tee times.txt && '$py' -c \"
import re, pathlib
near, of = map(int, re.findall(r'(\\d+) of (\\d+) within', pathlib.Path('times.txt').read_text())[0])
assert near >= 0.9 * of\"; code=\$?; rm -f times.txt; exit \$code"
block "5 a signature is short, its parameters have a line each" "$py" -c "
import inspect, stabkit
for f in (stabkit.sweep, stabkit.ablate, stabkit.landscape, stabkit.probe, stabkit.transfer):
    assert len(str(inspect.signature(f))) <= 1500 and '- depths: ' in f.__doc__, f"
block "5 depth= is answered" says 'did you mean .depths' "$py" -c "import stabkit; stabkit.sweep(depth=2)"
block "5 the notebook is committed with outputs" "$py" -c "
import json; cells = json.load(open('$root/docs/notebooks/your_model.ipynb'))['cells']
assert sum(bool(c.get('outputs')) for c in cells) >= 5"
block "6 help: four groups, probe first" "$py" -c "
import subprocess, sys
text = subprocess.run([sys.executable, '-m', 'stabkit', '--help'], capture_output=True, text=True).stdout
at = [text.lower().index(w) for w in ('your model', 'probe', 'compare methods', 'the papers', 'stored runs')]
assert at[0] < at[1] < at[2] < at[3] < at[4], at"
block "7 docs: at most 32,000 words" "$py" -c "
import subprocess, sys, re
out = subprocess.run([sys.executable, '$root/docs/_ext/words.py'], capture_output=True, text=True).stdout
assert int(re.findall(r'(\d+) words of docs', out)[0]) <= 32000, out[-200:]"
block "7 README: at most 100 lines" bash -c "[ \$(wc -l < '$root/README.md') -le 100 ]"
block "8 at most 3 long sentences in 100 on README, Start, Your model" "$py" -c "
import subprocess, sys, re
out = subprocess.run([sys.executable, '$root/docs/_ext/words.py', '$root/README.md', '$root/docs/start.md', '$root/docs/own_model.md'], capture_output=True, text=True).stdout
rows = [tuple(map(int, m)) for m in re.findall(r'(\d+) of +(\d+) sentences', out)]
assert rows and sum(a for a, _ in rows) <= 0.03 * sum(b for _, b in rows), rows"
block "9 a watch's warning is on the disk before it is said" "$py" -m pytest -q -p no:cacheprovider "$root/tests/own/test_watch.py" "$root/tests/cli" -k "disk" --rootdir "$root"
block "10 the action in two lines, the badge, --png" bash -c "grep -q 'colab-badge' '$root/README.md' && grep -rq 'uses: OWNER/stabkit@v1' '$root/docs/tutorials/ci.md'"
block "10   a picture of a probe" bash -c "cd '$root' && '$py' -m stabkit probe tests.own.probe_models:flat --depths 2,4,8 --seeds 0 --steps 2 --out '$work/q' --png '$work/q.png' && [ -s '$work/q.png' ]"
block "11 pages: at most 8 MB" bash -c "[ \$(du -sk '$root/reports' | cut -f1) -le 8192 ]"
exit $failed
