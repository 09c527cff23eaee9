#!/usr/bin/env bash
PYTHONPATH=$PWD exec python3 -B deploy/python/make_wheel.py "$@"
