#!/usr/bin/env bash
# Makes HTML pages of headers, DIR/annotated.html and others, and with --tags a tag file of
# Doxygen. Prints Doxygen's warnings.
#
#   make_api_pages.sh --include=DIR --version=VERSION --output=DIR [--tags=FILE]
#
# Needs Python, and Debian's package doxygen.
set -euo pipefail

include=
version=
output=
tags=
for argument in "$@"; do
  case $argument in
    --include=?*) include=${argument#*=} ;;
    --version=?*) version=${argument#*=} ;;
    --output=?*) output=${argument#*=} ;;
    --tags=?*) tags=$(realpath -m -- "${argument#*=}") ;;
    *)
      echo "make_api_pages: unknown argument $argument" >&2
      exit 2
      ;;
  esac
done
if [[ -z $include || -z $version || -z $output ]]; then
  echo "make_api_pages: expected --include=DIR --version=VERSION --output=DIR" >&2
  exit 2
fi
include=$(realpath -- "$include")
output=$(realpath -m -- "$output")
mkdir -p -- "$output"
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
headers=$(mktemp -d)
trap 'rm -rf "$headers"' EXIT
python3 -B doxygen_comments.py "$include" "$headers"
{
  cat Doxyfile
  echo "PROJECT_NUMBER = \"$version\""
  echo "INPUT = \"$headers\""
  echo "STRIP_FROM_PATH = \"$headers\""
  echo "OUTPUT_DIRECTORY = \"${output%/*}\""
  echo "HTML_OUTPUT = \"${output##*/}\""
  echo "GENERATE_TAGFILE = \"$tags\""
} | doxygen -
