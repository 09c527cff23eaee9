#!/usr/bin/env bash
# Checks that the programs run in their root file system, without any other files. The
# optional argument is the maximum size in MiB.
set -euo pipefail

rootfs=$TEST_TMPDIR/rootfs
deploy/image/rootfs "--out=$rootfs"
if (($# > 0)); then
  mebibytes=$(du -sm -- "$rootfs" | cut -f1)
  if ((mebibytes > $1)); then
    echo "$rootfs has $mebibytes MiB, the budget is $1 MiB; the largest files:" >&2
    find "$rootfs" -type f -printf '%s %P\n' | sort -rn | head -20 >&2
    exit 1
  fi
  # A library must be in a process only once: either linked statically or loaded.
  libraries='lib(absl|gpr|grpc|hdf5|jpeg|protobuf)'
  if ldd "$rootfs/usr/bin/muster" | grep -E "$libraries"; then
    echo "muster contains these libraries and loads them too" >&2
    exit 1
  fi
fi

# Without these certificates, https connections to object stores fail.
grep --quiet "BEGIN CERTIFICATE" "$rootfs/etc/ssl/certs/ca-certificates.crt"

# Each program has the flags of its own executable, and no flags of the others.
for executable in coordinator/coordinator deploy/launch/launch deploy/musterctl/musterctl \
  ps/ps worker/worker; do
  diff <("$executable" --help) <("$rootfs/usr/bin/${executable##*/}" --help)
done

inside() { unshare --map-root-user /usr/sbin/chroot "$rootfs" "$@"; }
if ! unshare --map-root-user true; then
  echo "skipped: this process may not make a user namespace" >&2
  exit 0
fi
for executable in coordinator launch musterctl ps worker; do
  inside "/usr/bin/$executable" --version | grep "^$executable "
done
if inside /usr/bin/worker --predict=a.csv 2>message; then exit 1; fi
grep -- "--predict" message
status=0
inside /usr/bin/muster --version 2>message || status=$?
((status == 2))
grep "expected the name coordinator, launch, musterctl, ps or worker" message
# Without /proc, launch cannot find its own path.
inside /usr/bin/launch --task --bin_dir=/usr/bin --check_config \
  --tf_config='{"cluster":{"ps":["localhost:1"],"worker":["localhost:2"]},
                "task":{"type":"ps","index":0}}' | grep "ps 0 .*this task"

# The executable has no symbols, and no file is setuid or setgid.
if readelf --section-headers "$rootfs/usr/bin/muster" | grep '\.symtab'; then exit 1; fi
test -z "$(find "$rootfs" -perm /6000)"

status=0
deploy/image/rootfs "--out=$rootfs" 2>message || status=$?
((status == 2))
grep "exists" message
