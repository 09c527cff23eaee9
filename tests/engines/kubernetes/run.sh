#!/usr/bin/env bash
# Applies what `launch --kubernetes` prints to a real Kubernetes of one node, and
# disturbs the jobs. Prints "N passed, N failed".
#
#   tests/engines/kubernetes/run.sh             all scenarios
#   tests/engines/kubernetes/run.sh -k worker   those with "worker" in their names
#
# With MUSTER_KERAS_PYTHON, which names a Python with Keras, muster.fit() trains there, too.
#
# Needs root on Debian 12, whose source package of Kubernetes it compiles the first
# time and keeps in ~/.cache/muster/kubernetes. The cluster lives in namespaces of its
# own: it uses no port of the machine, its files are in memory, and all of its
# processes end with this one. Other arguments go to Python's unittest.
set -euo pipefail

cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../../.."
case ${1:-} in
  -h | --help)
    sed -n '2,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 0
    ;;
esac
if ((EUID != 0)); then
  echo "run.sh: must be root, to run containers" >&2
  exit 1
fi
here=tests/engines/kubernetes
programs=${MUSTER_KUBERNETES:-${HOME:-/root}/.cache/muster/kubernetes}

bazel/setup_debian.sh
missing=()
for package in openssl python3-yaml; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $state == installed ]] || missing+=("$package")
done
if ((${#missing[@]})); then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >&2
fi
"$here/build_kubernetes.sh" "$programs"
bazel build --ui_event_filters=-info --noshow_progress \
  //deploy/image:rootfs //deploy/image:muster_with_faults //deploy/launch //deploy/musterctl \
  //coordinator //ps //worker

work=$(mktemp -d)
child=
groups=()
clean_up() {
  local status=$?
  set +e
  # The other processes in the namespaces end with the first one, which ends with its parent. The
  # parent blocks other signals.
  [[ -z $child ]] || kill -KILL "$child" 2>/dev/null || true
  for folder in "${groups[@]}"; do remove_group "$folder"; done
  if ((status == 0)); then
    rm -rf "$work"
  else
    rm -rf "$work"/{image,rootfs,pause}
    echo "run.sh: logs are in $work" >&2
  fi
}
# Processes leave a group shortly after they have ended.
remove_group() {
  for _ in {1..100}; do
    if find "$1" -depth -type d -exec rmdir {} + 2>/dev/null; then return; fi
    sleep 0.1
  done
  echo "run.sh: $1 cannot be removed" >&2
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir "$work"/{image,logs,pause}
bazel run --ui_event_filters=-info --noshow_progress //deploy/image:rootfs -- \
  --out="$work/rootfs" >/dev/null
# One scenario needs an executable that injects a fault.
install "$(bazel info bazel-bin)/deploy/image/muster_with_faults" "$work/rootfs/usr/bin/muster"
/usr/bin/python3 -B "$here/make_image.py" --name=registry.example.org/muster:1 \
  --rootfs="$work/rootfs" --containerfile=deploy/image/Containerfile \
  --out="$work/image/muster.tar"
# The process that holds the namespaces of a pod.
install -D "$programs/debian/usr/bin/catatonit" "$work/pause/pause"
/usr/bin/python3 -B "$here/make_image.py" --name=localhost/pause:1 --rootfs="$work/pause" \
  --entrypoint='["/pause", "-P"]' --out="$work/image/pause.tar"

# Creates a control group for the cluster. The mounts in the namespaces use it as their root. Its
# parent is the group of this process; with cgroup v2 it is the root, because a group that has
# processes cannot enable controllers for the groups below it.
make_groups() {
  local controllers path folder
  if [[ -e /sys/fs/cgroup/cgroup.procs ]]; then
    groups=(/sys/fs/cgroup/muster-kubernetes-$$)
    mkdir "${groups[0]}"
    return
  fi
  while IFS=: read -r _ controllers path; do
    folder=/sys/fs/cgroup/${controllers#name=}${path%/}
    [[ -n $controllers && -e $folder/cgroup.procs ]] || continue
    mkdir "$folder/muster-kubernetes-$$"
    groups+=("$folder/muster-kubernetes-$$")
    for file in cpuset.cpus cpuset.mems; do
      [[ ! -e $folder/$file ]] || cat "$folder/$file" >"${groups[-1]}/$file"
    done
  done </proc/self/cgroup
}
make_groups
(
  for folder in "${groups[@]}"; do echo "$BASHPID" >"$folder/cgroup.procs"; done
  exec unshare --cgroup --ipc --mount --net --pid --uts --fork --kill-child \
    --mount-proc --propagation=private \
    /usr/bin/python3 -B "$here/scenarios.py" "$programs" "$work" "$@"
) &
child=$!
wait "$child"
