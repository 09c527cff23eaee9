#!/bin/bash
# Plants errors into the product, one after another, and counts the seeds until the simulation
# notices each. Prints the rows of the table in docs/design/simulation.md.
#
#   tests/simulation/planted_errors.sh 2000     # seeds for each error
set -e -u -o pipefail
cd "$(dirname "$0")/../.."
seed_count="${1:-2000}"
output="$(mktemp -d)"

# measure MACRO PATH DESCRIPTION: the sources whose paths match PATH get the macro.
measure() {
    bazel build --config=units --ui_event_filters=-info,-stdout --noshow_progress \
        --show_result=0 \
        "--per_file_copt=$2@-DMUSTER_PLANT_$1" //tests/simulation/cluster:simulation
    bazel-bin/tests/simulation/cluster/simulation --output_folder="$output" \
        --seeds="$seed_count" > "$output/log" 2>&1 || true
    local failed first
    failed="$(sed -n 's/.*seeds, \([0-9]*\) violations.*/\1/p' "$output/log")"
    first="$(sed -n 's/^seed \([0-9]*\):.*/\1/p' "$output/log" | head -n 1)"
    [[ -n "$first" ]] && first=$((first + 1))
    echo "| $3 | ${first:-not found} | $failed of $seed_count |"
}

measure NO_LEDGER 'ps[/:](library_unit|push_ledger).*' \
    'a server applies each push, also one that it has applied'
measure NO_LOW_WATER_MARK 'ps[/:](library_unit|push_ledger).*' \
    'a server applies late pushes of steps that have finished'
measure NO_GENERATION 'coordinator[/:](library_unit|server_recovery).*' \
    'a rollback does not begin a new generation'
measure EARLY_ACKNOWLEDGEMENT 'ps/client[/:](client_unit|server_group).*' \
    'a push without an answer counts as applied'
measure NO_SEEN_CALLS 'common/net/rpc[/:](rpc_unit|seen_calls).*' \
    'a call that arrives twice is carried out twice'
rm -r "$output"
