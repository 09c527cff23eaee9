#!/usr/bin/env bash
# Checks that the wheel needs no libraries of the system except those of manylinux.
set -euo pipefail

deploy/python/wheel --output="$TEST_TMPDIR/wheels"
wheel=$(echo "$TEST_TMPDIR"/wheels/muster-*-py3-none-manylinux_*.whl)
python3 -B deploy/python/check_wheel.py "$wheel" "$TEST_TMPDIR/unpacked"

package=$TEST_TMPDIR/unpacked/muster
found=$(env -u MUSTER_BIN PYTHONPATH="$TEST_TMPDIR/unpacked" python3 -B -c \
  "from muster import executables; print(executables.find_launch())")
[[ $found == "$package/bin/launch" ]]

version=$("$package/bin/launch" --version | cut -d" " -f2)
found=$(PYTHONPATH="$TEST_TMPDIR/unpacked" python3 -B -c "import muster; print(muster.__version__)")
[[ $found == "$version" ]]

# Each command of the wheel is a function that executes the program of its name.
entries=$(sed -n "s/^\(must.*\) = muster\.commands:\(.*\)$/\1 \2/p" \
  "$TEST_TMPDIR"/unpacked/muster-*.dist-info/entry_points.txt)
[[ $(wc -l <<<"$entries") == 5 ]]
while read -r command function; do
  printed=$(PYTHONPATH="$TEST_TMPDIR/unpacked" python3 -B -c \
    "import sys; sys.argv = ['$command', '--version']
from muster import commands; commands.$function()")
  [[ $printed == "${command#muster-} $version" ]]
done <<<"$entries"

# Documents link to each other by these paths.
test -s "$package/docs/docs/python.md"
test -s "$package/docs/README.md"

for name in coordinator launch musterctl ps worker; do
  "$package/bin/$name" --version | grep "^$name "
  if readelf --sections --wide "$package/bin/$name" | grep -q ' \.symtab '; then
    echo "$name is not stripped" >&2
    exit 1
  fi
  # The executable loads the libraries of the wheel.
  base='linux-vdso|ld-linux|lib(c|dl|gcc_s|m|pthread|resolv|rt|stdc\+\+|util)\.so'
  if ldd "$package/bin/$name" | grep -Ev "$base|$package/bin/\.\./lib/" >&2; then
    echo "$name takes these libraries from the system" >&2
    exit 1
  fi
done

cat >"$TEST_TMPDIR/line.job" <<'JOB'
model { sequential { layers { dense { units: 1 } } } }
train { synthetic { example_count: 8 feature_count: 2 class_count: 2 } }
batch_size: 4
epochs: 1
optimizer { sgd {} }
loss { mean_squared_error {} }
JOB
env -i "$package/bin/launch" --workers=1 --ps=1 --job="$TEST_TMPDIR/line.job" \
  --run_dir="$TEST_TMPDIR/run"
test -s "$TEST_TMPDIR/run/summary.json"
