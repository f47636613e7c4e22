#!/usr/bin/env bash
# Issue 17, sentence by sentence. Run from anywhere, against a fresh clone: tests/acceptance/17.sh [--quick]
# --quick leaves out what takes minutes: the suite, CI and the mutants.
. "$(dirname "$0")/common.sh"
python=$root/.venv/bin/python
count() { find "$root/stabkit" -maxdepth 1 -mindepth 1 ! -name __pycache__ "$@" | wc -l; }

# — The house
block "at most 25 entries at the package's root, at most 8 of them files" bash -c "[ $(count) -le 25 ] && [ $(count -type f) -le 8 ]"
block "rooms of at most 15 files, files of at most 300 lines, nothing but cli prints; who never imports torch" dev test tests/test_architecture.py
block "rooms in one order, imports downward only, no circle of files: import-linter, by dev.py lint" dev lint
rooms() { (cd "$work" && PYTHONPATH=$work "$python" -c "from importlinter.cli import lint_imports_command as check; check(['--no-cache'])"); }
cp -r "$root/stabkit" "$root/pyproject.toml" "$work/"
block "a copy of the package keeps every contract" rooms
echo 'from stabkit.cli import console' >>"$work/stabkit/probes/loss.py"
upward() { ! rooms >"$work/said" && grep -q 'each imports only from rooms below it BROKEN' "$work/said"; }
block "  … and with one import upward it breaks that of the order" upward
block "tests mirror the rooms" bash -c "cd '$root/tests' && for room in */; do [ \$room = acceptance/ ] || [ \$room = __pycache__/ ] || [ -d ../stabkit/\$room ] || exit 1; done"
block "old import paths are gone" bash -c "! '$python' -c 'import stabkit.executors' 2>/dev/null && ! '$python' -c 'import stabkit.document' 2>/dev/null"
block "docs/architecture.md: one picture, one screen; the README links to it" bash -c "cd '$root' && grep -q '\`\`\`mermaid' docs/architecture.md && [ \$(wc -l <docs/architecture.md) -le 70 ] && grep -q docs/architecture.md README.md"
block "the same commands, the same bytes: every tiny run is the committed one" dev test tests/running/test_determinism.py
# — The suite
seconds() { local begin; begin=$(date +%s); "$@" >"$work/out" 2>&1 || { tail -n 12 "$work/out"; return 1; }; echo $(($(date +%s) - begin)) >"$work/seconds"; }
within() { local most=$1; shift; seconds "$@" && { cat "$work/seconds"; [ "$(cat "$work/seconds")" -le "$most" ]; }; }
if [ -z "$quick" ]; then
  block "dev.py test: at most 3 minutes" within 180 env -u STABKIT_EXAMPLES python3 "$root/dev.py" test
  block ".ci/run: at most 9 minutes, the ten slowest tests at its end" within 540 "$root/.ci/run"
  block "  … the ten slowest are named" grep -q "slowest 10 durations" "$work/out"
fi
block "sixty mutants by a fixed seed; the share killed is not lower after the move" python3 "$root/tests/acceptance/check.py" mutants "$root/benchmarks/mutants.json"
block "no sleep where an event will do, no timing asserts" bash -c "! grep -rnE 'assert .*(monotonic|perf_counter)\(\) - ' '$root/tests' --include=*.py"
exit $failed
