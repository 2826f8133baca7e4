#!/usr/bin/env bash
# Every check of the project, as CI runs it: format, all tests (the last of them against a real kube-apiserver, with the rights
# that the chart grants and no others; one that no test uses is a failure), lints.
# Needs Rust, openssl and, for the real suite, Go or KUBEBUILDER_ASSETS; without either that suite is skipped aloud.
# Ends with one line `N passed, N failed, N skipped`; the exit code is 0 only when nothing failed.
#
#   TEPHRA_CACHE       folder of what later runs and other clones can use again (~/.cache/tephra): the control plane's
#                      programs and, unless CARGO_TARGET_DIR is set, cargo's target folder
#   TEPHRA_RIG_KEEP=1  leaves the folders of control planes (logs, audit log, data) in /tmp for inspection
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cache=${TEPHRA_CACHE:-$HOME/.cache/tephra}
work=$(mktemp -d)
rig_pid=
finish() {
  if [ -n "$rig_pid" ]; then kill -- "-$rig_pid" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap finish EXIT
: >"$work/failures"

# At a terminal Ctrl-C must reach cargo; elsewhere a time-out must reach all that cargo started.
foreground=
[ ! -t 0 ] || foreground=--foreground

step() { printf '\n=== %s (%d s)\n' "$*" "$SECONDS"; }
checks_failed=0
check() { # name, command...
  step "$1"
  shift
  if ! "$@" 2>&1 | tee "$work/check.log"; then
    checks_failed=$((checks_failed + 1))
    { echo "FAILED: $*"; tail -n 25 "$work/check.log"; } >>"$work/failures"
  fi
}

if [ -z "${CARGO_TARGET_DIR:-}" ]; then
  export CARGO_TARGET_DIR=$cache/target
  mkdir -p "$CARGO_TARGET_DIR"
  # Cargo tells clones apart by file times alone: what another clone built must not pass for ours. Dependencies stay.
  if [ "$(cat "$CARGO_TARGET_DIR/checkout" 2>/dev/null)" != "$PWD" ]; then
    rm -rf "$CARGO_TARGET_DIR"/*/.fingerprint/{tephra,xtask}*
    echo "$PWD" >"$CARGO_TARGET_DIR/checkout"
  fi
fi
# A fresh clone cannot use the state that incremental builds leave, only carry it about.
export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}

step "control plane: building in the background, as far as it is missing"
setsid nice -n 19 bash tests/rig/build.sh >"$work/rig.out" 2>"$work/rig.log" &
rig_pid=$!
# Nice values count only within a session; between sessions this one does. Not every kernel has it.
weight() { { echo "$1" >"/proc/$rig_pid/autogroup"; } 2>/dev/null || true; }
weight 10

check "format" cargo fmt --all --check

step "compiling the tests"
tests=0
timeout $foreground 60m cargo test --workspace --locked --no-run || tests=$?
[ "$tests" -ne 0 ] || cargo build --workspace --bins --locked || tests=$?

step "waiting for the control plane"
weight 0
rig=0
wait "$rig_pid" || rig=$?
rig_pid=
cat "$work/rig.log"
case $rig in
0) ;;
3) echo "The suites against a real API server cannot run here: see above." ;;
*) echo "FAILED: building the control plane" | tee -a "$work/failures"; checks_failed=$((checks_failed + 1)) ;;
esac

step "tests"
: >"$work/tests.log"
if [ "$tests" -eq 0 ]; then
  # The binaries are built: the real suite need not ask cargo again.
  TEPHRA_BIN=$CARGO_TARGET_DIR/debug TEPHRA_RIGHTS=$work/rights timeout $foreground 45m \
    cargo test --workspace --locked --no-fail-fast 2>&1 | tee "$work/tests.log" || tests=$?
fi

# Every case has left what it used of the chart's rights; one that fails leaves nothing, and is enough of a failure.
if [ "$tests" -eq 0 ] && [ -d "$work/rights" ]; then
  check "rights that the chart grants" "$CARGO_TARGET_DIR/debug/rights" "$work/rights"
fi

check "lints" cargo clippy --workspace --all-targets --locked -- -D warnings
if command -v cargo-deny >/dev/null; then
  check "licences and sources" cargo deny --offline check bans licenses sources
fi

step "done"
# What failed, once more: only the end of a long log is looked at.
grep -hE "^test .*FAILED|panicked at|^error(\[|:)" -A 5 "$work/tests.log" | tail -n 60 || true
cat "$work/failures"

# A test that finds nothing to test against says `SKIPPED` and returns, which cargo counts as passed.
awk -v tests="$tests" -v checks="$checks_failed" '
  /^test result:/ { for (i = 2; i < NF; i++) {
    if ($(i + 1) == "passed;") passed += $i
    if ($(i + 1) == "failed;") failed += $i
    if ($(i + 1) == "ignored;") skipped += $i } }
  /^SKIPPED / { skipped++; passed-- }
  END {
    # A suite that does not compile, or dies, has no result line.
    if (tests != 0 && failed == 0) failed = 1
    failed += checks
    printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
    exit failed != 0
  }' "$work/tests.log"
