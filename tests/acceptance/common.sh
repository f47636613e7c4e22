# Sourced by every script here: `block NAME COMMAND…` prints PASS or FAIL; `quick` is set by --quick and leaves out what
# takes minutes; `work` is a directory that goes with the script. End with `exit $failed`.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
data=${STABKIT_MULTI30K:-$root/../shared/data/multi30k}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export STABKIT_EXAMPLES=full # as in CI: all examples and cases
quick=${1:-}
failed=0
dev() { # slow tests too, unless the block says which
  if [ "$1" = test ] && [[ " $* " != *" -m "* ]]; then python3 "$root/dev.py" "$@" -m "slow or not slow"
  else python3 "$root/dev.py" "$@"; fi
}
check() { python3 "$root/tests/acceptance/check.py" "$@"; }
block() { # the command must exit 0
  local name=$1; shift
  if "$@" >"$work/log" 2>&1; then echo "PASS $name"; else echo "FAIL $name"; sed 's/^/     /' "$work/log" | tail -n 12; failed=1; fi
}

block "dev.py sets up" dev --version
