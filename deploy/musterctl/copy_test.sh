#!/usr/bin/env bash
# Checks that tar(1) and `musterctl copy` and `exchange` read each other's archives, and that
# `musterctl sleep` ends in order.
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

# tar reads single blocks (-b1): each file when it comes.
mkdir -p exchanged/events in/answers out
mkfifo requests replies
echo first >exchanged/events/old
echo other >exchanged/events/other
"$musterctl" exchange exchanged old event <requests >replies &
exchanging=$!
exec 3>requests 4<replies
tar -b1 -C out -xf - <&4 &
extracting=$!
# Blocks until the command succeeds; for at most a minute.
await() {
  local deadline=$((SECONDS + 60))
  until "$@" 2>/dev/null; do
    ((SECONDS < deadline)) || { echo "after a minute: $*" >&2 && exit 1; }
    sleep 0.01
  done
}
await grep -qx first out/events/old
for number in {1..20}; do
  head -c 3000 /dev/zero | tr '\0' "$((number % 10))" >exchanged/events/event.tmp
  mv exchanged/events/event.tmp exchanged/events/event
  await cmp -s exchanged/events/event out/events/event
done
echo answer >in/answers/answer
tar --format=gnu -b1 -C in -c answers >&3  # Has the end of an archive.
wait "$exchanging"
exec 3>&- 4<&-
wait "$extracting" || true  # The archive that it reads ends without the last blocks.
diff -r in/answers exchanged/answers
test "$(cd out && find . -type f | sort | xargs)" = "./events/event ./events/old"

# A shell ignores SIGINT in background processes, but not SIGTERM.
"$musterctl" sleep &
sleeping=$!
await grep -q '^SigBlk:.0000000000004002$' "/proc/$sleeping/status"
kill -TERM "$sleeping"
wait "$sleeping"
