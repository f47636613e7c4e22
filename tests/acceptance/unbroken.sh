#!/usr/bin/env bash
# The issue "Unbroken", a block a sentence: a probe that its workers cannot colour, a gate that a file cannot disarm,
# work that no slow start ends.
source "$(dirname "$0")/common.sh"
py() { "$bin/python" "$@"; }
suite() { (cd "$root" && "$bin/python" -m pytest -q -p no:cacheprovider -m "slow or not slow" "$@"); }
cat >f.py <<'PY'
import json, os, torch
from torch import nn
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)
    def forward(self, x): return x + self.down(torch.relu(self.up(self.norm(x))))
class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.embed, self.blocks, self.head = nn.Embedding(20, 16), nn.ModuleList(Block() for _ in range(depth)), nn.Linear(16, 20)
    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks: x = block(x)
        return self.head(x)
def ok(depth): return Net(depth)
def tied(depth):
    net = Net(depth); net.head.weight = net.embed.weight; return net
class Counted: calls = 0
def counter(depth):
    Counted.calls += 1
    net = Net(depth)
    with torch.no_grad(): [p.mul_(1 + 0.1 * Counted.calls) for p in net.parameters()]
    return net
def dtype4(depth):
    if depth == 4: torch.set_default_dtype(torch.float64)
    return Net(depth)
def filedata(depth):
    net, own = Net(depth), {}
    def loss(model, step):
        data = torch.load(os.environ["DATA"]); x = data[step % len(data)]
        return nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten())
    return net, loss
def sleeper(depth):
    import subprocess; subprocess.Popen(["sleep", "777"]); return Net(depth)
PY
digests() { py - "$1" <<'PY'
import glob, json, sys
print(sorted((json.load(open(p + "/facts.json"))["depth"], json.load(open(p + "/manifest.json"))["digest"]) for p in glob.glob(sys.argv[1] + "/probes/[!.]*")))
PY
}
same() { # the same cells by 1, 2 and 4 workers
  for w in 1 2 4; do stab probe "f:$1" --depths 2,4,6 --seeds 0 --quick --workers $w --out "w$w-$1" -q || return 1; digests "w$w-$1" >"w$w-$1.txt"; done
  cat "w1-$1.txt"; cmp "w1-$1.txt" "w2-$1.txt" && cmp "w1-$1.txt" "w4-$1.txt"
}
block "1 equal digests with 1, 2, 4 workers: a counter" same counter
block "1 … and a default dtype changed at one depth" same dtype4
block "1 a factory that gives other weights at a second call is said to" says "other weights" stab probe f:counter --depths 2,4 --seeds 0 --quick --out again
stale() {
  py -c "import torch; g=torch.Generator().manual_seed(0); torch.save([torch.randint(0,20,(4,8),generator=g) for _ in range(20)],'d.pt')"
  DATA=d.pt stab probe f:filedata --depths 2 --seeds 0 --quick --out stale -q >a.txt || return 1
  DATA=d.pt stab probe f:filedata --depths 2 --seeds 0 --quick --out stale >b.txt; grep -q "1 of 1 cached" b.txt || return 1
  py -c "import torch; d=torch.load('d.pt'); torch.save(d[:2]+[(x+1)%20 for x in d[2:]],'d.pt')"
  DATA=d.pt stab probe f:filedata --depths 2 --seeds 0 --quick --out stale >c.txt; ! grep -q cached c.txt
}
block "2 data of later updates that changed: probed again" stale
gate() { stab probe f:ok --depths 2 --seeds 0 --quick --no-fail --out gate -q --baseline b.json --update-baseline || return 1; for bad in NaN -1 5; do sed "s/\"probability\": [^,]*/\"probability\": $bad/" b.json >bad.json; ends 2 stab probe f:ok --depths 2 --seeds 0 --quick --out gate -q --baseline bad.json || return 1; done; }
block "3 a damaged baseline is none: exit 2" gate
block "3 of another factory: exit 2" ends 2 stab probe f:tied --depths 2 --seeds 0 --quick --out gate -q --baseline b.json
block "3 an output that cannot be written: refused before" ends 2 timeout 10 "$bin/python" -m stabkit probe f:ok --depths 2 --baseline /proc/b.json --update-baseline
block "3 a FIFO, /dev/zero, deep JSON: exit 2 at once" bash -c "mkfifo p; for f in p /dev/zero; do timeout 20 $bin/python -m stabkit probe f:ok --depths 2 --baseline \$f; [ \$? -eq 2 ] || exit 1; done"
block "5 a start that is held for 120 s loses nothing" suite tests/running/executors -k "slow_start or held"
nohups() { (trap '' HUP; exec "$bin/python" -m stabkit sweep --depths 2 --models deepnorm --steps 4000 --out nohup -q) & local p=$!; sleep 9; kill -HUP $p; sleep 1; kill -0 $p && kill -TERM $p; wait $p; [ $? -eq 143 ]; }
block "6 nohup protects" nohups
leaks() { stab probe f:sleeper --depths 2 --seeds 0 --quick --out leak -q; sleep 1; ! pgrep -f "sleep 777"; }
block "17 processes that a factory started end with it" leaks
block "7, 8 watches" suite tests/hostile/test_loops.py
block "4, 9 stores and bombs" suite tests/hostile/test_stores.py
block "1 … 63 factories and more" suite tests/hostile/test_factories.py
block "3 49 baselines and more, 200 generated" suite tests/hostile/test_baselines.py
durations() { for i in 1 2; do stab transfer f:ok --depths 2,4 --seeds 0 --steps 20 --out "t$i" -q >/dev/null; py - "t$i" >"t$i.txt" <<'PY'
import glob, json, sys
print(sorted(json.load(open(p + "/manifest.json"))["digest"] for p in glob.glob(sys.argv[1] + "/trials/[!.]*")))
PY
done; cmp t1.txt t2.txt; }
block "10 trials' digests are equal twice" durations
summary() { GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY=/nonexistent/s.md stab probe f:ok --depths 2 --seeds 0 --quick --no-fail --out gate -q; }
block "10 a summary that cannot be written changes no exit code" summary
block "16 action.yml passes all lines of its arguments" suite tests/cli/test_gate.py -k action
exit $failed
