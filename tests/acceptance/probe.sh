#!/usr/bin/env bash
# The subject's issue, sentence by sentence, on real input. Run from anywhere, against a fresh clone: tests/acceptance/probe.sh [--quick]
# --quick leaves out what trains for minutes.
. "$(dirname "$0")/common.sh"
stab="python3 '$root/dev.py'"
cd "$root"
mkdir -p "$work/user"
cat >"$work/user/mine.py" <<'PY'
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel
def gpt2(depth):
    return GPT2LMHeadModel(GPT2Config(n_embd=64, n_layer=depth, n_head=2, vocab_size=100, n_positions=32, bos_token_id=1, eos_token_id=2))
def small():
    return gpt2(4)
PY

block "the libraries can be installed" dev libraries
# — 1 One core
block "sub-layers by running: lerp, a turned shortcut, branches side by side, joined stacks, like blocks, --blocks" dev test tests/own/test_sublayers.py tests/own/test_probe.py -k "lerp or turned or beside or joined or blocks"
block "on our own model at the same weights sweep's numbers within 1e-6" dev test tests/own/test_one_core.py
block "no bit of training is changed" dev test tests/own/test_probe.py -k "without"
block "no second implementation: probes and probe share probes/quantities.py" bash -c "grep -q 'quantities' stabkit/probes/update.py && grep -q 'quantities' stabkit/own/chain/reader.py && ! grep -rn 'vector_norm' stabkit/own/probe stabkit/own/watch stabkit/own/chain/reader.py"

# — 2 stabkit probe
block "models, losses, optimisers of a factory; refusals in one line; a log of exceptions" dev test tests/own/test_probe.py
block "verdicts, fits, cannot tell" dev test tests/results/test_own.py
block "exit codes 0, 2, 3, 7, 8; --strict, --no-fail, --fresh, resume, several rates" dev test tests/cli/test_probe_command.py -m "slow or not slow"
block "controls: 1/N is flat, Post-LN fails by the gradient, Pre-LN, DeepNorm and Keel do not" dev test tests/own/test_controls.py -m slow
probe() { bash -c "cd '$work/user' && $stab probe mine:gpt2 --depths 6,12,24,48 --json -q --out '$work/p' >'$work/probe.json'; c=\$?; [ \$c -eq 0 ]"; }
[ -n "$quick" ] || block "stabkit probe GPT-2, 6 to 48 layers, sixteen updates, three seeds" probe
[ -n "$quick" ] || block "  … the document" check probe "$work/probe.json"
[ -n "$quick" ] || block "  … again: nothing is probed" bash -c "cd '$work/user' && $stab probe mine:gpt2 --depths 6,12,24,48 --out '$work/p' 2>/dev/null | grep -q '12 of 12 cached'"

# — 3 On models that nobody here wrote
block "fourteen models of libraries: found and probed" dev test tests/own/test_libraries.py -m libraries
block "the table" bash -c "for m in gpt2 bert llama gemma2 olmo2 t5 timm_vit torch_encoder x_sandwich nano_gpt; do grep -q \"\$m\" docs/library_models.md || { echo \$m; exit 1; }; done"
block "pages of GPT-2, Llama and a Post-LN BERT" bash -c "test -s reports/probe-gpt2.html && test -s reports/probe-llama.html && test -s reports/probe-bert.html"
block "the tutorial and its workflow" dev test tests/test_own_model_page.py -m "slow or not slow"
block "ten lines in the README" bash -c "grep -q 'stabkit probe model:gpt' README.md"
block "audit in the wild" bash -c "grep -q 'torchscale' docs/audit_wild.md && grep -q 'audit_wild' docs/index.md"
block "audit finds method and depth and names probe" bash -c "cd '$work/user' && $stab audit mine:small; [ \$? -eq 6 ] && $stab audit mine:small | grep -q 'stabkit probe'"
exit $failed
