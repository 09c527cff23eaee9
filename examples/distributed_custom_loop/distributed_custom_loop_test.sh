#!/usr/bin/env bash
# The loop learns, and learns the same on one replica and on several.
set -euo pipefail

program=examples/distributed_custom_loop/distributed_custom_loop

losses() {
  env -u TF_CONFIG "$program" --set devices="$1" --threads=1 |
    tee /dev/stderr | grep -o 'loss: [0-9.]*' | cut -d' ' -f2
}

one=$(losses cpu:0)
for devices in cpu:0,cpu:1 cpu:0,cpu:1,cpu:2; do
  several=$(losses "$devices")
  python3 - "$one" "$several" <<'PYTHON'
import sys
one, several = ([float(x) for x in text.split()] for text in sys.argv[1:])
assert len(one) == 4, one
assert len(several) == 4, several
for a, b in zip(one, several):
    assert abs(a - b) < 3e-5, (one, several)
PYTHON
done
