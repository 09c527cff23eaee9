#!/usr/bin/env bash
# Makes Bazel look at the installed headers again, if any came or went since it
# last did. Run it in the workspace that is built, with Bazel's startup options.
#
# layering_check reads the list of system headers that Bazel wrote when it first
# configured the C++ toolchain. A library that was installed later is not on the
# list, and including it is refused as a missing dependency.
set -euo pipefail

complaints=$(mktemp)
trap 'rm -f "$complaints"' EXIT
if ! output_base=$(bazel "$@" info output_base 2>"$complaints"); then
  cat "$complaints" >&2
  exit 1
fi
headers=$output_base/external/local_config_cc/module.modulemap
[[ -e $headers ]] || exit 0
# The time of a folder's last change: dpkg sets back that of its contents.
changed=$(find /usr/include /usr/lib/gcc /usr/lib/llvm-*/lib/clang -type d \
  -newercm "$headers" -print -quit)
[[ -n $changed ]] || exit 0
echo "$changed has changed: configuring the C++ toolchain again" >&2
bazel "$@" sync --configure >&2
