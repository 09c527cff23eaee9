#!/usr/bin/env bash
# Runs a job in four containers of Muster's image. Each has a separate name and only the permissions
# in the manifests for Kubernetes. A worker is killed and restarted with another address. Then names
# no longer resolve, and the job must still end normally.
#
# MUSTER_PODMAN must contain the command that runs podman, as root or with a network that resolves
# names. Without it the test prints a note and passes.
set -euo pipefail

if [[ -z ${MUSTER_PODMAN-} ]]; then
  echo "MUSTER_PODMAN is not set: the test is skipped."
  exit 0
fi
read -ra podman <<<"$MUSTER_PODMAN"
name=muster-test-$$
image=localhost/$name
network=$name
run_dir=$TEST_TMPDIR/run
hosts=$TEST_TMPDIR/hosts
context=$TEST_TMPDIR/image
tasks=(ps-0 worker-0 worker-1 chief-0)

clean_up() {
  for task in "${tasks[@]}"; do
    "${podman[@]}" rm --force --time=0 "$name-$task" || true
  done
  "${podman[@]}" network rm --force "$network" || true
  "${podman[@]}" image rm --force "$image" || true
} >/dev/null 2>&1
trap clean_up EXIT

# start TASK NUMBER: starts the pod of a task with the address NUMBER in the network, as user 65532,
# with a read-only root and no capabilities. Names are in a file: for a removed pod, podman's name
# server asks that of the host, which may not answer, and it may return the old address.
start() {
  local pod=$name-$1 address=$subnet.$2
  sed "/ $pod\./d" "$hosts" >"$hosts.new"
  echo "$address $pod.$name" >>"$hosts.new"
  cat "$hosts.new" >"$hosts"  # The file that is mounted.
  "${podman[@]}" run --detach --name "$pod" --hostname "$pod" \
    --network "$network" --ip "$address" \
    --no-hosts --volume="$hosts:/etc/hosts:ro" \
    --read-only --cap-drop=all --security-opt=no-new-privileges --tmpfs=/tmp \
    --volume="$run_dir:/run/muster" --volume="$TEST_TMPDIR/data:/data:ro" \
    "$image" --task --cluster_resolver=kubernetes \
    --cluster_tasks=chief=1,ps=1,worker=2 --insecure --job=/data/digits.job \
    --set data_dir=/data --set epochs=500 --run_dir=/run/muster >/dev/null
}

# Blocks until the log of the chief has the text.
await() {
  grep -m 1 "$1" < <(timeout 60 "${podman[@]}" logs --follow "$name-chief-0" 2>&1) ||
    fail "the chief did not log: $1"
}

# Prints the log of each task.
fail() {
  local task
  for task in "${tasks[@]}"; do
    echo "== $task"
    "${podman[@]}" logs "$name-$task" 2>&1 | grep -v '^Epoch' | tail -n 20
  done >&2
  echo "$1" >&2
  exit 1
}

mkdir -p "$run_dir" "$context" "$TEST_TMPDIR/data"
chmod 777 "$run_dir"
cp -L examples/data/digits/*.csv examples/digits/digits.job "$TEST_TMPDIR/data"
deploy/image/rootfs --out="$context/rootfs"
"${podman[@]}" build --quiet --tag "$image" --file deploy/image/Containerfile "$context"
"${podman[@]}" network create --disable-dns "$network"
subnet=$("${podman[@]}" network inspect --format '{{(index .Subnets 0).Subnet}}' "$network")
subnet=${subnet%.*}
echo "127.0.0.1 localhost" >"$hosts"

begin=$(date +%s%N)
for i in "${!tasks[@]}"; do start "${tasks[i]}" $((11 + i)); done
await "Epoch 2/"
echo "from the first container to the second epoch:" \
  "$((($(date +%s%N) - begin) / 1000000)) ms"

"${podman[@]}" kill --signal=KILL "$name-worker-0"
await "worker 0.* lost"
"${podman[@]}" rm --force "$name-worker-0"
start worker-0 21
await "worker 0.* has reconnected, incarnation"
echo "127.0.0.1 localhost" >"$hosts"

for task in "${tasks[@]}"; do
  status=$(timeout 120 "${podman[@]}" wait "$name-$task")
  ((status == 0)) || fail "$task ended with status $status"
done
python3 - "$run_dir/summary.json" <<'PYTHON'
import json
import sys

final = json.load(open(sys.argv[1], encoding="utf-8"))["final"]
assert final["test_sparse_categorical_accuracy"] > 0.9, final
PYTHON
