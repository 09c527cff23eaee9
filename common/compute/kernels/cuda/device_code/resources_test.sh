#!/usr/bin/env bash
# Runs the given Python test on the given files.
exec python3 -B "$@"
