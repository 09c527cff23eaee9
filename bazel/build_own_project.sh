#!/usr/bin/env bash
# Checks that a workspace of its own can use Muster as an external repository:
# builds examples/own_project there, and runs what it has built.
#
#   bazel/build_own_project.sh [BAZEL OPTIONS]
#
# Bazel compiles an external repository under other names, so nothing is shared
# with Muster's own build, but what was compiled here before is not compiled
# again. The server ends soon after, to give its memory back.
set -euo pipefail
cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../examples/own_project"

bazel --max_idle_secs=5 build --disk_cache="$HOME/.cache/muster/bazel" "$@" //:train
output=$(env -u TF_CONFIG bazel-bin/train | tee /dev/stderr | tail -n 1)
if ! awk '/^y = / { found = ($3 - 3) ^ 2 < 0.01 && ($6 - 1) ^ 2 < 0.01 }
          END { exit !found }' <<<"$output"; then
  echo "expected y = 3 x + 1, within 0.1; got: $output" >&2
  exit 1
fi
