#!/usr/bin/env bash
# Runs an example in one process and on two synchronous workers, and checks that
# each loss that it prints changes. The example checks the rest.
#
#   run_alone_and_on_workers.sh PROGRAM [ARGUMENT...]
set -euo pipefail

program=$1
shift

expect_moving_losses() {
  local output
  output=$(env -u TF_CONFIG "$@" | tee -a /dev/stderr)
  python3 - "$output" <<'PYTHON'
import re
import sys

losses = {}
for name, value in re.findall(r"(\w*) ?\bloss: ([\d.]+)", sys.argv[1]):
    losses.setdefault(name, set()).add(value)
assert losses, "no loss was printed"
assert all(len(values) > 1 for values in losses.values()), losses
PYTHON
}

expect_moving_losses "$program" "$@"
expect_moving_losses deploy/launch/launch --workers=2 --ps=0 \
  --run_dir="$(mktemp -d "${TEST_TMPDIR:-/tmp}/run.XXXXXX")" \
  --program="$program" -- "$@"
