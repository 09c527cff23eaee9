#!/usr/bin/env bash
# Fails if file $1 is not empty; $2 says why it must be empty.
set -u
if [[ -s "$1" ]]; then
  echo "These labels are reachable and must not be:"
  cat "$1"
  echo "Reason: $2"
  exit 1
fi
