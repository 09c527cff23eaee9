#!/usr/bin/env bash
# Makes the root file system of a container image: Muster's executables without
# their symbols, the shared libraries that they load, the certificates of public
# authorities, which object stores need, and nothing else.
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

executables=(deploy/image/tasks deploy/launch/launch deploy/musterctl/musterctl ps/ps)
mkdir -p -- "$out"/{etc,run/muster,tmp,usr/bin}
install --strip --mode=755 -t "$out/usr/bin" -- "${executables[@]}"
for task in coordinator worker; do ln -s tasks "$out/usr/bin/$task"; done

# Each library at the path where the loader looks for it.
ldd -- "${executables[@]}" | grep -o '/[^ ]*\.so[^ ]*' | sort -u |
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

# getaddrinfo(3) loads these by name.
library_folder=$(dirname -- "$(find "$out/usr" -name 'libc.so.6')")
for library in libnss_dns.so.2 libnss_files.so.2 libresolv.so.2; do
  [[ -e $library_folder/$library ]] ||
    install --mode=755 -- "/${library_folder#"$out"/}/$library" "$library_folder"
done
install -D --mode=644 -t "$out/etc/ssl/certs" -- /etc/ssl/certs/ca-certificates.crt
echo "hosts: files dns" >"$out/etc/nsswitch.conf"
echo "muster:x:65532:65532:muster:/:/usr/bin/launch" >"$out/etc/passwd"
echo "muster:x:65532:" >"$out/etc/group"
chmod 1777 "$out/tmp"
echo "made $out: $(du -sm -- "$out" | cut -f1) MB," \
  "$(find "$out" -type f | wc -l) files"
