#!/usr/bin/env bash
# Checks that a separate workspace can use Muster as an external repository:
# builds examples/own_project there, and runs the program.
#
#   bazel/build_own_project.sh [--quick] [BAZEL OPTIONS]
#
# Bazel compiles an external repository under other names, so it shares nothing
# with Muster's own build: the first run compiles the whole library again.
# --quick resolves all targets, generates the messages and compiles one room; it takes
# half a minute, once.
set -euo pipefail
cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../examples/own_project"

# The server ends soon after, to free its memory.
../../bazel/refresh_toolchain.sh --max_idle_secs=5
build=(bazel --max_idle_secs=5 build --disk_cache="$HOME/.cache/muster/bazel")
if [[ ${1:-} == --quick ]]; then
  "${build[@]}" "${@:2}" --nobuild //:train
  "${build[@]}" "${@:2}" @muster//proto:proto_generated @muster//common/core/base
  exit
fi

"${build[@]}" "$@" //:train
output=$(env -u TF_CONFIG bazel-bin/train | tee /dev/stderr | tail -n 1)
if ! awk '/^y = / { found = ($3 - 3) ^ 2 < 0.01 && ($6 - 1) ^ 2 < 0.01 }
          END { exit !found }' <<<"$output"; then
  echo "expected y = 3 x + 1, within 0.1; got: $output" >&2
  exit 1
fi
