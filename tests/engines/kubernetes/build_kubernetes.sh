#!/usr/bin/env bash
# Creates a folder with the programs of Kubernetes 1.20.2, unless it exists:
#
#   build_kubernetes.sh DIR
#
#   DIR/bin    kube-apiserver, kube-controller-manager, kube-scheduler, kubelet and
#              kubectl, compiled from Debian's source package
#   DIR/debian the packages that these need: containerd, runc, etcd, catatonit and
#              the network plugins, unpacked but not installed
#
# Installs only tools to unpack and compile. Compiling takes about 7 minutes of processor time and 3
# GiB in DIR, of which 0.6 GiB remain.
set -euo pipefail

version=1.20.2
programs=(kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl)
packages=(containerd containernetworking-plugins etcd-server runc catatonit)
compiler=(golang-1.19-go golang-1.19-src)

folder=$(realpath -m -- "${1:?Usage: build_kubernetes.sh DIR}")
if [[ -e $folder/complete ]]; then exit 0; fi
if ! grep -q '^VERSION_ID="12"' /etc/os-release; then
  echo "build_kubernetes: this is not Debian 12, which has the source of" \
    "Kubernetes $version" >&2
  exit 1
fi

missing=()
for tool in dpkg-source:dpkg-dev make:make patch:patch; do
  command -v "${tool%:*}" >/dev/null || missing+=("${tool#*:}")
done
if ((${#missing[@]})); then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >&2
fi

# Only one run at a time may write to the folder.
mkdir -p "$folder"
exec {lock}>"$folder/lock"
flock "$lock"
if [[ -e $folder/complete ]]; then exit 0; fi
work=$folder/work
rm -rf "$work" "${folder:?}"/{bin,debian}
mkdir -p "$work"/{sources,lists/partial,archives/partial,tools,go} "$folder"/{bin,debian}

# Runs apt-get with separate lists, which also have sources. The lists of the machine do not change.
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
  copy=$work/sources/$(basename "$file")
  case $file in
    *.list) [[ ! -e $file ]] || sed -n 's/^deb \(.*\)/deb \1\ndeb-src \1/p' "$file" >"$copy" ;;
    *.sources) sed 's/^Types:.*/Types: deb deb-src/' "$file" >"$copy" ;;
  esac
done
fetch() {
  (cd "$work" && apt-get -qq -o APT::Sandbox::User=root \
    -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/sources/" \
    -o Dir::State::Lists="$work/lists" -o Dir::Cache::Archives="$work/archives" \
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= "$@")
}
echo "build_kubernetes: fetching the source of Kubernetes and its packages" >&2
fetch update
fetch download "${packages[@]}" "${compiler[@]}"
fetch source --download-only kubernetes
for package in "${packages[@]}"; do dpkg-deb -x "$work/$package"_*.deb "$folder/debian"; done
for package in "${compiler[@]}"; do dpkg-deb -x "$work/$package"_*.deb "$work/go"; done
dpkg-source --no-check -x "$work"/kubernetes_*.dsc "$work/kubernetes" >/dev/null

# A replacement for rsync: the build copies each program with `rsync -pc FROM TO`.
cat >"$work/tools/rsync" <<'SCRIPT'
#!/bin/sh
exec cp -p "$2" "$3"
SCRIPT
chmod +x "$work/tools/rsync"

# kubectl cannot parse a missing version, so the version is set. kubelet is linked like the others:
# otherwise all of its packages would be compiled a second time.
echo "build_kubernetes: compiling Kubernetes $version" >&2
env -i HOME="$work" PATH="$work/tools:$work/go/usr/lib/go-1.19/bin:/usr/bin:/bin" \
  GO111MODULE=off CGO_ENABLED=0 \
  KUBE_GIT_VERSION="v$version" KUBE_GIT_COMMIT=debian KUBE_GIT_TREE_STATE=clean \
  KUBE_GIT_MAJOR=1 KUBE_GIT_MINOR=20 KUBE_STATIC_OVERRIDES=kubelet \
  make -C "$work/kubernetes" GOLDFLAGS="-s -w" WHAT="${programs[*]/#/cmd/}" \
  >"$folder/build.log" 2>&1 || {
  tail -n 40 "$folder/build.log" >&2
  echo "build_kubernetes: failed; all of the output is in $folder/build.log" >&2
  exit 1
}
for program in "${programs[@]}"; do
  install -t "$folder/bin" "$work/kubernetes/_output/bin/$program"
done
chmod -R u+w "$work"
rm -rf "$work"
touch "$folder/complete"
