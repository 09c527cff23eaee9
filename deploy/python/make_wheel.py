"""Makes a wheel of the package muster with Muster's executables.

    bazel run //deploy/python:wheel -- --output=DIR

The wheel has the executables, stripped, in muster/bin, and in muster/lib the shared
libraries that they need and that manylinux does not promise, with their licenses. It
runs where glibc is as new as on this machine. Prints the path of the wheel.
"""

import argparse
import base64
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile

from deploy.install.shared_libraries import libraries_of, license_of

EXECUTABLES = ("coordinator/coordinator", "deploy/launch/launch", "deploy/musterctl/musterctl",
               "ps/ps", "worker/worker")


def version_of(launch):
    printed = subprocess.run([launch, "--version"], capture_output=True, check=True, text=True)
    return printed.stdout.split()[-1]


def platform_tag():
    major, minor = platform.libc_ver()[1].split(".")[:2]
    return f"manylinux_{major}_{minor}_{platform.machine()}"


def metadata(version):
    return (f"Metadata-Version: 2.1\nName: muster\nVersion: {version}\n"
            "Summary: Trains models of Keras on a Muster cluster\n"
            "License: Apache-2.0\nRequires-Python: >=3.9\n"
            "Requires-Dist: numpy\nRequires-Dist: keras>=3\n")


class Wheel:
    """A wheel that is written file by file. The same files make the same bytes."""

    def __init__(self, folder, version):
        self.tag = f"py3-none-{platform_tag()}"
        self.path = os.path.join(folder, f"muster-{version}-{self.tag}.whl")
        self.info = f"muster-{version}.dist-info"
        self._zip = zipfile.ZipFile(self.path, "w", zipfile.ZIP_DEFLATED)
        self._records = []

    def add(self, name, content, is_executable=False):
        entry = zipfile.ZipInfo(name)  # Of 1980.
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100755 if is_executable else 0o100644) << 16
        self._zip.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
        self._records.append(f"{name},sha256={digest.decode()},{len(content)}\n")

    def add_file(self, name, path, is_executable=False):
        with open(path, "rb") as file:
            self.add(name, file.read(), is_executable)

    def close(self):
        record = f"{self.info}/RECORD"
        lines = "".join(self._records) + f"{record},,\n"
        self.add(record, lines.encode())
        self._zip.close()


def add_executables(wheel, executables):
    libraries = {}
    with tempfile.TemporaryDirectory() as folder:
        for path in executables:
            name = os.path.basename(path)
            stripped = os.path.join(folder, name)
            subprocess.run(["strip", "-o", stripped, path], check=True)
            wheel.add_file(f"muster/bin/{name}", stripped, is_executable=True)
            libraries.update(libraries_of(path))
    licenses = {}
    for name, path in sorted(libraries.items()):
        wheel.add_file(f"muster/lib/{name}", path)
        package, text = license_of(path)
        licenses[package] = text
    for package, text in sorted(licenses.items()):
        wheel.add_file(f"{wheel.info}/licenses/{package}", text)


def make_wheel(root, folder):
    """Returns the path of the wheel. `root` has the executables and the package."""
    executables = [os.path.join(root, path) for path in EXECUTABLES]
    version = version_of(os.path.join(root, "deploy/launch/launch"))
    os.makedirs(folder, exist_ok=True)
    wheel = Wheel(folder, version)
    package = os.path.join(root, "deploy/python/muster")
    for name in sorted(os.listdir(package)):
        if name.endswith(".py"):
            wheel.add_file(f"muster/{name}", os.path.join(package, name))
    add_executables(wheel, executables)
    wheel.add(f"{wheel.info}/METADATA", metadata(version).encode())
    wheel.add(f"{wheel.info}/WHEEL", (f"Wheel-Version: 1.0\nGenerator: muster ({version})\n"
                                      f"Root-Is-Purelib: false\nTag: {wheel.tag}\n").encode())
    wheel.add_file(f"{wheel.info}/licenses/LICENSE", os.path.join(root, "LICENSE"))
    wheel.close()
    return wheel.path


def main():
    parser = argparse.ArgumentParser(description="Makes a wheel of the package muster.")
    parser.add_argument("--output", required=True, metavar="DIR", help="the folder of the wheel")
    output = parser.parse_args().output
    if shutil.which("strip") is None:
        sys.exit("make_wheel: there is no strip; install the package binutils")
    # Bazel runs this in its folder of runfiles.
    folder = os.path.join(os.environ.get("BUILD_WORKING_DIRECTORY", os.getcwd()), output)
    print(make_wheel(os.getcwd(), os.path.normpath(folder)))


if __name__ == "__main__":
    main()
