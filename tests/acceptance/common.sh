# Sourced by every script here: `block NAME COMMAND…` prints PASS or FAIL with the seconds that it took, `stab` is the
# command line of this checkout, `work` a directory that goes with the script. End with `exit $failed`.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bin=${STABKIT_BIN:-$root/.venv/bin}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1
failed=0
cd "$work"
stab() { "$bin/python" -m stabkit "$@"; }
ends() { local code=$1; shift; "$@"; [ $? -eq "$code" ]; } # with this exit code
says() { local text=$1; shift; "$@" 2>&1 | tr -s '\n ' ' ' | grep -qE -- "$text"; } # somewhere in its output
block() {
  local name=$1 begin=$SECONDS; shift
  if "$@" >"$work/log" 2>&1; then echo "PASS $((SECONDS - begin)) s  $name"
  else echo "FAIL $((SECONDS - begin)) s  $name"; sed 's/^/     /' "$work/log" | tail -n 12; failed=1; fi
}
