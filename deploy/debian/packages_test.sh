#!/usr/bin/env bash
# Checks that the packages name their dependencies, that their executables train, and that
# a program can be built with the development package.
set -euo pipefail

deploy/debian/packages --output="$TEST_TMPDIR/packages"
runtime=$(echo "$TEST_TMPDIR"/packages/muster_*.deb)
development=$(echo "$TEST_TMPDIR"/packages/muster-dev_*.deb)
version=$(dpkg-deb --field "$runtime" Version)

dpkg-deb --field "$runtime" Depends | grep 'libc6.*libgrpc++1'
dpkg-deb --field "$development" Depends |
  grep "^muster (= $version), .*libabsl-dev.*libgrpc++-dev.*libprotobuf-dev"
# The package has no file of another Debian package, such as /usr/bin/ps.
dpkg-deb --contents "$runtime" | awk '$6 ~ /^\.\/usr\/bin\/./ { print $6 }' |
  sort >"$TEST_TMPDIR/commands"
diff "$TEST_TMPDIR/commands" - <<'COMMANDS'
./usr/bin/muster-coordinator
./usr/bin/muster-launch
./usr/bin/muster-ps
./usr/bin/muster-worker
./usr/bin/musterctl
COMMANDS

root=$TEST_TMPDIR/root
dpkg-deb --extract "$runtime" "$root"
dpkg-deb --extract "$development" "$root"
for document in README.md CHANGELOG.md docs/keras.md; do
  test -s "$root/usr/share/doc/muster/$document"
done
! command -v doxygen ||
  test -s "$root/usr/share/doc/muster-dev/api/classmuster_1_1Model.html"
cat >"$TEST_TMPDIR/line.job" <<'JOB'
model { sequential { layers { dense { units: 1 } } } }
train { synthetic { example_count: 8 feature_count: 2 class_count: 2 } }
batch_size: 4
epochs: 1
optimizer { sgd {} }
loss { mean_squared_error {} }
JOB
env -u TF_CONFIG "$root/usr/bin/muster-launch" --workers=1 --ps=1 \
  --job="$TEST_TMPDIR/line.job" --run_dir="$TEST_TMPDIR/run"
test -s "$TEST_TMPDIR/run/summary.json"
(
  source "$root/usr/share/bash-completion/completions/muster-launch"
  complete -p muster-launch
)

cmake -S examples/own_project -B "$TEST_TMPDIR/cmake" -DCMAKE_PREFIX_PATH="$root/usr"
cmake --build "$TEST_TMPDIR/cmake"
"$TEST_TMPDIR/cmake/train" | grep '^y = '

status=0
deploy/debian/packages 2>"$TEST_TMPDIR/message" || status=$?
grep "expected --output=DIR" "$TEST_TMPDIR/message"
((status == 2))
