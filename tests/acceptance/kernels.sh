#!/usr/bin/env bash
# Faster per core: one fused kernel file, a probe that answers while you wait, thousands of runs; sentence by sentence, on
# real input. Run from anywhere, against a fresh clone: tests/acceptance/kernels.sh [--quick]
# --quick leaves out what is timed, which wants an idle machine, and CI without a compiler.
# STABKIT_BEFORE names a checkout of 79c87b9, whose runs are "today's"; it is made where it is not set.
. "$(dirname "$0")/common.sh"
cd "$root"
dev --version >/dev/null 2>&1 && dev libraries >/dev/null 2>&1
python="$root/.venv/bin/python"
before=${STABKIT_BEFORE:-$work/before}
peer=$root/../shared/peers/peer_sweep.py
[ -d "$before" ] || { git clone -q "$root" "$before" && git -C "$before" checkout -q 79c87b9; }
grid="--models post-ln,admin,sub-ln,dlcl,residual,completep --depths 3 --steps 6 --dropout 0.1 --max-tokens 128 --vocab 200 --hidden 16 --ffn 24 -q"

# — 1 one C++ file
block "one C++ file, compiled beside it by dev.py" bash -c "[ \$(find stabkit -name '*.cpp' | wc -l) -eq 1 ] && ls stabkit/kernels/stack-*.* >/dev/null"
block "compiled from nothing in less than 60 s" bash -c "mkdir '$work/k' && cp stabkit/kernels/build.py stabkit/kernels/stack.cpp '$work/k' && timeout 60 '$python' '$work/k/build.py' && ls '$work'/k/stack-*.*"
block "one library for every torch and Python: it knows neither" bash -c "! grep -nE 'include <(torch|ATen|c10|Python)' stabkit/kernels/stack.cpp"
block "equal to the Python path, for every method, block, architecture; float64, gradcheck; products" dev test tests/kernels
block "and to the numpy reference" dev test tests/methods/test_second_implementations.py
block "a wheel that carries it, and one for every platform" dev test tests/test_package.py
block "without a compiler one line says so" bash -c "cd '$work/k' && rm stack-*.* && ! env PATH= '$python' build.py 2>'$work/said' && [ \$(wc -l <'$work/said') -eq 1 ]"
block "the kernel in use is a field of the run's environment" bash -c "'$python' -m stabkit sweep $grid --out '$work/f' && grep -q '\"kernels\": \"fused' '$work'/f/runs/*/environment.json"
block "--kernels python: digests as before" bash -c "'$python' -m stabkit sweep $grid --kernels python --out '$work/p' && cd '$before' && PYTHONPATH=. '$python' -P -m stabkit sweep $grid --out '$work/b' && cd '$root' && '$python' -c '
import sys; from pathlib import Path; from stabkit.storage.store import Store
a, b = ({i: Store(Path(o)).load(i).digest for i in Store(Path(o)).ids()} for o in sys.argv[1:])
sys.exit(not a or a != b)' '$work/p' '$work/b'"
block "a store of one path is not warned of on its page, one of both is" bash -c "! grep -q 'differ in kernels' '$work'/f/reports/*.html && '$python' -m stabkit sweep $grid --seeds 0,1 --kernels python --out '$work/f' && grep -q 'differ in kernels' '$work'/f/reports/*.html"

# — 3 probe
block "a probe shows its first cell within 10 s, the rest as it comes, the sentence last" bash -c "
timeout 10 '$python' -m stabkit probe tests.own.library_models:gpt2 --depths 6,12,24,48 --no-cures --out '$work/g' 2>&1 | head -1 | grep -q 'gpt2-6L-s0  probed  gradient'"
block "its workers serve the changes too" dev test tests/cli/test_probe_command.py tests/running/executors

# — 5 thousands of runs
block "a listing from a cache" dev test tests/storage/test_index.py

[ "$quick" ] && exit $failed

at_most() { # NUMBER LIMIT
  "$python" -c "import sys; sys.exit(not float(sys.argv[1]) <= float(sys.argv[2]))" "$1" "$2"
}
core() { # DEPTH TOKENS LIMIT: processor time of runs, of today's
  "$python" -m benchmarks.sweep "$data" 3 "$before" "$root" --depths "$1" --max-tokens "$2" --workers 1 --runs | tee "$work/t"
  at_most "$(sed -n 's/.*processor time \([0-9.]*\):.*/\1/p' "$work/t")" "$3"
}
block "18L-18L, 512 tokens: at most 0.62 of the processor time" core 18 512 0.62
block "50L-50L, 512 tokens: at most 0.62" core 50 512 0.62
block "18L-18L, 128 tokens: at most 0.45" core 18 128 0.45
block "50L-50L, 128 tokens: at most 0.45" core 50 128 0.45
peers() { # at least 2.7 times as fast, 1.6 times per core against one thread
  "$python" -m benchmarks.sweep "$data" 3 "$peer" "$peer@1" "$root" --depths 6,18,50 | tee "$work/t"
  at_most 2.7 "$(sed -n 's/.*peer_sweep.py: \([0-9.]*\) times as fast.*/\1/p' "$work/t")" &&
    at_most 1.6 "$(sed -n 's/.*@1: .*processor time [0-9.]*: \([0-9.]*\)/\1/p' "$work/t")"
}
block "the sweep of 6, 18, 50 layers beside the peer" peers
block "a probe of GPT-2 of 124 M: at most 1.5 times a plain loop" bash -c "'$python' benchmarks/probe_cost.py gpt2 1 | tee '$work/t'; '$python' -c 'import sys; sys.exit(float(open(sys.argv[1]).read().split()[-1]) > 1.5)' '$work/t'"
many() {
  "$python" benchmarks/many_runs.py "$work/many" | tee "$work/t"
  "$python" - "$work/t" <<'P'
import re, sys
text = open(sys.argv[1]).read()
limits = {"runs ls": 2, "--dry-run": 3, "the sweep again: all read, the page": 60}
found = re.findall(r"  (.*): ([\d.]+) s, ([\d.]+) GB", text)
late = [line for line in found if float(line[1]) > limits.get(line[0], 1e9) or float(line[2]) > 1.5]
large = [size for size in map(float, re.findall(r"the page: ([\d.]+) MB", text)) if size > 12]
sys.exit(str(late + large) if late or large or len(found) != 8 else 0)
P
}
block "1,000 and 5,000 runs: ls, plan, page, memory" many
hidden() { # a fresh clone and environment, every program on the path but compilers
  git clone -q "$root" "$work/bare" && mkdir "$work/bin" && ln -sfn "$(cd "$root/../shared" && pwd)" "$work/shared" || return 1
  local folder tool
  while IFS= read -r -d : folder; do
    for tool in "$folder"/*; do
      case ${tool##*/} in *++* | *gcc* | *clang* | cc) ;; *) [ -e "$work/bin/${tool##*/}" ] || ln -s "$tool" "$work/bin/" ;; esac
    done
  done <<<"$(dirname "$(readlink -f "$(command -v python3)")"):$PATH:"
  env PATH="$work/bin" bash -c 'cd "$1" && ! command -v c++ && bash .ci/run' - "$work/bare"
}
block "CI passes where c++ is hidden" hidden
exit $failed
