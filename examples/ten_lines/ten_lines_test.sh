#!/usr/bin/env bash
# Checks that the program trains, that the final accuracy is high, and that the
# result depends on --seed.
set -euo pipefail

train() {
  env -u TF_CONFIG examples/ten_lines/ten_lines \
    --set data_dir=examples/data/digits --threads=1 "$@"
}

output=$(train)
echo "$output"
accuracy=$(grep -o 'val_sparse_categorical_accuracy: [0-9.]*' <<<"$output" |
  tail -1 | cut -d' ' -f2)
python3 -c "assert $accuracy >= 0.95, $accuracy"

first=$(train --seed=1 | tail -n 1)
again=$(train --seed=1 | tail -n 1)
other=$(train --seed=2 | tail -n 1)
if [[ $first != "$again" || $first == "$other" ]]; then
  echo "val_loss with seeds 1, 1 and 2: $first, $again, $other" >&2
  exit 1
fi
