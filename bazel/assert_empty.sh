#!/usr/bin/env bash
# Fails when file $1 lists anything; $2 says why the list has to be empty.
set -u
if [[ -s "$1" ]]; then
  echo "These labels are reachable and must not be:"
  cat "$1"
  echo "Reason: $2"
  exit 1
fi
