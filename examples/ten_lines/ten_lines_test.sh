#!/usr/bin/env bash
# The program trains, and its last epoch has learned to read.
set -euo pipefail

output=$(env -u TF_CONFIG examples/ten_lines/ten_lines \
  --set data_dir=examples/data/digits --threads=1)
echo "$output"
accuracy=$(grep -o 'val_sparse_categorical_accuracy: [0-9.]*' <<<"$output" |
  tail -1 | cut -d' ' -f2)
python3 -c "assert $accuracy >= 0.95, $accuracy"
