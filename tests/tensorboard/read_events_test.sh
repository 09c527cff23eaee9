#!/bin/bash
# Writes events and reads them with TensorBoard.
set -euo pipefail

python="${MUSTER_TENSORBOARD_PYTHON:-}"
if [[ -z "$python" ]]; then
  echo "MUSTER_TENSORBOARD_PYTHON is not set: the test is skipped."
  echo "Try: python3 -m venv venv && venv/bin/pip install tensorboard, and"
  echo "MUSTER_TENSORBOARD_PYTHON=\$PWD/venv/bin/python bazel test ..."
  exit 0
fi
tests/tensorboard/write_events "$TEST_TMPDIR/logs"
"$python" tests/tensorboard/read_events.py "$TEST_TMPDIR/logs"
