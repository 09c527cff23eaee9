#!/usr/bin/env bash
# Runs the Python test given on the files given.
exec python3 -B "$@"
