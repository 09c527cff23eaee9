#!/usr/bin/env bash
# Makes Debian packages of Muster for the Debian on which it is built.
#
#   bazel run //deploy/debian:packages -- --output=DIR
#
#   muster_VERSION_ARCHITECTURE.deb      the executables: muster-coordinator,
#                                        muster-launch, muster-ps, muster-worker
#                                        and musterctl; manual pages; documents
#   muster-dev_VERSION_ARCHITECTURE.deb  muster.h, libmuster.a, find_package(Muster),
#                                        pkg-config, and pages of the headers if
#                                        doxygen is installed
#
# Install them with apt, which also installs the libraries that they depend on. A
# relative DIR is relative to the folder where bazel was run.
set -euo pipefail

usage="Usage: bazel run //deploy/debian:packages -- --output=DIR"
case ${1-} in
  --output=?*) output=${1#--output=} ;;
  *)
    echo "packages: expected --output=DIR, got \"${1-}\". $usage" >&2
    exit 2
    ;;
esac
output=$(cd "${BUILD_WORKING_DIRECTORY:-$PWD}" && realpath -m -- "$output")
mkdir -p -- "$output"
staging=$(mktemp -d)
trap 'rm -rf "$staging"' EXIT

# Prints the packages that own the files on stdin, in the format of the field Depends.
# dpkg may list a file in /usr/lib under /lib, which has become a link to it.
owners() {
  local file owner owners=()
  while read -r file; do
    file=$(realpath -- "$(dirname -- "$file")")/$(basename -- "$file")
    owner=$(dpkg-query -S "$file" 2>/dev/null || dpkg-query -S "${file#/usr}" 2>/dev/null) || {
      echo "packages: no Debian package has $file" >&2
      return 1
    }
    owners+=("${owner%%:*}")
  done
  printf '%s\n' "${owners[@]}" | sort -u | paste -sd , | sed 's/,/, /g'
}

# Prints the packages of the libraries that the executables link directly.
runtime_dependencies() {
  local executable name
  for executable in "$@"; do
    objdump -p "$executable" | awk '$1 == "NEEDED" { print $2 }' | while read -r name; do
      ldd "$executable" | awk -v name="$name" '$1 == name { print $3 }'
    done
  done | grep / | sort -u | owners
}

# Prints the packages of the files that the linker uses for the library's options.
development_dependencies() {
  local option file
  while read -r option; do
    [[ $option == -l* ]] || continue
    file=$(g++ -print-file-name="lib${option#-l}.so")
    [[ $file == */* ]] || file=$(g++ -print-file-name="lib${option#-l}.a")
    echo "$file"
  done <"$1" | owners
}

# Writes the files that every package has, and builds the package.
pack() {
  local root=$1 name=$2 depends=$3 summary=$4 description=$5
  mkdir -p -- "$root/DEBIAN" "$root/usr/share/doc/$name"
  cp --no-preserve=mode -L LICENSE "$root/usr/share/doc/$name/copyright"
  cat >"$root/DEBIAN/control" <<CONTROL
Package: $name
Version: $version
Architecture: $architecture
Maintainer: The Muster authors <root@localhost>
Section: science
Priority: optional
Installed-Size: $(du -sk -- "$root" | cut -f1)
Depends: $depends
Description: $summary
 $description
CONTROL
  (cd "$root" && find usr -type f -exec md5sum {} +) >"$root/DEBIAN/md5sums"
  chmod -R u=rwX,go=rX "$root"
  dpkg-deb --root-owner-group -Zzstd --build "$root" \
    "$output/${name}_${version}_$architecture.deb"
}

runtime=$staging/muster
development=$staging/muster-dev
deploy/install/install --prefix="$runtime/usr"
version=$("$runtime/usr/bin/launch" --version | awk '{ print $2; exit }')
architecture=$(dpkg --print-architecture)

mkdir -p -- "$development/usr" "$runtime/usr/lib/muster"
mv -- "$runtime/usr/include" "$development/usr/include"
for path in cmake pkgconfig libmuster.a; do
  mkdir -p -- "$development/usr/lib"
  mv -- "$runtime/usr/lib/$path" "$development/usr/lib/$path"
done

if [[ -d $runtime/usr/share/doc/muster/api ]]; then
  mkdir -p -- "$development/usr/share/doc/muster-dev"
  mv -- "$runtime/usr/share/doc/muster/api" "$development/usr/share/doc/muster-dev/api"
fi

# The executables are in another folder, because /usr/bin/ps is ps(1). Links in /usr/bin
# lead there, and the executables find each other in that folder.
mv -- "$runtime/usr/bin" "$runtime/usr/lib/muster/bin"
completions=$runtime/usr/share/bash-completion/completions
mkdir -p -- "$runtime/usr/bin" "$completions"
for executable in "$runtime"/usr/lib/muster/bin/*; do
  name=${executable##*/}
  link=muster-$name
  [[ $name != musterctl ]] || link=musterctl
  ln -s -- "../lib/muster/bin/$name" "$runtime/usr/bin/$link"
  "$executable" --help=bash | sed "s/ $name\$/ $link/" >"$completions/$link"
done
rm -r -- "$runtime/usr/share/muster"
sed -i 's|/bin"$|/lib/muster/bin"|' "$development/usr/lib/cmake/Muster/MusterConfig.cmake"
mv -- "$runtime/usr/share/man/man1/muster-musterctl.1" \
  "$runtime/usr/share/man/man1/musterctl.1"
gzip -9n "$runtime"/usr/share/man/man1/*.1

pack "$runtime" muster "$(runtime_dependencies "$runtime"/usr/lib/muster/bin/*)" \
  "distributed training: coordinator, workers and parameter servers" \
  "Trains models of TensorFlow's and Keras' kind on clusters that TF_CONFIG describes."
pack "$development" muster-dev \
  "muster (= $version), nlohmann-json3-dev, $(development_dependencies \
    deploy/install/muster.link_options)" \
  "distributed training: library for programs in C++" \
  "A static library, its headers, and files for CMake and pkg-config."
