#!/usr/bin/env bash
# Installs Muster's executables, without their symbols, below a folder.
#
#   bazel run //:install -- --prefix=DIR    DIR/bin/coordinator, launch, ps, worker
#
# DIR is /usr/local unless given. A relative DIR counts from where bazel was run.
set -euo pipefail

usage="Usage: bazel run //:install -- [--prefix=DIR]"
prefix=/usr/local
for argument in "$@"; do
  case $argument in
    --prefix=?*) prefix=${argument#--prefix=} ;;
    -h | --help)
      sed -n '2,6s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *)
      echo "install: unknown argument $argument. $usage" >&2
      exit 2
      ;;
  esac
done

executables=(coordinator/coordinator deploy/launch/launch ps/ps worker/worker)
prefix=$(cd "${BUILD_WORKING_DIRECTORY:-$PWD}" && realpath -m -- "$prefix")
mkdir -p -- "$prefix/bin"
install --strip --mode=755 -t "$prefix/bin" -- "${executables[@]}"
echo "installed in $prefix/bin: ${executables[*]##*/}"
