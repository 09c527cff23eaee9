#!/usr/bin/env bash
# Checks that openssl(1) and the tasks accept the files of `musterctl gen-certs`.
set -euo pipefail

musterctl=$PWD/deploy/musterctl/musterctl
cd "$TEST_TMPDIR"
"$musterctl" gen-certs --job_id=mnist --workers=2 --ps=1 --out=certs |
  grep "of 5 tasks and operators of job mnist"

# Without a job name it prints its usage.
set +e
usage=$("$musterctl" gen-certs 2>&1)
test $? = 2 || exit 1
set -e
grep -- "musterctl gen-certs --job_id=NAME \[--workers=2\]" <<<"$usage"

for task in chief/0 worker/0 worker/1 ps/0 operator/0; do
  name=certs/${task%/*}-${task#*/}
  openssl verify -x509_strict -CAfile certs/ca.pem -purpose sslserver "$name.pem"
  openssl verify -x509_strict -CAfile certs/ca.pem -purpose sslclient "$name.pem"
  text=$(openssl x509 -in "$name.pem" -noout -text)
  grep "URI:spiffe://muster/mnist/$task" <<<"$text"
  grep "NIST CURVE: P-256" <<<"$text"
  diff <(openssl x509 -in "$name.pem" -noout -pubkey) <(openssl pkey -in "$name.key" -pubout)
done
test -z "$(find certs -type f ! -perm 600)"
test -z "$(find certs -maxdepth 0 ! -perm 700)"

# A task's certificate cannot sign another certificate.
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout x.key \
  -subj /CN=x -out x.csr
openssl x509 -req -in x.csr -CA certs/worker-0.pem -CAkey certs/worker-0.key -out x.pem
if openssl verify -CAfile certs/ca.pem -untrusted certs/worker-0.pem x.pem; then
  echo "a task's certificate has signed another" >&2
  exit 1
fi

# Renewal keeps the CA.
cp certs/ca.pem ca.before
cp certs/ps-0.pem ps.before
"$musterctl" gen-certs --job_id=mnist --workers=2 --ps=1 --out=certs
cmp certs/ca.pem ca.before
if cmp --silent certs/ps-0.pem ps.before; then
  echo "the certificate was not renewed" >&2
  exit 1
fi

refuses() {  # Takes a text of the expected error message, and the arguments.
  local status=0
  "$musterctl" "${@:2}" 2>message || status=$?
  grep -e "$1" message
  ((status == 2))
}
refuses "gen-certs" gen-certz
refuses "--job_id=" gen-certs
refuses "--job_id=a/b" gen-certs --job_id=a/b
refuses "--chiefs=2" gen-certs --job_id=a --chiefs=2
