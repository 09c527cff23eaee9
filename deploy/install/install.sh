#!/usr/bin/env bash
# Installs Muster's executables, without their symbols, and what they say about
# themselves.
#
#   bazel run //:install -- --prefix=DIR
#
#   DIR/bin                           coordinator, launch, musterctl, ps, worker
#   DIR/share/man/man1                muster-launch.1, ...: man muster-launch
#   DIR/share/muster/completion.bash  completes their flags: source it in ~/.bashrc
#
# A relative DIR counts from where bazel was run. There is no default, because
# bin/ps would hide ps(1) in folders like /usr/local.
set -euo pipefail

usage="Usage: bazel run //:install -- --prefix=DIR"
prefix=
for argument in "$@"; do
  case $argument in
    --prefix=?*) prefix=${argument#--prefix=} ;;
    -h | --help)
      sed -n '2,13s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *)
      echo "install: unknown argument $argument. $usage" >&2
      exit 2
      ;;
  esac
done

if [[ -z $prefix ]]; then
  echo "install: --prefix is missing. $usage" >&2
  exit 2
fi

executables=(coordinator/coordinator deploy/launch/launch deploy/musterctl/musterctl ps/ps
  worker/worker)
prefix=$(cd "${BUILD_WORKING_DIRECTORY:-$PWD}" && realpath -m -- "$prefix")
mkdir -p -- "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/muster"
install --strip --mode=755 -t "$prefix/bin" -- "${executables[@]}"
for executable in "${executables[@]}"; do
  name=${executable##*/}
  "$prefix/bin/$name" --help=man >"$prefix/share/man/man1/muster-$name.1"
  "$prefix/bin/$name" --help=bash
done >"$prefix/share/muster/completion.bash"
echo "installed in $prefix/bin: ${executables[*]##*/}"
