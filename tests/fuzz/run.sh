#!/usr/bin/env bash
# Fuzzes one target:
#
#   tests/fuzz/run.sh TARGET [SECONDS [CORPUS]]
#
# Without a target, prints the names of all targets. CORPUS is a folder for the inputs that the run
# finds; by default a new one. Inputs that crash are written to the working directory as crash-*:
# add them to tests/fuzz/corpus/TARGET together with the fix.
set -euo pipefail

cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../.."
target=${1:-}
seconds=${2:-600}
corpus=${3:-$(mktemp -d)}
bazel build --config=fuzz //tests/fuzz:fuzz
mkdir -p "$corpus"
folders=("$corpus")
[[ -d tests/fuzz/corpus/$target ]] && folders+=("tests/fuzz/corpus/$target")
MUSTER_FUZZ_TARGET=$target MUSTER_FUZZ_SEEDS=$corpus \
  exec bazel-bin/tests/fuzz/fuzz -max_total_time="$seconds" -timeout=20 \
  -rss_limit_mb=4096 -max_len=65536 "${folders[@]}"
