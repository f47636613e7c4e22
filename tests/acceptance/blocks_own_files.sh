#!/usr/bin/env bash
# The subject's issue, sentence by sentence, on real input. Run from anywhere, against a fresh clone: tests/acceptance/blocks_own_files.sh [--quick]
# --quick leaves out what trains for minutes.
. "$(dirname "$0")/common.sh"
stab="python3 '$root/dev.py'"
cd "$root"
mkdir -p "$work/user"
cat >"$work/user/my.py" <<'PY'
from stabkit.methods.base import Method
def peri_ln():
    return Method(key="my-peri", label="My Peri", source="Kim et al. 2025", norm_in=lambda s: "norm",
        norm_branch=lambda s: "norm", norm_out=lambda s: "", embedding=lambda stack: "norm", final=lambda stack: "norm")
def shadow():
    return Method(key="deepnorm", label="Mine", source="here")
def nothing():
    return 3
PY
cat >"$work/user/mine.py" <<'PY'
import torch
from stabkit.probes.base import Probe
class TokenCosine(Probe):
    name, watches = "spread", "probe"
    def __init__(self, model, flat):
        self.sites = ("state",)
    def read(self, seen):
        return seen.states.double().std().reshape(1)
class NoSites(Probe):
    name, watches = "none", "probe"
    def read(self, seen):
        return torch.zeros(0)
PY
echo "import pandas" >"$work/user/foreign.py"
user() { bash -c "cd '$work/user' && $stab $*"; }
one_line() { # the exit code 2, one line on stderr, and in it this text
  local text=$1; shift
  user "$@" 2>"$work/err" >/dev/null; [ $? -eq 2 ] && [ "$(wc -l <"$work/err")" -eq 1 ] && grep -q -- "$text" "$work/err"
}

# — 1 The kind of norm is a slot
block "every part's own parameter count, and every model's against the built one, for every method, block, architecture" dev test tests/methods/test_parts.py tests/methods/test_second_implementations.py
block "norms are made in one file" bash -c "[ \"\$(grep -rlE 'nn.(Layer|RMS)Norm\\(' stabkit/model stabkit/methods --include=*.py)\" = stabkit/model/part.py ]"
block "no method and no file asks which norm" bash -c "! grep -rnE '(norm|kind|part)[a-z_.()]* == \"(layer|rms|dyt)\"' stabkit --include=*.py"
block "an embedding norm and q/k-norm" dev test tests/methods/test_parts.py -k "embedding_norm or one_head"
block "costs are known without torch" bash -c ".venv/bin/python -c \"import sys; from stabkit import methods; from stabkit.spec import *; assert methods.parameters(RunSpec(method='residual', model=ModelConfig(encoder_layers=6, decoder_layers=6, norm='rms'))) > 0 and 'torch' not in sys.modules\""
# — 2 What the catalogue says is true
block "formulas from the slots" dev test tests/methods/test_formula.py
block "the author's constants, with their values at 6L and 18L" bash -c "$stab methods deepnorm | tee '$work/m' | grep -q 'constants: ω = α' && grep -q 'at 6L-6L: ω 1.418 | 2.06' '$work/m' && grep -q 'at 18L-18L: ω 1.999 | 2.711' '$work/m'"
block "no recipe unless given" bash -c "cd '$work/user' && $stab methods ./my.py:peri_ln >'$work/m' && ! grep -q 'its own recipe' '$work/m' && grep -q 'Pre-LN' '$work/m'"
block "docs/methods.md is what the command writes" dev test tests/test_readme.py -k page_of_methods
# — 3 Wiring for two streams
block "ResiDual, whole, with a site a stream" dev test tests/probes/test_probes.py tests/methods/test_second_implementations.py -k "stream or residual"
# — 4 Rate and ε by role and depth
block "factors on rate and ε by role and depth (a slot of the method since 24)" dev test tests/training/test_factors.py
# — 5 Blocks
block "transformers can be installed" dev libraries
block "llama against transformers' own, forward and gradients" dev test tests/model/test_blocks.py -m "libraries or not libraries"
for arch in encoder-decoder encoder-only decoder-only; do
  block "all methods in the llama block, $arch" bash -c "$stab sweep --models all --arch $arch --block llama --depths 2 --steps 2 --warmup 0 --json -q --out '$work/b' >'$work/b.json' && python3 -c \"import json; runs = json.load(open('$work/b.json'))['runs']; assert len(runs) >= 12 and all(r['outcome'] != 'failed' for r in runs)\""
