#!/usr/bin/env bash
# Does the best rate carry over depth, sentence by sentence, on real input. Run from anywhere, against a fresh clone:
# tests/acceptance/transfer.sh [--quick]
# --quick leaves out what trains for more than a minute.
. "$(dirname "$0")/common.sh"
cd "$root"
dev --version >/dev/null 2>&1 && dev libraries >/dev/null 2>&1
python="$root/.venv/bin/python"
stabkit() { "$python" -m stabkit "$@"; }
text="--data $data --source de --target en"
cat >"$work/model.py" <<'PY'
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel


def gpt(depth, width=64):
    return GPT2LMHeadModel(GPT2Config(n_layer=depth, n_embd=width, n_head=2, vocab_size=100, n_positions=32))


class Plain(nn.Module):
    def __init__(self, depth):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.embed, self.stack, self.head = nn.Embedding(50, 32), nn.TransformerEncoder(layer, depth, enable_nested_tensor=False), nn.Linear(32, 50)

    def forward(self, tokens):
        return self.head(self.stack(self.embed(tokens), mask=nn.Transformer.generate_square_subsequent_mask(tokens.shape[1]), is_causal=True))


def plain(depth):
    return Plain(depth)


class Unrated(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self, closure=None):
        pass


def unrated(depth):
    model = Plain(depth)
    return model, lambda model, step: model(torch.zeros(2, 8, dtype=torch.long)).mean(), Unrated(model.parameters())


def lost(depth):
    model = Plain(depth)
    return model, lambda model, step: model(torch.zeros(2, 8, dtype=torch.long)).mean() * float("nan")
PY
here() { (cd "$work" && "$python" -m stabkit "$@"); }
keys() { "$python" - "$1" <<'PY'
import json, sys
found = json.load(open(sys.argv[1]))
assert found["verdict"] in ("carries", "drifts", "cannot tell"), found["verdict"]
assert {"depth", "best", "low", "high", "highest_stable", "loss"} <= set(found["depths"][0]), found["depths"][0]
assert found["drift"] is None or {"exponent", "low", "high"} <= set(found["drift"])
assert "regret" in found and [one["depth"] for one in found["predicted"]] == [16], found["predicted"]
PY
}

# — 1 the command
block "of a factory, with what is foretold" bash -c "cd '$work' && '$python' -m stabkit transfer model:plain --depths 2,4 --steps 40 --lr 1e-3..1e-1 --predict 16 --json --out '$work/o' >'$work/f.json'"
block "  … its document" keys "$work/f.json"
block "  … the same again trains nothing" bash -c "cd '$work' && stat -c '%n %i' o/trials/*/ >before && '$python' -m stabkit transfer model:plain --depths 2,4 --steps 40 --lr 1e-3..1e-1 --predict 16 --out '$work/o' && stat -c '%n %i' o/trials/*/ >after && cmp before after"
block "of built-in methods" stabkit transfer --models pre-ln,depth-mup --depths 2,4 --hidden 16 --ffn 32 --vocab 200 --max-tokens 64 --steps 40 --arch decoder-only --lr 1e-3..1e-1 --out "$work/o"
block "the search, its intervals, the drift, the regret, on made valleys" dev test tests/results/test_transfer.py tests/running/test_transfer.py
block "a worker's trial against a plain loop" dev test tests/own/test_trial.py
block "a budget ends it, and the same command continues" bash -c "cd '$work' && '$python' -m stabkit transfer model:plain --depths 2,4 --steps 400 --budget 1s --out '$work/b' | grep -q 'continues'"
block "a dry run" bash -c "'$python' -m stabkit transfer --models pre-ln --depths 6,12 --dry-run | grep -q 'about 40 runs'"
# — 4 held out
block "at least twelve cases are held out" bash -c "[ \$(cut -d, -f1 docs/transfer.csv | sort -u | wc -l) -ge 13 ]"
# — 5 widths
block "over widths, of a factory" bash -c "cd '$work' && '$python' -m stabkit transfer model:gpt --depths 2 --widths 16,32 --steps 20 --seeds 0 --lr 1e-3..1e-1 --out '$work/o'"
block "over widths, of a method" stabkit transfer --models pre-ln --depths 2 --hidden 16,32 --ffn 2x --vocab 200 --max-tokens 64 --steps 40 --arch decoder-only --lr 1e-3..1e-1 --seeds 0 --out "$work/o"
block "coordinates over width, with the same words" bash -c "cd '$work' && '$python' -m stabkit probe model:gpt --depths 2 --widths 16,32,64 --json --out '$work/o' >'$work/w.json' && '$python' -c \"import json; d = json.load(open('$work/w.json')); assert d['verdict'] in ('carries', 'drifts', 'cannot tell') and d['coordinates'], d\""
# — bad input
refused() { # exit code 2, one line, and in it this text
  local text=$1; shift
  here transfer "$@" --out "$work/o" 2>"$work/err" >/dev/null; [ $? -eq 2 ] && [ "$(wc -l <"$work/err")" -eq 1 ] && grep -q -- "$text" "$work/err"
}
block "one depth" refused "give several" model:plain --depths 4
block "a rate axis of one value" refused "from the lowest to the highest" model:plain --lr 1e-3
block "both axes" refused "not both" model:gpt --depths 2,4 --widths 16,32
block "no model" refused "your own FACTORY"
block "an optimiser without a rate" refused "no lr in its first group" model:unrated --depths 2,4 --quiet
block "nothing that trains" bash -c "cd '$work' && '$python' -m stabkit transfer model:lost --depths 1,2 --steps 3 --seeds 0 --out '$work/o' | tr '\n' ' ' | grep -q 'no rate tried trains'"
[ "$quick" ] && exit $failed
# — what it must show
block "a GPT of transformers from a newcomer's folder, within fifteen minutes" timeout 900 bash -c "cd '$work' && '$python' -m stabkit transfer model:gpt --depths 4,8,16 --steps 300 --out '$work/gpt'"
block "a plain module" timeout 900 bash -c "cd '$work' && '$python' -m stabkit transfer model:plain --depths 4,8,16 --steps 300 --out '$work/gpt'"
exit $failed
