#!/usr/bin/env bash
# The subject's issue, sentence by sentence, on real input. Run from anywhere, against a fresh clone: tests/acceptance/watch.sh [--quick]
# --quick leaves out what trains for minutes.
. "$(dirname "$0")/common.sh"
stab="python3 '$root/dev.py'"
python="$root/.venv/bin/python"
cd "$root"

block "the libraries can be installed" dev libraries
# — 1 stabkit.watch
block "one core: watch and probe read by the same code" bash -c "grep -q 'own.chain.reader' stabkit/own/probe/loop.py && grep -q 'own.chain.reader' stabkit/own/watch/chain.py && grep -q 'own.verdict import Limits' stabkit/results/own/alarm.py"
block "compile, checkpointing, accumulation, GradScaler, fused, autocast, dropout and BatchNorm, dicts and tied, frozen, clipping: bits and gradients" dev test tests/own/test_watch.py -k "bit_for_bit"
block "DDP and FSDP2 of two gloo processes: bits, gradients, one writer, no process waits" dev test tests/own/test_distributed.py
block "the Trainer and Lightning, end to end" dev test tests/own/test_adapters.py -m libraries
block "a copy above 1 GB only if asked, and said" dev test tests/own/test_watch.py -k "copy"
block "no synchronisation in steps that are not read" dev test tests/own/test_watch.py -k "waits"
block "warnings: step, link, numbers, cause, once each, at the user's line" dev test tests/own/test_watch.py tests/results/test_own.py -k "warn or rate or alarm"
block "it never breaks a training; a kill, a full disk, a store in use, two watches, a fork" dev test tests/own/test_watch.py -k "fails or killed or disk or store or second or fork"
block "runs, export and report know watches" dev test tests/report/test_watch_page.py
block "bad input, one line each" dev test tests/own/test_watch.py -k "refused or late or after_the_end or never_called"

# — 2 Shown
failing() { "$python" benchmarks/watched.py "$data" "$work/w" | tee "$work/w.txt"; }
[ -n "$quick" ] || block "a small training driven into failure, and the healthy one beside it" failing
[ -n "$quick" ] || block "  … warned of before its loss doubles; weights as without; the healthy one draws no warning" check watched "$work/w.txt"
[ -n "$quick" ] || block "  … and its page" bash -c "$stab report --store '$work/w' | grep -c 'own-' | grep -qx 2"
[ -n "$quick" ] || block "ten healthy fixtures, 200 updates each, no warning" dev test tests/own/test_healthy.py -m "libraries and slow"
block "the page of the failing one" bash -c "grep -q 'update 1 of 200: one update moved' reports/watch-rate-too-high.html"
block "a tutorial whose script runs, and the two lines in the README" dev test tests/test_watch_docs.py tests/test_readme.py -m "slow or not slow" -k "watch or links or warned"
block "the overhead by model size beside hooks" bash -c "grep -q 'watch_overhead.py' docs/performance.md && grep -q 'watch_overhead.py' docs/watch.md"
exit $failed