done
block "its parts on their own" bash -c "$stab sweep --models deepnorm --norm dyt --ffn-kind swiglu --positions rotary --qk-norm --no-biases --untied --depths 2 --steps 2 -q --out '$work/b2'"
block "constants derived for another block are said" bash -c "$stab sweep --models deepnorm --block llama --depths 2 --dry-run --out '$work/b3' 2>&1 | grep -q 'derived for LayerNorm and ReLU, but the block has RMSNorm and SwiGLU'"
# — 6 From a file of one's own
own() { user "sweep --models ./my.py:peri_ln,deepnorm --probes ./mine.py:TokenCosine --depths 2,6 --steps 8 --warmup 0 -q --json --out '$work/o' >'$work/o.json'"; }
block "--models ./my.py:peri_ln --probes ./mine.py:TokenCosine" own
block "  … ids begin with own-" bash -c "ls '$work/o/runs' | grep -q '^own-my-peri-2L-2L-s0-'"
block "  … the page without the files" bash -c "mv '$work/user' '$work/moved' && $stab report --store '$work/o' --out '$work/p.html' && grep -q 'probe-own-spread-step' '$work/p.html' && grep -q 'My Peri' '$work/p.html'; c=\$?; mv '$work/moved' '$work/user'; exit \$c"
block "  … in export" bash -c "$stab export --store '$work/o' | grep -q ',own-spread,state,'"
block "bytes in the id, workers and Dask, changed files, tampered stores" dev test tests/cli/test_own_files.py tests/methods/test_own.py -m "slow or not slow"
block "an import beyond the id" one_line "import pandas is refused" sweep --models ./foreign.py:f
block "a key that shadows a built-in" one_line "is a built-in method's" sweep --models ./my.py:shadow
block "a function that returns no Method" one_line "not a Method" sweep --models ./my.py:nothing
block "a probe without sites" one_line "a probe without sites" sweep --models post-ln --probes ./mine.py:NoSites
# — 7 A probe of one's own is seen; older runs say what they lack
block "kept runs of an older version: read, not trained again, told what they lack" dev test tests/storage/test_kept_runs.py
# — 8 methods check, recipes
block "stabkit methods check ./my.py:peri_ln" user "methods check ./my.py:peri_ln"
block "every built-in method keeps the contract" dev test tests/training/test_contract.py -m "slow or not slow"
block "the README's recipes, followed to the letter" dev test tests/test_docs.py -k "of_the_docs"
# — 9 Probes
block "stream, cosine, attention_logit against slow recomputations; no bit of training changed" dev test tests/probes
[ -n "$quick" ] || block "all probes together (read the number: at most a tenth of a step, one core, nothing beside it)" bash -c "cd '$root' && .venv/bin/python benchmarks/probes.py"
# — old runs, old series
series() { # the same runs by the version before this issue and by this one: every series of before has its bytes
  git clone -q "$root" "$work/before" && git -C "$work/before" checkout -q 951aa21 || return 1
  for where in "$work/before" "$root"; do
    (cd "$where" && "$root/.venv/bin/python" -m stabkit sweep --models post-ln,admin,dlcl,sub-ln,deepnorm --depths 3 --steps 6 --warmup 0 -q --out "$work/s-$(basename "$where")") || return 1
  done
  "$root/.venv/bin/python" - "$work/s-before" "$work/s-$(basename "$root")" <<'PY'
import sys, pathlib, numpy as np
before, now = (sorted((pathlib.Path(p) / "runs").glob("[a-z]*")) for p in sys.argv[1:])
assert [p.name for p in before] == [p.name for p in now] and len(before) == 5, "the same ids"
for a, b in zip(before, now):
    old, new = np.load(a / "records.npz"), np.load(b / "records.npz")
    assert all(old[k].tobytes() == new[k].tobytes() for k in old.files), a.name
    assert (a / "weights.safetensors").read_bytes() == (b / "weights.safetensors").read_bytes(), a.name
PY
}
block "ids, series and weights of before keep their bytes" series
exit $failed
