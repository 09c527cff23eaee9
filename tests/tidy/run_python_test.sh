#!/usr/bin/env bash
# Runs a Python test. Its modules are in the same folder.
exec python3 -B "$1"
