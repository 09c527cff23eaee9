#!/usr/bin/env bash
# Trains a classifier of handwritten digits on a cluster of five processes on
# this machine: 1 coordinator, 2 workers, 2 parameter servers.
#
#   ./quickstart.sh                  the 1,797 digits that come with the project
#   ./quickstart.sh --data_dir=DIR   MNIST's four IDX files, .gz or not
#
# Installs and builds what is missing first. Other flags go to `launch`:
# ./quickstart.sh --workers=1 --seed=7
set -euo pipefail

data_dir=
run_dir=
flags=()
for argument in "$@"; do
  case $argument in
    -h | --help)
      sed -n '2,9s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    --data_dir=*) data_dir=${argument#--data_dir=} ;;
    --run_dir=*) run_dir=$(realpath -m -- "${argument#--run_dir=}") ;;
    *) flags+=("$argument") ;;
  esac
done
if [[ -n $data_dir ]]; then
  if ! data_dir=$(realpath -e -- "$data_dir"); then
    echo "--data_dir: no such folder" >&2
    exit 2
  fi
fi

cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")"
export HOME=${HOME:-/root}
bazel/setup_debian.sh
bazel build //coordinator //deploy/launch //ps //worker

job=(--job=examples/digits/digits.job)
if [[ -n $data_dir ]]; then
  job=(--job=examples/mnist/mnist.job --set "data_dir=$data_dir")
fi
run_dir=${run_dir:-$PWD/runs/$(date +%Y%m%d-%H%M%S)-$$}
status=0
bazel-bin/deploy/launch/launch --workers=2 --ps=2 "${job[@]}" \
  --run_dir="$run_dir" ${flags[@]+"${flags[@]}"} || status=$?
if ((status == 0)); then
  echo "Trained. The run's figures: $run_dir/summary.json"
else
  echo "The run failed with status $status. Its logs: $run_dir/logs" >&2
fi
exit "$status"
