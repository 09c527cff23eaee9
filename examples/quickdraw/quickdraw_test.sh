#!/usr/bin/env bash
# Checks that both programs learn the drawings of this tree: alone, on two replicas of one
# process, on two simulated GPUs, and on two workers; with Fit() also on a parameter server.
set -euo pipefail

folder=examples/quickdraw
run_dir=$(mktemp -d "${TEST_TMPDIR:-/tmp}/run.XXXXXX")

# Runs a program and checks that the last test accuracy that it prints is high. Sets
# `output`.
expect_learns() {
  local accuracy
  output=$(env -u TF_CONFIG "$@" 2>&1 | tee /dev/stderr)
  accuracy=$(grep -o 'test accuracy [0-9.]*' <<<"$output" | tail -n 1 | cut -d' ' -f3)
  awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy > 0.9) }' || {
    echo "the test accuracy is \"$accuracy\"; expected more than 0.9: $*" >&2
    exit 1
  }
}

for program in quickdraw quickdraw_custom_loop; do
  expect_learns "$folder/$program" --run_dir="$run_dir/$program.alone"
  expect_learns "$folder/$program" --run_dir="$run_dir/$program.replicas" \
    --set devices=cpu:0,cpu:1
  expect_learns "$folder/$program" --run_dir="$run_dir/$program.gpus" \
    --gpu_simulated=2 --set image_size=12 --set epochs=5
  grep -q "replicas on gpu:0, gpu:1 combine gradients" <<<"$output"
  expect_learns deploy/launch/launch --workers=2 --ps=0 \
    --run_dir="$run_dir/$program.workers" --program="$folder/$program"
done
expect_learns deploy/launch/launch --workers=2 --ps=1 \
  --run_dir="$run_dir/servers" --program="$folder/quickdraw"
