#!/usr/bin/env bash
# Checks that digits.sbatch is the output of `launch --slurm`, and that bash can parse it.
set -euo pipefail

# Runs the command of docs/slurm.md, with the paths of a cluster.
root=$(pwd -P)
deploy/launch/launch --slurm --workers=2 --ps=1 --tls=auto --bin_dir=/nfs/muster/bin \
  --job=examples/digits/digits.job --set data_dir=/nfs/digits |
  sed "s#--job=$root/#--job=/nfs/#" >"$TEST_TMPDIR/printed"
diff "$TEST_TMPDIR/printed" deploy/slurm/digits.sbatch
bash -n deploy/slurm/digits.sbatch
