#!/usr/bin/env bash
# Precompiles bazel/precompiled_headers.h for libraries and for tests, and writes
# bazel/precompiled.bazelrc, with which sources use the result. Does nothing if
# that has been done for these headers, this compiler and these options.
# docs/design/build.md says why.
set -euo pipefail
cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/.."

# Clang refuses a precompiled header unless the language and the macros are those
# of the source. These are the options with which Bazel compiles.
common=(
  -x c++-header -std=c++20 -fno-math-errno -fstack-protector
  -fno-omit-frame-pointer -ffunction-sections -fdata-sections -g0 -DNDEBUG
  -fmodules-strict-decluse
  -Wno-builtin-macro-redefined '-D__DATE__="redacted"'
  '-D__TIMESTAMP__="redacted"' '-D__TIME__="redacted"'
)
# Instantiated here, inline functions are not instantiated again by every source.
common+=(-fpch-instantiate-templates)
library=(-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=1)
# For update rules and reductions, which are compiled with this option.
uncontracted=("${library[@]}" -ffp-contract=off)
tests=(-O0 -include gmock/gmock.h -include gtest/gtest.h)

# The name changes with all that the result depends on, so that Bazel compiles
# again what was compiled with another.
version=$({
  cat bazel/precompiled_headers.h bazel/precompile_headers.sh
  clang --version
  dpkg-query -W libabsl-dev libc6-dev libclang-common-14-dev libgmock-dev \
    libgtest-dev libprotobuf-dev libstdc++-12-dev linux-libc-dev
} | sha256sum | cut -c -16)
folder=$HOME/.cache/muster/headers/$version

# precompile NAME OPTION...
precompile() {
  local name=$1
  shift
  [[ -e $folder/$name.pch ]] && return
  local made
  made=$(mktemp "$folder/$name.XXXXXX")
  # From standard input: Bazel is to see no header outside of the system's.
  clang "${common[@]}" "$@" - -o "$made" <bazel/precompiled_headers.h
  mv "$made" "$folder/$name.pch"
}
mkdir -p "$folder"
precompile library "${library[@]}" &
precompile tests "${tests[@]}"
wait $!
precompile uncontracted "${uncontracted[@]}"

# use NAME FILTER [OPTION,]: sources that match the filter use precompiled headers.
use() {
  echo "build${3:+:quick} --per_file_copt=$2@${3-}-include-pch,$folder/$1.pch"
}
# Bazel matches the path of a source and its label: a filter allows `/` and `:`.
rules='common/compute/optimizers[/:].*\.cc$'
reductions='common/net/collectives[/:][^/:]*\.cc$'
# --config=quick optimizes loops over elements only: these and the two above.
kernels='common/compute/kernels/cpu[/:].*\.cc$'
wanted="# Written by bazel/precompile_headers.sh.
$(use library ".*\\.cc\$,-.*_test\\.cc\$,-$rules,-$reductions")
$(use uncontracted "$rules,$reductions,-.*_test\\.cc\$")
$(use tests ".*_test\\.cc\$,-.*[/:]schedule_test\\.cc\$")
$(use tests ".*\\.cc\$,-.*_test\\.cc\$,-$rules,-$reductions,-$kernels" \
  -O0,-U_FORTIFY_SOURCE,)"
if [[ $(cat bazel/precompiled.bazelrc 2>/dev/null) != "$wanted" ]]; then
  echo "$wanted" >bazel/precompiled.bazelrc
fi
