#!/usr/bin/env bash
# Builds and runs every test, prints what was skipped and why, and
# "N passed, N failed, N skipped" as its last line.
#
#   ./test.sh                       all tests
#   ./test.sh --config=asan         under AddressSanitizer and UBSan
#   ./test.sh --config=tsan         under ThreadSanitizer
#   ./test.sh //common/compute/graph/...    some tests
#
# Other arguments go to `bazel test`. Installs what is missing first. For tests that
# compare Muster with other programs: export $(tests/setup_tools.sh)
set -uo pipefail

case ${1:-} in
  -h | --help)
    sed -n '2,12s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac

cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")" || exit 1
export HOME=${HOME:-/root}
bazel/setup_debian.sh || exit 1

targets=(//...)
for argument in "$@"; do
  [[ $argument == -* ]] || targets=()
done
events=$(mktemp)
trap 'rm -f "$events"' EXIT
# One broken target must not hide the others.
bazel test --config=units --keep_going --build_event_json_file="$events" "$@" \
  ${targets[@]+"${targets[@]}"}
status=$?
python3 bazel/count_tests.py "$events" "$status"
