"""Makes a bundle for machines with a GPU that do not run Debian 12.

    bazel run --config=device_code //deploy/bundle -- --output=DIR

DIR/muster-gpu-VERSION.tar.xz has a folder with executables, tests and benchmarks,
stripped, the shared libraries that they need, with their licenses, and run.py, which
runs all of them. It needs NVIDIA's driver, and glibc as new as on this machine.
"""

import argparse
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

from deploy.install.shared_libraries import libraries_of, license_of

EXECUTABLES = ("bench/gpu_all_reduce_benchmark", "bench/gpu_benchmark",
               "bench/gpu_model_benchmark", "coordinator/coordinator", "deploy/launch/launch",
               "deploy/musterctl/musterctl", "ps/ps", "worker/worker")
TESTS = ("common/core/device/conformance/device_conformance_test",
         "common/core/device/conformance/step_graphs_test",
         "common/learn/train/device_graphs_test",
         "common/learn/train/device_training_test",
         "common/net/collectives/nccl/nccl_process_test", "tests/gpu/kernels_on_gpu_test")
# All executables contain the same device code. The large dictionary finds these copies,
# which are far apart.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 192 << 20}]
FILES = {
    "LICENSE": "LICENSE",
    "bench/peers/measure.py": "peers/measure.py",
    "bench/peers/torch_gpu.py": "peers/torch_gpu.py",
    "bench/peers/torch_gpu_models.py": "peers/torch_gpu_models.py",
    "bench/peers/torch_graph.py": "peers/torch_graph.py",
    "deploy/bundle/digits.job": "digits.job",
    "deploy/bundle/run.py": "run.py",
    "examples/data/digits/LICENSE": "digits/LICENSE",
    "examples/data/digits/SOURCE.md": "digits/SOURCE.md",
    "examples/data/digits/test.csv": "digits/test.csv",
    "examples/data/digits/train.csv": "digits/train.csv",
}


def copy(source, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(source, target)


def fill(folder):
    libraries = {}
    for place, paths in (("bin", EXECUTABLES), ("tests", TESTS)):
        os.makedirs(os.path.join(folder, place))
        for path in paths:
            stripped = os.path.join(folder, place, os.path.basename(path))
            subprocess.run(["strip", "-o", stripped, path], check=True)
            os.chmod(stripped, 0o755)
            libraries.update(libraries_of(path))
    for name, path in libraries.items():
        copy(path, os.path.join(folder, "lib", name))
        package, text = license_of(path)
        copy(text, os.path.join(folder, "licenses", package))
    for source, target in FILES.items():
        copy(source, os.path.join(folder, target))
    os.chmod(os.path.join(folder, "run.py"), 0o755)


def make_bundle(output):
    printed = subprocess.run(["deploy/launch/launch", "--version"], capture_output=True,
                             check=True, text=True)
    name = f"muster-gpu-{printed.stdout.split()[-1]}"
    os.makedirs(output, exist_ok=True)
    path = os.path.join(output, f"{name}.tar.xz")
    with tempfile.TemporaryDirectory() as folder:
        fill(folder)
        with lzma.open(path, "w", filters=FILTERS) as packed:
            with tarfile.open(fileobj=packed, mode="w") as bundle:
                bundle.add(folder, name)
    return path


def main():
    parser = argparse.ArgumentParser(description="Makes a bundle for machines with a GPU.")
    parser.add_argument("--output", required=True, metavar="DIR", help="the folder of the bundle")
    output = parser.parse_args().output
    # Bazel runs this script in its runfiles folder.
    folder = os.path.join(os.environ.get("BUILD_WORKING_DIRECTORY", os.getcwd()), output)
    path = make_bundle(os.path.normpath(folder))
    print(f"{path}: {os.path.getsize(path) / 2**20:.1f} MiB")


if __name__ == "__main__":
    sys.exit(main())
