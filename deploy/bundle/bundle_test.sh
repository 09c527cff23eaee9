#!/usr/bin/env bash
# The bundle is small, and all its parts run from it on a simulated GPU.
set -euo pipefail

deploy/bundle/bundle --output="$TEST_TMPDIR"
packed=$(echo "$TEST_TMPDIR"/muster-gpu-*.tar.xz)
(($(stat -c %s "$packed") <= 60 << 20))
tar -xf "$packed" -C "$TEST_TMPDIR"
folder=${packed%.tar.xz}

# Nothing but the base of all systems comes from this one.
base='linux-vdso|ld-linux|lib(c|dl|gcc_s|m|pthread|resolv|rt|stdc\+\+|util)\.so'
for executable in "$folder"/bin/* "$folder"/tests/*; do
  if LD_LIBRARY_PATH=$folder/lib ldd "$executable" | grep -Ev "$base|$folder/"; then
    echo "$executable takes these libraries from the system" >&2
    exit 1
  fi
done

# Every fifth case of each test: that it runs from here. All run as tests of their
# own.
output=$(env -i PATH="$PATH" HOME="$TEST_TMPDIR" TMPDIR="$TEST_TMPDIR" \
  GTEST_TOTAL_SHARDS=5 GTEST_SHARD_INDEX=0 \
  "$folder/run.py" --simulated --patience=10 | tee /dev/stderr)
grep "^| gpu.mlp_step | " <<<"$output"
grep "^all parts passed$" <<<"$output"

# A part that fails is named, and the others run.
rm "$folder/tests/kernels_on_gpu_test"
status=0
output=$("$folder/run.py" --simulated --patience=10 --part="kernel conformance" --part=machine) ||
  status=$?
((status == 1))
grep "^machine: " <<<"$output"
grep "^failed: kernel conformance$" <<<"$output"
