#!/usr/bin/env bash
# Makes the root file system of a container image. It contains only Muster's programs in
# one stripped executable, the shared libraries that it loads, and the certificates of
# public authorities, which object stores need.
#
#   bazel run //deploy/image:rootfs -- --out=DIR
#   podman build -t NAME -f deploy/image/Containerfile CONTEXT
#
# CONTEXT is the folder that contains DIR. The Containerfile expects DIR to be called
# rootfs. A relative DIR is relative to the folder where bazel was run. DIR must not exist.
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

# Copies each library to the path where the loader searches for it.
ldd -- "$executable" | grep -o '/[^ ]*\.so[^ ]*' | sort -u |
  while read -r library; do
    target=$(realpath -m -- "$(dirname -- "$library")")
    mkdir -p -- "$out$target"
    install --mode=755 -- "$library" "$out$target/$(basename -- "$library")"
  done
# The loader's path, and the paths of libraries, are below these links to /usr.
for folder in lib lib64; do
  if [[ -L /$folder ]]; then ln -s "usr/$folder" "$out/$folder"; fi
done
find "$out" -name '*.so*' -type f -exec strip --strip-unneeded {} +

# Configures getaddrinfo(3), which is part of libc.
echo "hosts: files dns" >"$out/etc/nsswitch.conf"
install -D --mode=644 -t "$out/etc/ssl/certs" -- /etc/ssl/certs/ca-certificates.crt
echo "muster:x:65532:65532:muster:/:/usr/bin/launch" >"$out/etc/passwd"
echo "muster:x:65532:" >"$out/etc/group"
chmod 1777 "$out/tmp"
echo "made $out: $(du -sm -- "$out" | cut -f1) MiB," \
  "$(find "$out" -type f | wc -l) files"
