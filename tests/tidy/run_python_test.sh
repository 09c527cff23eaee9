#!/usr/bin/env bash
# Runs the Python test given, beside whose file its modules lie.
exec python3 -B "$1"
