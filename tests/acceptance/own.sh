#!/usr/bin/env bash
# A model of one's own: probe, gate, audit, transfer, watch.
. "$(dirname "$0")/common.sh"
export PYTHONPATH=$root
model=tests.own.probe_models

block "a model whose stream grows exponentially does not train as it stands: 7" ends 7 \
  stab probe $model:growing --depths 2,4,8 --seeds 0 --steps 2 --quick --out p
block "  … and the link is named" says 'exponentially with depth' stab probe $model:growing --depths 2,4,8 --seeds 0 --steps 2 --quick --no-fail --out p
block "a probe of sixteen updates gives a probability with its record" says 'forecast 0\.[0-9]+\)\. Of [0-9]+ held-out models' \
  stab probe $model:bare_post_ln --depths 4 --lr 1e-2 --seeds 0 --quick --no-fail --out p
block "a gate fails only for what became worse" bash -c "
  '$bin/python' -m stabkit probe $model:flat --depths 2,4,8 --seeds 0 --steps 2 --baseline b.json --update-baseline --out p &&
  '$bin/python' -m stabkit probe $model:flat --depths 2,4,8 --seeds 0 --steps 2 --baseline b.json --out p"
block "a factory that raises is one line and 2" ends 2 stab probe $model:raises --depths 2 --out p
block "transfer finds the best rate at two depths" says 'report: .*transfer' \
  stab transfer --models deepnorm --depths 2,4 --steps 40 --seeds 0 --hidden 16 --ffn 32 --vocab 200 --max-tokens 64 --lr 1e-3..1e-1 --out t
block "a watch changes nothing and warns of a rate too high" "$bin/python" -W ignore -c "
import torch, stabkit
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(*[nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True) for _ in range(3)])
optimizer = torch.optim.SGD(model.parameters(), lr=300.0)
watch = stabkit.watch(model, optimizer, out='w', probe=torch.randn(2, 8, 16))
for _ in range(8):
    optimizer.zero_grad(); loss = model(torch.randn(2, 8, 16)).pow(2).mean(); watch.loss(loss); loss.backward(); optimizer.step()
watch.close()
assert watch.warnings, 'no warning'"
block "  … whose page is made" says 'report:' stab report --store w
exit $failed
