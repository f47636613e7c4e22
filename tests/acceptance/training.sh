#!/usr/bin/env bash
# The subject's issue, sentence by sentence, on real input. Run from anywhere, against a fresh clone: tests/acceptance/training.sh [--quick]
# Prints PASS or FAIL a block; exits 1 if any failed. --quick leaves out the blocks that train for minutes.
. "$(dirname "$0")/common.sh"
rejects() { # rejects OPTIONS… : exit 2, one line on stderr, nothing on stdout, under 3 s, no directory
  local begin; begin=$(date +%s%N)
  (cd "$work" && dev "$@" --out "$work/none" >"$work/out" 2>"$work/err"); local code=$?
  local ms=$((($(date +%s%N) - begin) / 1000000))
  [ $code = 2 ] && [ ! -s "$work/out" ] && [ "$(wc -l <"$work/err")" = 1 ] && [ ! -e "$work/none" ] && [ $ms -lt 3000 ] ||
    { echo "code $code, $ms ms: $(cat "$work/out" "$work/err")"; return 1; }
}
json() { python3 - "$@"; }

# — What a user gets
if [ -z "$quick" ]; then
  block "dev.py sweep: four methods at 6,18,50,100, verdict and report" bash -c "cd '$work' && python3 '$root/dev.py' sweep --out '$work/s' --json >'$work/s.json'"
  block "sixteen runs, strict JSON, the fields of the issue" python3 "$root/tests/acceptance/check.py" sixteen "$work/s.json"
  block "the synthetic task shows the signs (exponent ≥ 0.7, ratio at 50L ≥ 10)" python3 "$root/tests/acceptance/check.py" signs "$work/s.json" 0.7 10
  block "the same command again trains nothing and says so" bash -c "cd '$work' && python3 '$root/dev.py' sweep --out '$work/s' 2>&1 | grep -q 'nothing to train'"
  block "real text: three seeds" dev sweep --data "$data" --source de --target en --seeds 0..2 --out "$work/m" --json --quiet
  cp "$work/log" "$work/m.json"
  block "real text: ratio ≥ 15 at 50L, ≥ 10 at 100L, exponents ≥ 0.8 and ≤ 0.65, gradients" python3 "$root/tests/acceptance/check.py" numbers "$work/m.json"
  block "18L-18L without warm-up, 250 steps, Multi30k" dev sweep --depths 18 --steps 250 --warmup 0 --data "$data" --source de --target en --out "$work/m" --json --quiet
  cp "$work/log" "$work/w.json"
  block "Post-LN stuck within 0.05 of U, the other three train, 0.3 below" python3 "$root/tests/acceptance/check.py" stuck "$work/w.json"
  block "18L-18L without warm-up, 400 steps, synthetic" dev sweep --depths 18 --steps 400 --warmup 0 --out "$work/s" --json --quiet
  cp "$work/log" "$work/y.json"
  block "the synthetic task likewise" python3 "$root/tests/acceptance/check.py" stuck "$work/y.json"
  block "dev.py test" dev test
  block "dev.py test -m slow" dev test -m slow
fi

# — 1 The project
block "licence, constraints, entry point, ignored folders" bash -c "cd '$root' && grep -q MIT LICENSE && test -f constraints.txt && grep -q 'stabkit.__main__:main' pyproject.toml && git check-ignore -q runs/x && git check-ignore -q surfaces/x && test -x .ci/run && test -f .pre-commit-config.yaml"
block "lint and types" dev lint
# — 2 to 7 hold by the suite (tests/model, tests/methods, tests/tasks, tests/probes, tests/results/test_outcome.py)
block "asymmetric depths, other sizes, fairseq base" dev sweep --depths 3x2,2x5 --steps 2 --hidden 32 --ffn 48 --heads 4 --base-init fairseq_uniform --vocab 300 --out "$work/a" --quiet
block "keys in any case, hyphens or none; options" dev sweep --models PostLN,POST-LN-INIT,Admin:omega=closed,deepnorm --depths 2 --steps 1 --out "$work/a" --quiet
block "warm-up and rate are axes" bash -c "python3 '$root/dev.py' sweep --depths 2 --steps 1 --warmup 4000,0 --lr 5e-4,1e-3 --models deepnorm --out '$work/a' --json --quiet | python3 '$root/tests/acceptance/check.py' count 4"
# — 8 Store
block "a wider grid trains only what is missing" bash -c "python3 '$root/dev.py' sweep --depths 2,3 --steps 1 --models deepnorm --out '$work/a' 2>&1 | grep -q 'reused 1, new 1'"
block "weights are kept" bash -c "ls '$work'/a/runs/*/weights.safetensors"
# — 9 Command line
block "report, runs ls, show, rm, methods" bash -c "cd '$work/a' && d='python3 $root/dev.py' && \$d report --out r.html && test -s r.html && \$d runs ls && \$d runs show deepnorm-3L-3L && \$d runs rm deepnorm-3L-3L && ! \$d runs show deepnorm-3L-3L && \$d methods && \$d methods deepnorm --depths 100x100 --json"
block "--dry-run trains nothing and makes nothing" bash -c "python3 '$root/dev.py' sweep --dry-run --out '$work/none' && test ! -e '$work/none'"
block "--print-config, --config" bash -c "python3 '$root/dev.py' sweep --depths 2 --print-config >'$work/c.toml' && python3 '$root/dev.py' sweep --config '$work/c.toml' --steps 1 --dry-run"
block "bad method" rejects sweep --models deepnrom
block "bad depth" rejects sweep --depths 6,,18
block "bad seed" rejects sweep --seeds 1_000
block "bad option" rejects sweep --dephts 6
block "bad steps" rejects sweep --steps -5
block "absurd grid" rejects sweep --seeds 0..9999
block "missing corpus" rejects sweep --data "$work/nowhere" --source de --target en
exit $failed
