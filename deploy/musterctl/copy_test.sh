#!/usr/bin/env bash
# Checks that `musterctl copy` and tar(1) read each other's archives, and that `musterctl sleep`
# ends in order.
set -euo pipefail

musterctl=$PWD/deploy/musterctl/musterctl
cd "$TEST_TMPDIR"
long=$(printf 'n%.0s' {1..120})
mkdir -p "from/a/$long/$long"
head -c 3000000 /dev/urandom >from/a/random
echo deep >"from/a/$long/$long/file"
: >from/empty

tar --format=gnu -C from -c . | "$musterctl" copy - unpacked
diff -r from unpacked
"$musterctl" copy from - >from.tar
mkdir extracted
tar -C extracted -xf from.tar
diff -r from extracted
"$musterctl" copy from copied
diff -r from copied

ln -s /etc from/link
set +e
error=$(tar --format=gnu -C from -c link | "$musterctl" copy - refused 2>&1)
test $? = 2 || exit 1
grep "\"link\" of type '2'; expected files and folders" <<<"$error" || exit 1
error=$("$musterctl" copy from 2>&1)
test $? = 2 || exit 1
grep "copy needs two folders" <<<"$error" || exit 1
set -e

# A shell ignores SIGINT in background processes, but not SIGTERM.
"$musterctl" sleep &
sleeping=$!
until grep -q '^SigBlk:.0000000000004002$' "/proc/$sleeping/status"; do :; done
kill -TERM "$sleeping"
wait "$sleeping"
