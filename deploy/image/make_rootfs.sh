#!/usr/bin/env bash
# Makes the root file system of a container image: Muster's programs in one
# executable without its symbols, the shared libraries that it loads, the
# certificates of public authorities, which object stores need, and nothing else.
#
#   bazel run //deploy/image:rootfs -- --out=DIR
#   podman build -t NAME -f deploy/image/Containerfile CONTEXT
#
# CONTEXT is the folder with DIR, which the Containerfile expects to be called
# rootfs. A relative DIR counts from where bazel was run. DIR must not exist.
set -euo pipefail

usage="Usage: bazel run //deploy/image:rootfs -- --out=DIR"
case ${1-} in
  --out=?*) out=${1#--out=} ;;
  *)
    echo "rootfs: expected --out=DIR, got \"${1-}\". $usage" >&2
    exit 2
    ;;
esac
out=$(cd "${BUILD_WORKING_DIRECTORY:-$PWD}" && realpath -m -- "$out")
if [[ -e $out ]]; then
  echo "rootfs: --out=$out exists; remove it, or choose another folder" >&2
  exit 2
fi

executable=deploy/image/muster
mkdir -p -- "$out"/{etc,run/muster,tmp,usr/bin}
install --strip --mode=755 -t "$out/usr/bin" -- "$executable"
for program in coordinator launch musterctl ps worker; do
  ln -s muster "$out/usr/bin/$program"
done

# Each library at the path where the loader looks for it.
ldd -- "$executable" | grep -o '/[^ ]*\.so[^ ]*' | sort -u |
  while read -r library; do
    target=$(realpath -m -- "$(dirname -- "$library")")
    mkdir -p -- "$out$target"
    install --mode=755 -- "$library" "$out$target/$(basename -- "$library")"
  done
# The loader's own path and the names of the merged /usr.
for folder in lib lib64; do
  if [[ -L /$folder ]]; then ln -s "usr/$folder" "$out/$folder"; fi
done
find "$out" -name '*.so*' -type f -exec strip --strip-unneeded {} +

# Of getaddrinfo(3), which is in libc.
echo "hosts: files dns" >"$out/etc/nsswitch.conf"
install -D --mode=644 -t "$out/etc/ssl/certs" -- /etc/ssl/certs/ca-certificates.crt
echo "muster:x:65532:65532:muster:/:/usr/bin/launch" >"$out/etc/passwd"
echo "muster:x:65532:" >"$out/etc/group"
chmod 1777 "$out/tmp"
echo "made $out: $(du -sm -- "$out" | cut -f1) MiB," \
  "$(find "$out" -type f | wc -l) files"
