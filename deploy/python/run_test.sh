#!/usr/bin/env bash
# Runs a Python test with the executables of the build: FILE [TEST...]
export MUSTER_BIN="$PWD"
exec "${MUSTER_KERAS_PYTHON:-python3}" -B "$@"
