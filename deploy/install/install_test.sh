#!/usr/bin/env bash
# Checks that the installed executables run, find each other, have no symbols, and have
# manual pages and completions for bash; and that programs can be built with CMake and with
# pkg-config after the folder was moved.
set -euo pipefail

prefix=$TEST_TMPDIR/a\ prefix
deploy/install/install --prefix="$prefix"
for name in coordinator launch musterctl ps worker; do
  "$prefix/bin/$name" --version | grep "^$name "
  grep "^\.TH ${name^^} 1 " "$prefix/share/man/man1/muster-$name.1"
  if readelf --sections --wide "$prefix/bin/$name" | grep -q ' \.symtab '; then
    echo "$name is not stripped" >&2
    exit 1
  fi
done

for document in README.md CHANGELOG.md docs/keras.md; do
  test -s "$prefix/share/doc/muster/$document"
done
! command -v doxygen || test -s "$prefix/share/doc/muster/api/classmuster_1_1Model.html"

completed=$(
  source "$prefix/share/muster/completion.bash"
  COMP_WORDS=(launch --log_m) COMP_CWORD=1
  compopt() { :; }
  _muster_launch
  echo "${COMPREPLY[@]}"
)
[[ $completed == --log_megabytes= ]]

cat >"$TEST_TMPDIR/line.job" <<'JOB'
model { sequential { layers { dense { units: 1 } } } }
train { synthetic { example_count: 8 feature_count: 2 class_count: 2 } }
batch_size: 4
epochs: 1
optimizer { sgd {} }
loss { mean_squared_error {} }
JOB
env -u TF_CONFIG "$prefix/bin/launch" --workers=1 --ps=1 \
  --job="$TEST_TMPDIR/line.job" --run_dir="$TEST_TMPDIR/run"
test -s "$TEST_TMPDIR/run/summary.json"

moved=$TEST_TMPDIR/moved
mv "$prefix" "$moved"
project=examples/own_project
cmake -S "$project" -B "$TEST_TMPDIR/cmake" -DCMAKE_PREFIX_PATH="$moved" \
  -DCMAKE_BUILD_TYPE=Release
cmake --build "$TEST_TMPDIR/cmake"
"$TEST_TMPDIR/cmake/train" | grep '^y = '
grep "^Muster_DIR:PATH=$moved/lib/cmake/Muster$" "$TEST_TMPDIR/cmake/CMakeCache.txt"

flags() { PKG_CONFIG_PATH=$moved/lib/pkgconfig pkg-config "$@" muster; }
# shellcheck disable=SC2046
c++ $(flags --cflags) "$project/train.cc" $(flags --libs) -o "$TEST_TMPDIR/train"
"$TEST_TMPDIR/train" | grep '^y = '

status=0
deploy/install/install --prefx=/nowhere 2>"$TEST_TMPDIR/message" || status=$?
grep "unknown argument --prefx=/nowhere" "$TEST_TMPDIR/message"
((status == 2))
status=0
deploy/install/install 2>"$TEST_TMPDIR/message" || status=$?
grep "prefix is missing" "$TEST_TMPDIR/message"
((status == 2))
