#!/bin/bash
# Plants errors into the product, one after another, and counts the seeds until the simulation
# notices each. Prints the rows of the table in docs/design/simulation.md.
#
#   tests/simulation/planted_errors.sh 2000                # seeds for each error
#   tests/simulation/planted_errors.sh 2000 NO_FENCING     # one error
set -e -u -o pipefail
cd "$(dirname "$0")/../.."
seed_count="${1:-2000}"
only="${2:-}"
output="$(mktemp -d)"

# measure MACRO PATH DESCRIPTION [FLAG]: the sources whose paths match PATH get the macro.
measure() {
    [[ -n "$only" && "$only" != "$1" ]] && return
    bazel build --config=units --ui_event_filters=-info,-stdout --noshow_progress \
        --show_result=0 \
        "--per_file_copt=$2@-DMUSTER_PLANT_$1" //tests/simulation/cluster:simulation
    bazel-bin/tests/simulation/cluster/simulation --output_folder="$output" \
        --seeds="$seed_count" ${4:-} > "$output/log" 2>&1 || true
    local failed first what
    failed="$(sed -n 's/.*seeds, \([0-9]*\) violations.*/\1/p' "$output/log")"
    first="$(sed -n 's/^seed \([0-9]*\):.*/\1/p' "$output/log" | head -n 1)"
    what="$(sed -n 's/.*VIOLATION: //p' "$output/log" | head -n 1)"
    [[ -n "$first" ]] && first=$((first + 1))
    echo "| $3 | ${what:-} | ${first:-not found} | $failed of $seed_count |"
}

measure NO_LEDGER 'ps[/:](library_unit|push_ledger).*' \
    'a server applies each push, also one that it has applied'
measure NO_LOW_WATER_MARK 'ps[/:](library_unit|push_ledger).*' \
    'a server applies late pushes of steps that have finished'
measure KEPT_LEDGER 'ps[/:](library_unit|parameter_shard).*' \
    'a rollback does not clear the ledger of pushes'
measure EARLY_REPEAT 'ps[/:](library_unit|push_ledger).*' \
    'a repeated push is acknowledged before the first one is applied'
measure NO_TICKETS 'ps[/:](library_unit|shard_variable).*' \
    'updates of two exchanges do not wait for their turn'
measure NO_GENERATION 'coordinator[/:](library_unit|server_recovery).*' \
    'a rollback does not begin a new generation'
measure EARLY_ACKNOWLEDGEMENT 'ps/client[/:](client_unit|server_group).*' \
    'a push without an answer counts as applied'
measure NO_SEEN_CALLS 'common/net/rpc[/:](rpc_unit|seen_calls).*' \
    'a call that arrives twice is carried out twice'
measure NO_FENCING 'common/net/rpc[/:](rpc_unit|identity).*' \
    'requests of an earlier coordinator are admitted'
measure NO_RESERVATION 'coordinator[/:](library_unit|closure_id_reservation).*' \
    'a coordinator does not reserve the ids of its closures'
measure STALE_REPORTS \
    '(common/net/rpc|coordinator)[/:](rpc_unit|library_unit|reconnecting|closure_disp).*' \
    'a coordinator takes in reports of a session that has ended'
measure WALL_CLOCK 'common/net/rpc[/:](rpc_unit|reconnecting_stream).*' \
    'the silence of a task is measured by the wall clock'
measure UNCOPIED_ANSWERS 'ps[/:](library_unit|copy_source).*' \
    'a server answers before the copy has what the answer depends on' --copies
measure FORGOTTEN_PUSHES 'ps[/:](library_unit|parameter_shard_log).*' \
    'a copy does not remember the pushes that it has received' --copies
measure KEPT_SOURCE 'ps[/:](library_unit|copy_receiver).*' \
    'a process that has taken over still acknowledges to its source' --copies
rm -r "$output"
