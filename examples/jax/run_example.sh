#!/usr/bin/env bash
# Runs an example, and checks that its model reads digits. MUSTER_KERAS_PYTHON must name a Python
# with JAX, Flax and Equinox, and MUSTER_PJRT_PLUGIN a plugin. Otherwise the test prints a note and
# passes.
set -euo pipefail
if [[ -z ${MUSTER_KERAS_PYTHON-} || -z ${MUSTER_PJRT_PLUGIN-} ]]; then
  echo "MUSTER_KERAS_PYTHON or MUSTER_PJRT_PLUGIN is not set: the test is skipped."
  exit 0
fi
export MUSTER_BIN=$PWD PYTHONPATH=$PWD/deploy/python
"$MUSTER_KERAS_PYTHON" -B "$1" 6 | tee "$TEST_TMPDIR/log"
accuracy=$(sed -n 's/^accuracy on the test digits: 0\.\([0-9]\{3\}\)$/\1/p' "$TEST_TMPDIR/log")
((10#$accuracy > 930))
