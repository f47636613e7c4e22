#!/usr/bin/env bash
# The three flagships, small: which methods stay stable, how rough is the loss, how far may the constants be off.
. "$(dirname "$0")/common.sh"
small="--hidden 32 --ffn 64 --vocab 500 --max-tokens 128"

block "a sweep without warm-up tells Post-LN from DeepNorm by depth" says 'Post-LN .*DeepNorm is forecast to train' \
  stab sweep --models post-ln,deepnorm --depths 6,18 --warmup 0 --out s
block "what it says is a forecast with its length" says 'forecast for [0-9]+ updates from the first 16' \
  stab sweep --models post-ln,deepnorm --depths 6,18 --warmup 0 --out s
block "a landscape draws its surfaces and says which is rougher" says 'report: .*landscape.*html' \
  stab landscape --model deepnorm --depths 2 --steps 4 --snapshots 2 --points 7 --cut-points 9 --direction-seeds 0 $small --out l
block "  … in a page with pictures" bash -c 'grep -q "id=\"figure-surface3d\"" l/reports/*.html && grep -q "<svg" l/reports/*.html'
block "an ablation has a column a factor" says 'α × 0.25' stab ablate --alpha-scale 0.25,1,4 --depths 2 --steps 4 $small --out a
block "a method of one's own is one file" bash -c "printf '%s\n' 'from stabkit.methods.base import Method' \
  'def mine(): return Method(key=\"m\", label=\"Mine\", source=\"here\", gain=lambda s, r: 0.5)' > my.py &&
  '$bin/python' -m stabkit sweep --models ./my.py:mine --depths 2 --steps 2 $small --out m | grep -q Mine"
block "an interrupted sweep goes on" bash -c "timeout -s INT 12 '$bin/python' -m stabkit sweep --models post-ln --depths 18 \
  --steps 60 --warmup 0 --out i; '$bin/python' -m stabkit sweep --models post-ln --depths 18 --steps 60 --warmup 0 --out i"
exit $failed
