#!/usr/bin/env bash
# Installs the missing packages that the build needs on Debian 12, and precompiles headers. Needs
# root, or sudo, only if a package is missing.
set -euo pipefail

packages=(
  # The build.
  bazel-bootstrap bazel-platforms bazel-rules-java bazel-rules-proto
  bazel-skylib clang g++ libclang-rt-14-dev lld python3
  # The checks of the source tree.
  clang-format-14 codespell git
  # The other build systems of the installation's tests.
  cmake make pkgconf
  # The networks of the fault tests.
  iproute2 iptables util-linux
  # The Slurm of tests/engines.
  munge slurm-client slurmctld slurmd
  # Contents of the image besides libraries.
  ca-certificates
  # Libraries that are linked.
  libabsl-dev libbenchmark-dev libcivetweb-dev libcurl4-openssl-dev
  libdnnl-dev libgmock-dev libgoogle-perftools-dev
  libgrpc++-dev libgtest-dev libhdf5-dev libjpeg62-turbo-dev libpng-dev
  libprotobuf-dev libssl-dev libzip-dev nlohmann-json3-dev prometheus-cpp-dev
  protobuf-compiler
  protobuf-compiler-grpc zlib1g-dev
)

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $state == installed ]] || missing+=("$package")
done
install_missing() {
  if ! grep -q '^VERSION_ID="12"' /etc/os-release 2>/dev/null; then
    echo "This is not Debian 12, whose packages the build requires." \
      "Missing: ${missing[*]}" >&2
    return 1
  fi
  local as_root=()
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      echo "Run as root, or install sudo: these are missing:" \
        "${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  echo "Installing: ${missing[*]}" >&2
  local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get
    install -y -qq --no-install-recommends "${missing[@]}")
  # The package lists may be recent enough already; updating them takes a network.
  "${install[@]}" >&2 ||
    { "${as_root[@]}" apt-get update -qq >&2 && "${install[@]}" >&2; }
}

if ((${#missing[@]})); then
  install_missing || exit 1
fi
cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/.."
bazel/refresh_toolchain.sh
bazel/precompile_headers.sh
