#!/usr/bin/env bash
exec python3 -B deploy/python/make_wheel.py "$@"
