#!/usr/bin/env bash
PYTHONPATH=$PWD exec python3 -B deploy/bundle/make_bundle.py "$@"
