#!/usr/bin/env bash
# Installs Muster: the stripped executables, their manual pages and completions, the files
# to build C++ programs with, and documents.
#
#   bazel run //:install -- --prefix=DIR
#
#   DIR/bin                           coordinator, launch, musterctl, ps, worker
#   DIR/include/muster                muster.h and the headers that it includes
#   DIR/lib/libmuster.a
#   DIR/lib/cmake/Muster              find_package(Muster), target Muster::muster
#   DIR/lib/pkgconfig/muster.pc       pkg-config --cflags --libs muster
#   DIR/share/man/man1                muster-launch.1, ...: man muster-launch
#   DIR/share/muster/completion.bash  completes their flags: source it in ~/.bashrc
#   DIR/share/doc/muster              README.md, CHANGELOG.md, docs/, and api/, pages of
#                                     the headers, if doxygen is installed
#
# A relative DIR is relative to the folder where bazel was run. There is no default,
# because bin/ps in a folder like /usr/local would hide ps(1). DIR can be moved later.
set -euo pipefail

usage="Usage: bazel run //:install -- --prefix=DIR"
prefix=
for argument in "$@"; do
  case $argument in
    --prefix=?*) prefix=${argument#--prefix=} ;;
    -h | --help)
      sed -n '2,20s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *)
      echo "install: unknown argument $argument. $usage" >&2
      exit 2
      ;;
  esac
done

if [[ -z $prefix ]]; then
  echo "install: --prefix is missing. $usage" >&2
  exit 2
fi

executables=(coordinator/coordinator deploy/launch/launch deploy/musterctl/musterctl ps/ps
  worker/worker)
prefix=$(cd "${BUILD_WORKING_DIRECTORY:-$PWD}" && realpath -m -- "$prefix")

install_executables() {
  mkdir -p -- "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/muster"
  install --strip --mode=755 -t "$prefix/bin" -- "${executables[@]}"
  local executable name
  for executable in "${executables[@]}"; do
    name=${executable##*/}
    "$prefix/bin/$name" --help=man >"$prefix/share/man/man1/muster-$name.1"
    "$prefix/bin/$name" --help=bash
  done >"$prefix/share/muster/completion.bash"
}

# Installs the library, and the files for other build systems. These are templates, into
# which the linker's options are inserted.
install_library() {
  local files=deploy/install options list version
  options=$(paste -sd ' ' "$files/muster.link_options")
  list=$(paste -sd ';' "$files/muster.link_options")
  version=$("$prefix/bin/launch" --version | awk '{ print $2; exit }')
  local fill=(sed -e "s|@VERSION@|$version|g" -e "s|@MAJOR_MINOR@|${version%.*}|g"
    -e "s|@LINK_OPTIONS@|$options|g" -e "s|@LINK_LIST@|$list|g")

  mkdir -p -- "$prefix/lib/cmake/Muster" "$prefix/lib/pkgconfig"
  # Removes headers of an earlier version that this version does not have.
  rm -rf -- "$prefix/include/muster"
  mkdir -p -- "$prefix/include/muster"
  cp -RL --no-preserve=mode -- "$files/development_files_include/." "$prefix/include/muster"
  install --mode=644 -- "$files/libmuster.a" "$prefix/lib/libmuster.a"
  local template
  for template in MusterConfig.cmake MusterConfigVersion.cmake; do
    "${fill[@]}" "$files/$template.in" >"$prefix/lib/cmake/Muster/$template"
  done
  "${fill[@]}" "$files/muster.pc.in" >"$prefix/lib/pkgconfig/muster.pc"
}

install_documents() {
  local documents=$prefix/share/doc/muster
  rm -rf -- "$documents/api" "$documents/docs"
  mkdir -p -- "$documents"
  cp -RL --no-preserve=mode -- README.md CHANGELOG.md docs "$documents"
  if ! command -v doxygen >/dev/null; then
    echo "install: no pages of the headers: they need doxygen, which is not installed"
    return
  fi
  deploy/install/make_api_pages.sh --include="$prefix/include/muster" \
    --version="$("$prefix/bin/launch" --version | awk '{ print $2; exit }')" \
    --output="$documents/api"
}

install_executables
install_library
install_documents
echo "installed in $prefix/bin: ${executables[*]##*/}"
echo "installed for C++ programs: $prefix/lib/libmuster.a, $prefix/include/muster"
echo "installed documents: $prefix/share/doc/muster"
