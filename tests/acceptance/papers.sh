#!/usr/bin/env bash
# The papers: items, plans, formulas, claims that can fail.
. "$(dirname "$0")/common.sh"

block "items are listed with what they cost" says 'fig4.*table1' stab paper ls
block "an item that is none is named" ends 2 stab paper fig99
block "a method's constants at a depth: DeepNorm's α of 100L-100L" says '4\.1618' stab methods deepnorm --depths 100x100
block "every method has a formula and a source" says 'DeepNet §3.3' stab methods
block "an item's plan, its runs and their time" says 'items, about [0-9]+ (min|s)' stab paper fig2 --dry-run
block "a claim of a paper is judged on a page of its runs" says 'report: ' \
  stab sweep --models post-ln,post-ln-init --depths 6 --warmup 0 --steps 16 --max-tokens 64 --hidden 16 --ffn 32 --vocab 200 --out f
block "  … with the number that tests it" bash -c 'grep -q "class=\"claim" f/reports/*.html'
exit $failed
