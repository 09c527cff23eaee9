#!/usr/bin/env bash
# Makes Bazel list the installed headers again if some were installed or removed since it last did
# so. Run it in the workspace that is built, with Bazel's startup options.
#
# layering_check reads the list of system headers that Bazel wrote when it first configured the C++
# toolchain. A library that was installed later is not on the list, and Bazel rejects an include of
# it as a missing dependency.
set -euo pipefail

complaints=$(mktemp)
trap 'rm -f "$complaints"' EXIT
if ! output_base=$(bazel "$@" info output_base 2>"$complaints"); then
  cat "$complaints" >&2
  exit 1
fi
headers=$output_base/external/local_config_cc/module.modulemap
[[ -e $headers ]] || exit 0
# Compares the change time of folders: dpkg sets the modification time of contents back.
changed=$(find /usr/include /usr/lib/gcc /usr/lib/llvm-*/lib/clang -type d \
  -newercm "$headers" -print -quit)
[[ -n $changed ]] || exit 0
echo "$changed has changed: configuring the C++ toolchain again" >&2
bazel "$@" sync --configure >&2
