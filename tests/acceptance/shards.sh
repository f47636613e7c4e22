#!/usr/bin/env bash
# Any scheduler: shards that share a store, Slurm by submitit, what the breaker found; sentence by sentence. Run from
# anywhere, against a fresh clone: tests/acceptance/shards.sh [--quick]
# --quick leaves out what trains for more than a minute. A real Slurm needs root and Debian's slurmctld, slurmd, munge.
. "$(dirname "$0")/common.sh"
cd "$root"
dev --version >/dev/null 2>&1
python="$root/.venv/bin/python"
tiny="--depths 1,2 --steps 20 --vocab 200 --hidden 16 --ffn 24 --max-tokens 128 --warmup 0 --quiet"
test -n "$quick" || command -v slurmctld >/dev/null || { apt-get update && apt-get install -y slurmctld slurmd munge; } >/dev/null 2>&1

# — 1 Locks by run, not by store
block "two commands with overlapping plans train each run once" dev test tests/cli/test_cli.py -k two_commands
block "a dead holder is taken over: process gone, or no sign of life" dev test tests/storage/test_locks.py
block "where flock fails it still works, and no clock is compared" dev test tests/running/test_shards.py -k four_shards
block "which it is, and why, is said" grep -q "soft locks" docs/reliability.md
block "readers never wait" bash -c "
  $python -m stabkit sweep $tiny --models deepnorm --out '$work/r' && mkdir -p '$work/r/runs/.locks' &&
  for id in \$(ls '$work/r/runs'); do printf '{}' >'$work/r/runs/.locks/'\$id.0; done &&
  timeout 20 $python -m stabkit runs ls --out '$work/r' && timeout 60 $python -m stabkit report --store '$work/r'"

# — 2 --shard
for command in sweep ablate landscape probe transfer paper; do
  block "--shard on $command" bash -c "$python -m stabkit $command --help | grep -q -- --shard"
done
block "STABKIT_SHARD" bash -c "! STABKIT_SHARD=5/4 $python -m stabkit sweep $tiny --dry-run 2>'$work/e' && grep -q 'shard' '$work/e'"
block "two shards of a transfer of a factory and of a probe" bash -c "
  for i in 1 2; do $python -m stabkit transfer tests.own.carried_models:tiny --depths 1,2 --lr 1e-3..1e-1 --steps 8 --seeds 0 --quiet --shard \$i/2 --out '$work/t' & done; wait;
  for i in 1 2; do $python -m stabkit probe tests.own.probe_models:pre_ln --depths 2,4 --seeds 0,1 --quiet --no-fail --shard \$i/2 --out '$work/t' & done; wait;
  test \$(ls '$work'/t/reports/*.html | wc -l) = 2 && test -z \"\$(find '$work/t' -path '*/.locks/*')\""
block "a tutorial: sbatch, Kubernetes, SkyPilot" bash -c "grep -q 'SBATCH --array' docs/tutorials/cluster.md && grep -q 'completionMode: Indexed' docs/tutorials/cluster.md && grep -q SKYPILOT_NODE_RANK docs/tutorials/cluster.md"
block "the first is run by a fake scheduler of two processes" dev test tests/running/test_shards.py -k scheduler_of_two

# — 3 --executor slurm by submitit
block "submitit's local executor: digests those of inline" dev test tests/running/executors/test_slurm.py
[ -n "$quick" ] || block "a real Slurm of one node: job array and executor" dev test tests/running/test_shards.py -k real_slurm
block "one row in EXECUTORS, an extra" bash -c "grep -q 'slurm.map' stabkit/running/executors/__init__.py && grep -q '^slurm = ' pyproject.toml"
[ -n "$quick" ] || block "Dask stays" dev test tests/running/executors/test_dask.py

# — 4 One GPU
block "auto is stacked on a GPU and not on a CPU" dev test tests/options/test_machine.py -k together
block "measured on a GPU, and said" grep -q "61 and 94 with 4, 16 and 64 at once" docs/reliability.md

# — 5 A signal is a signal
block "inside reads, writes, rendering, probes, watches" dev test tests/cli/test_signals.py tests/cli/test_cli.py -k signal
block "it is no Exception" bash -c "$python -c 'from stabkit.errors import Interrupted; assert not issubclass(Interrupted, Exception)'"

# — 6 What the breaker found
block "a watch sees another optimizer step and takes it" dev test tests/own/test_watch.py -k "takes_anothers_place or stranger"
block "odd facts of a watch cost one line" dev test tests/own/test_hostile_watch.py
block "an archive that unpacks to more than its spec allows" dev test tests/storage/test_hostile_store.py -k unpack

# — What it must show
[ -n "$quick" ] || block "2,000 runs: runs, report, plan, resume, twenty readers" bash -c "'$python' benchmarks/many_runs.py '$work/many' 100"
[ -n "$quick" ] || block "2,000 runs through two workers, forty of them killed" bash -c "'$python' benchmarks/soak.py"
exit $failed
