#!/usr/bin/env bash
# Trains on synthetic data, and on MNIST if MUSTER_TEST_DATA names a folder with mnist/.
set -euo pipefail

examples/run_alone_and_on_workers.sh examples/gan/gan
if [[ -n ${MUSTER_TEST_DATA:-} ]]; then
  examples/run_alone_and_on_workers.sh examples/gan/gan \
    --set mnist_dir="$MUSTER_TEST_DATA/mnist"
fi
