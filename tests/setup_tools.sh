#!/usr/bin/env bash
# Installs the programs with which tests compare Muster or run it: Keras with JAX, Flax and
# Equinox, Ray, TensorBoard, onnxruntime and a PJRT plugin for CPUs, in pinned versions, Chromium,
# podman and doxygen. Also finds real data for tests: a folder shared/data with mnist/ in it beside
# the checkout. Prints variables for test.sh:
#
#   tools=$(tests/setup_tools.sh) && export $tools && ./test.sh
#
# Takes about three minutes the first time and seconds later, because everything is kept in
# ~/.cache/muster/tools. Variables that are already set do not change. A tool that cannot be
# installed, without a network or without root, is skipped, and a line on standard error gives the
# reason: its tests are skipped. The status is always 0.
set -uo pipefail

# Versions for Python 3.11, which Debian 12 has.
packages=(
  tensorflow-cpu==2.21.0 keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 pandas==3.1.1
  h5py==3.14.0 tensorboard==2.21.0 onnxruntime==1.32.0 onnx==1.23.2
  lammps-jax-pjrt-cpu==0.11.2 cloudpickle==3.1.3 ray==2.60.0 flax==0.12.8
  equinox==0.13.8
)
plugin=lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so
plugin_sha256=ad1309ac822b1b24d51b7f9947c7c9fa9ef5d67f390584cbc3d1fa2428fed9c2

apt_seconds=240
pip_seconds=600

say() { echo "setup_tools.sh: $*" >&2; }
last_line() { grep -v '^[[:space:]]*$' "$1" | tail -n 1; }

cache=${HOME:-/root}/.cache/muster/tools
mkdir -p "$cache" || exit 0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# install PROGRAM PACKAGE...: installs from Debian, unless the program exists. 1: not possible.
install() {
  local program=$1
  shift
  command -v "$program" >/dev/null && return
  if ((EUID != 0)); then
    say "no $program: only root can install it"
    return 1
  fi
  local options=(-o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Dpkg::Use-Pty=0
    -y -qq --no-install-recommends)
  export DEBIAN_FRONTEND=noninteractive
  {
    timeout "$apt_seconds" apt-get install "${options[@]}" "$@" ||
      { timeout "$apt_seconds" apt-get update -qq "${options[@]:0:6}" &&
        timeout "$apt_seconds" apt-get install "${options[@]}" "$@"; }
  } >"$log" 2>&1 </dev/null
  command -v "$program" >/dev/null && return
  say "no $program: $(last_line "$log")"
  return 1
}

# Prints the path of a Python that has all packages. 1: not possible.
set_up_python() {
  local key folder
  key=$(printf '%s\n' "${packages[@]}" "$(python3 --version)" | sha256sum | cut -c -16)
  folder=$cache/python-$key
  if [[ ! -e $folder/READY ]]; then
    rm -rf "$folder"
    if ! {
      python3 -m venv "$folder" &&
        timeout "$pip_seconds" "$folder/bin/python" -m pip install --quiet --retries 1 \
          --timeout 20 --disable-pip-version-check "${packages[@]}" &&
        TF_CPP_MIN_LOG_LEVEL=3 timeout 120 "$folder/bin/python" -c \
          "import jax, keras, onnx, onnxruntime, pandas, ray, tensorboard, tensorflow"
    } >"$log" 2>&1 </dev/null; then
      say "no Keras, TensorBoard and onnxruntime: $(last_line "$log")"
      rm -rf "$folder"
      return 1
    fi
    touch "$folder/READY"
  fi
  echo "$folder/bin/python"
}

# Prints the command of a podman that can run a container here. 1: there is none.
set_up_podman() {
  install podman podman netavark aardvark-dns crun || return
  local command=$cache/podman probe=$cache/probe
  # crun refuses a cgroup v1 beside an unused v2, and limits that this process may not raise. All
  # calls share a mount namespace, because containers have their mounts in it.
  cat >"$cache/containers.conf" <<CONFIGURATION
[containers]
default_ulimits = ["nofile=$(ulimit -n):$(ulimit -n)", "nproc=1024:1024"]
CONFIGURATION
  cat >"$command" <<'COMMAND'
#!/usr/bin/env bash
# Written by tests/setup_tools.sh: podman in a mount namespace without an unused cgroup v2.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin  # Of iptables, which netavark calls.
export CONTAINERS_CONF=${0%/*}/containers.conf
[[ -d /sys/fs/cgroup/unified ]] || exec podman "$@"
namespace=/run/muster-podman/mounts
if ! nsenter --mount="$namespace" true 2>/dev/null; then
  mkdir -p "${namespace%/*}"
  mountpoint --quiet "${namespace%/*}" ||
    mount --bind --make-private "${namespace%/*}" "${namespace%/*}"
  touch "$namespace"
  unshare --mount="$namespace" umount /sys/fs/cgroup/unified
fi
# A process that enters a mount namespace is in its root folder.
exec nsenter --mount="$namespace" sh -c 'cd "$0" && exec podman "$@"' "$PWD" "$@"
COMMAND
  chmod +x "$command"
  # A container with nothing but true(1).
  mkdir -p "$probe" || return
  local file
  for file in /bin/true $(ldd /bin/true | grep -o '/[^ ]*'); do
    cp --parents --dereference "$file" "$probe"
  done
  local network=muster-probe-$$
  if ! {
    timeout 60 "$command" network create "$network" &&
      timeout 60 env PATH=/bin:/usr/bin "$command" run --rm --network="$network" \
        --rootfs "$probe" /bin/true
  } >"$log" 2>&1 </dev/null; then
    say "no podman: it runs no container here: $(last_line "$log")"
    "$command" network rm --force "$network" >/dev/null 2>&1
    return 1
  fi
  "$command" network rm --force "$network" >/dev/null 2>&1
  echo "$command"
}

if [[ -z ${MUSTER_KERAS_PYTHON-} || -z ${MUSTER_TENSORBOARD_PYTHON-} ||
  -z ${MUSTER_ONNXRUNTIME_PYTHON-} || -z ${MUSTER_PJRT_PLUGIN-} ]] && python=$(set_up_python); then
  echo "MUSTER_KERAS_PYTHON=${MUSTER_KERAS_PYTHON:-$python}"
  echo "MUSTER_TENSORBOARD_PYTHON=${MUSTER_TENSORBOARD_PYTHON:-$python}"
  echo "MUSTER_ONNXRUNTIME_PYTHON=${MUSTER_ONNXRUNTIME_PYTHON:-$python}"
fi
if [[ -z ${MUSTER_PJRT_PLUGIN-} && -n ${python-} ]]; then
  path=$(echo "${python%/bin/python}"/lib/python3*/site-packages/"$plugin")
  if echo "$plugin_sha256  $path" | sha256sum --check --status; then
    echo "MUSTER_PJRT_PLUGIN=$path"
  else
    say "no PJRT plugin: $path is not the file that was reviewed"
  fi
fi
# The test of doxygen looks for it on the PATH.
install doxygen doxygen
if [[ -z ${MUSTER_BROWSER-} ]] && install chromium chromium; then
  echo "MUSTER_BROWSER=chromium"
fi
if [[ -z ${MUSTER_PODMAN-} ]] && podman=$(set_up_podman); then
  echo "MUSTER_PODMAN=$podman"
fi
data=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")/shared/data
if [[ -z ${MUSTER_TEST_DATA-} && -d $data/mnist ]]; then
  echo "MUSTER_TEST_DATA=$data"
fi
exit 0
