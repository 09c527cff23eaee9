#!/usr/bin/env bash
# Checks that the loop learns, and that the losses are equal for one replica and
# several, in one process and in two.
set -euo pipefail

program=examples/distributed_custom_loop/distributed_custom_loop

losses() {
  env -u TF_CONFIG "$@" | tee /dev/stderr | grep -o 'loss: [0-9.]*' |
    cut -d' ' -f2
}

expect_same() {
  python3 - "$1" "$2" <<'PYTHON'
import sys
one, several = ([float(x) for x in text.split()] for text in sys.argv[1:])
assert len(one) == 4, one
assert len(several) == 4, several
for a, b in zip(one, several):
    assert abs(a - b) < 3e-5, (one, several)
PYTHON
}

one=$(losses "$program" --set devices=cpu:0 --threads=1)
for devices in cpu:0,cpu:1 cpu:0,cpu:1,cpu:2; do
  expect_same "$one" \
    "$(losses "$program" --set devices="$devices" --threads=1)"
done
expect_same "$one" "$(losses deploy/launch/launch --workers=2 --ps=0 \
  --run_dir="${TEST_TMPDIR:-/tmp}/run" --program="$program")"
