#!/usr/bin/env bash
# Checks that the bundle is small, and that all its parts run on a simulated GPU.
set -euo pipefail

deploy/bundle/bundle --output="$TEST_TMPDIR"
packed=$(echo "$TEST_TMPDIR"/muster-gpu-*.tar.xz)
(($(stat -c %s "$packed") <= 60 << 20))
tar -xf "$packed" -C "$TEST_TMPDIR"
folder=${packed%.tar.xz}

# The executables take only base libraries, which every system has, from this system.
base='linux-vdso|ld-linux|lib(c|dl|gcc_s|m|pthread|resolv|rt|stdc\+\+|util)\.so'
for executable in "$folder"/bin/* "$folder"/tests/*; do
  if LD_LIBRARY_PATH=$folder/lib ldd "$executable" | grep -Ev "$base|$folder/"; then
    echo "$executable takes these libraries from the system" >&2
    exit 1
  fi
done

# Runs every fifth case of each test, to check that the tests run from the bundle. All
# cases run elsewhere as separate tests.
output=$(env -i PATH="$PATH" HOME="$TEST_TMPDIR" TMPDIR="$TEST_TMPDIR" \
  GTEST_TOTAL_SHARDS=5 GTEST_SHARD_INDEX=0 \
  "$folder/run.py" --simulated --patience=10 | tee /dev/stderr)
grep "^| gpu.mlp_step | " <<<"$output"
grep "^all parts passed$" <<<"$output"

# If a part fails, its name is printed and the other parts run.
rm "$folder/tests/kernels_on_gpu_test"
status=0
output=$("$folder/run.py" --simulated --patience=10 --part="kernel conformance" --part=machine) ||
  status=$?
((status == 1))
grep "^machine: " <<<"$output"
grep "^failed: kernel conformance$" <<<"$output"
