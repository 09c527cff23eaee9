#!/bin/bash
# Trains on simulated clusters, one for each seed:
#
#   tests/simulation/simulate.sh --seeds=1000
#   tests/simulation/simulate.sh --first_seed=17 --seeds=1      # repeats a failure
#
# docs/design/simulation.md says what is simulated. --help lists the other flags.
set -e -u -o pipefail
cd "$(dirname "$0")/../.."
bazel build --config=units --ui_event_filters=-info,-stdout --noshow_progress --show_result=0 \
    //tests/simulation/cluster:simulation
exec bazel-bin/tests/simulation/cluster/simulation "$@"
