#!/usr/bin/env bash
# Trains a classifier of handwritten digits on a cluster of five processes on
# this machine: 1 coordinator, 2 workers, 2 parameter servers.
#
#   ./quickstart.sh                  the 1,797 digits that come with the project
#   ./quickstart.sh --data_dir=DIR   MNIST's four IDX files, .gz or not
#
# Installs and builds what is missing first, which it announces with the time that it
# takes. Other flags go to `launch`: ./quickstart.sh --workers=1 --seed=7
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
run_dir=${run_dir:-$PWD/runs/$(date +%Y%m%d-%H%M%S)-$$}
cores=$(nproc)
minutes=$(((11 + cores - 1) / cores))
cat <<PLAN
This will
  1. install the packages of Debian that are missing, as root or with sudo: up to 2 minutes
  2. build Muster on $cores cores: about $minutes minutes the first time, then seconds
  3. train a classifier of digits on five processes: about 10 seconds
  4. leave weights, logs and report.html in $run_dir
PLAN
bazel/setup_debian.sh
# Errors are shown; on a terminal one line tells how far the build is.
bazel build --config=quick --curses=no --color=no --show_progress_rate_limit=1 \
  //coordinator //deploy/launch //ps //worker 2>&1 | python3 -B bazel/show_progress.py

job=(--job=examples/digits/digits.job)
if [[ -n $data_dir ]]; then
  job=(--job=examples/mnist/mnist.job --set "data_dir=$data_dir")
fi
status=0
bazel-bin/deploy/launch/launch --workers=2 --ps=2 "${job[@]}" \
  --run_dir="$run_dir" ${flags[@]+"${flags[@]}"} || status=$?
if ((status == 0)); then
  echo "Trained. The run's figures: $run_dir/summary.json"
  echo "This build is not optimized. For your own jobs, build or install one that is:" \
    "docs/install.md"
else
  echo "The run failed with status $status. Its logs: $run_dir/logs" >&2
fi
exit "$status"
