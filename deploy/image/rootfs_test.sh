#!/usr/bin/env bash
# The executables run in their root file system, with nothing around it.
set -euo pipefail

rootfs=$TEST_TMPDIR/rootfs
deploy/image/rootfs "--out=$rootfs"

# Without these, no object store that is reached by https is trusted.
grep --quiet "BEGIN CERTIFICATE" "$rootfs/etc/ssl/certs/ca-certificates.crt"

inside() { unshare --map-root-user /usr/sbin/chroot "$rootfs" "$@"; }
if ! unshare --map-root-user true; then
  echo "skipped: this process may not make a user namespace" >&2
  exit 0
fi
for executable in coordinator launch musterctl ps worker; do
  inside "/usr/bin/$executable" --version | grep "^$executable "
done
# Each part has its own flags.
inside /usr/bin/coordinator --help | grep -- "--predict" >/dev/null
if inside /usr/bin/worker --predict=a.csv 2>message; then exit 1; fi
grep -- "--predict" message
status=0
inside /usr/bin/tasks --version 2>message || status=$?
((status == 2))
grep "expected the name coordinator or worker" message
# Without /proc, launch cannot know where it lies itself.
inside /usr/bin/launch --task --bin_dir=/usr/bin --check_config \
  --tf_config='{"cluster":{"ps":["localhost:1"],"worker":["localhost:2"]},
                "task":{"type":"ps","index":0}}' | grep "ps 0 .*this task"

# Symbols are gone, and nothing has privileges.
if readelf --section-headers "$rootfs/usr/bin/tasks" | grep '\.symtab'; then exit 1; fi
test -z "$(find "$rootfs" -perm /6000)"

status=0
deploy/image/rootfs "--out=$rootfs" 2>message || status=$?
((status == 2))
grep "exists" message
