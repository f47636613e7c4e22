#!/usr/bin/env bash
# The subject's issue, sentence by sentence. Run from anywhere, against a fresh clone: tests/acceptance/reliability.sh [--quick]
# Prints PASS or FAIL a block; exits 1 if any failed. --quick leaves out what takes minutes.
. "$(dirname "$0")/common.sh"
tiny="--depths 2 --steps 5 --vocab 200 --hidden 16 --ffn 24 --max-tokens 128 --models post-ln,deepnorm --quiet"

# — 1 Store
block "a damaged run is named, kept aside, and alone trained again" bash -c "
  python3 '$root/dev.py' sweep $tiny --out '$work/s' && f=\$(ls -d '$work'/s/runs/post-ln-*) && printf x >>\$f/records.npz &&
  ! python3 '$root/dev.py' runs verify --out '$work/s' >'$work/v' 2>&1 && grep -q corrupt '$work/v' && test -d \$f &&
  python3 '$root/dev.py' sweep $tiny --out '$work/s' 2>'$work/e' && [ \$(grep -c corrupt '$work/e') = 1 ] &&
  ls '$work'/s/runs/.quarantine/*/post-ln-* && python3 '$root/dev.py' runs verify --out '$work/s'"
block "two commands on one store train each run once" dev test tests/cli/test_cli.py -k two_commands
# — 2 Checkpoints
block "from any checkpoint the bits of the whole; damaged ones start afresh" dev test tests/running/test_checkpoint.py
[ -n "$quick" ] || block "kill -9 at any moment" dev test tests/running/test_checkpoint.py -m slow
# — 3 Local workers
block "dead, hung, poisoned, stillborn workers; no orphan" dev test tests/running/executors/test_executors.py
block "three attempts over all commands, --retry-failed" dev test tests/running/test_reliability.py -k hangs
block "signals: 2 s, the right code, the command that continues" dev test tests/cli/test_cli.py -k signal
# — 4 More than one machine
block "Dask: a worker killed, the scheduler killed, a dead address" dev test tests/running/executors/test_dask.py
block "how to start a cluster, and the trust boundary" bash -c "cd '$root/docs' && grep -q 'dask scheduler' dask.md && grep -q SLURMCluster dask.md && grep -q 'resources GPU' dask.md && grep -qi 'trust boundary' dask.md"
# — 5 Determinism
[ -n "$quick" ] || block "twelve arrangements, twelve equal sets of digests" dev test tests/running/test_determinism.py -m slow
block "the committed reference run" dev test tests/running/test_determinism.py
# — 6 Diverging runs
block "export: CSV and strict JSON lines" dev test tests/running/test_reliability.py -k "table or words or early"
# — 7 Hostile input
block "names, corpora, folders, configuration from strangers" dev test tests -k "hostile or foreign or bad or absurd or damaged or imported"
# — 8 Proof
block "every I/O call fails once; a state machine of crashes and damage" dev test tests/storage/test_store_faults.py
block "the scoreboard" grep -q "2,000 runs" "$root/docs/reliability.md"
[ -n "$quick" ] || block "soak: 2,000 runs" bash -c "cd '$root' && .venv/bin/python benchmarks/soak.py"
exit $failed
