"""Makes a wheel of the package muster with Muster's executables.

    bazel run //deploy/python:wheel -- --output=DIR

The wheel has the stripped executables in muster/bin, and in muster/lib the shared
libraries that they need and that manylinux does not guarantee, with their licenses. The
commands muster-launch, musterctl, muster-coordinator, muster-ps and muster-worker run the
executables. The documents are in muster/docs. The wheel runs on systems whose glibc and
libstdc++ have the symbol versions that its files use. Prints the path of the wheel.
"""

import argparse
import base64
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

from deploy.install.shared_libraries import libraries_of, license_of

EXECUTABLES = ("coordinator/coordinator", "deploy/launch/launch", "deploy/musterctl/musterctl",
               "ps/ps", "worker/worker")

ENTRY_POINTS = """[console_scripts]
muster-coordinator = muster.commands:coordinator
muster-export = muster.export_command:main
muster-launch = muster.commands:launch
muster-ps = muster.commands:parameter_server
muster-worker = muster.commands:worker
musterctl = muster.commands:musterctl
"""


def version_of(launch):
    printed = subprocess.run([launch, "--version"], capture_output=True, check=True, text=True)
    return printed.stdout.split()[-1]


# Maps symbol versions of libstdc++ and libgcc to the glibc version of the oldest systems
# that have them. Source: https://github.com/pypa/auditwheel (manylinux-policy.json).
SYSTEMS_OF_SYMBOLS = {
    "GLIBCXX": [((3, 4, 19), (2, 17)), ((3, 4, 22), (2, 24)), ((3, 4, 24), (2, 27)),
                ((3, 4, 28), (2, 31)), ((3, 4, 29), (2, 34)), ((3, 4, 30), (2, 35)),
                ((3, 4, 33), (2, 39))],
    "CXXABI": [((1, 3, 7), (2, 17)), ((1, 3, 10), (2, 24)), ((1, 3, 11), (2, 27)),
               ((1, 3, 12), (2, 31)), ((1, 3, 13), (2, 34)), ((1, 3, 15), (2, 39))],
    "GCC": [((4, 8, 0), (2, 17)), ((7, 0, 0), (2, 27)), ((12, 0, 0), (2, 35)),
            ((14, 0, 0), (2, 39))],
}


def glibc_of(family, version):
    """Returns the glibc version of the oldest system that has this symbol version."""
    if family == "GLIBC":
        return version[:2]
    for latest, glibc in SYSTEMS_OF_SYMBOLS[family]:
        if version <= latest:
            return glibc
    raise SystemExit(f"make_wheel: no system is known to have {family}_"
                     f"{'.'.join(map(str, version))}")


def needed_glibc(paths):
    """Returns (major, minor) of the oldest glibc that can run all of these files."""
    needed = (2, 17)
    for path in paths:
        listed = subprocess.run(["readelf", "--version-info", "--wide", path], check=True,
                                capture_output=True, text=True).stdout
        wanted = listed.partition("Version needs section")[2]
        for family, text in re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+) ", wanted):
            version = tuple(map(int, text.split(".")))
            needed = max(needed, glibc_of(family, version))
    return needed


def platform_tag(paths):
    major, minor = needed_glibc(paths)
    return f"manylinux_{major}_{minor}_{platform.machine()}"


def metadata(version):
    return (f"Metadata-Version: 2.1\nName: muster\nVersion: {version}\n"
            "Summary: Trains models of Keras on a Muster cluster\n"
            "License: Apache-2.0\nRequires-Python: >=3.9\n"
            "Requires-Dist: numpy\nRequires-Dist: keras>=3\nProvides-Extra: programs\n" +
            "".join(f"Requires-Dist: {name}; extra == 'programs'\n"
                    for name in ("jax", "flatbuffers", "cloudpickle", "lammps-jax-pjrt-cpu")))


class Wheel:
    """A wheel that is written file by file. The same files result in the same bytes."""

    def __init__(self, folder, version, tag):
        self.tag = tag
        self.path = os.path.join(folder, f"muster-{version}-{self.tag}.whl")
        self.info = f"muster-{version}.dist-info"
        self._zip = zipfile.ZipFile(self.path, "w", zipfile.ZIP_DEFLATED)
        self._records = []

    def add(self, name, content, is_executable=False):
        entry = zipfile.ZipInfo(name)  # Its time is the default of 1980.
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


def add_executables(wheel, executables, libraries):
    with tempfile.TemporaryDirectory() as folder:
        for path in executables:
            name = os.path.basename(path)
            stripped = os.path.join(folder, name)
            subprocess.run(["strip", "-o", stripped, path], check=True)
            wheel.add_file(f"muster/bin/{name}", stripped, is_executable=True)
    licenses = {}
    for name, path in sorted(libraries.items()):
        wheel.add_file(f"muster/lib/{name}", path)
        package, text = license_of(path)
        licenses[package] = text
    for package, text in sorted(licenses.items()):
        wheel.add_file(f"{wheel.info}/licenses/{package}", text)


def check_version(package, version):
    """Exits if the package and the executables have different versions."""
    with open(os.path.join(package, "__init__.py"), encoding="utf-8") as file:
        found = re.search(r'^__version__ = "(.*)"$', file.read(), re.MULTILINE).group(1)
    if found != version:
        raise SystemExit(f"make_wheel: muster.__version__ is {found}, but launch is {version}")


def documents(root):
    """Returns the paths of the documents, relative to `root` as in their links."""
    found = ["CHANGELOG.md", "README.md"]
    for folder, _, names in os.walk(os.path.join(root, "docs")):
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names
                  if name.endswith((".md", ".svg"))]
    return sorted(found)


def make_wheel(root, folder):
    """Writes the wheel to `folder` and returns its path.

    `root` contains the executables and the package.
    """
    executables = [os.path.join(root, path) for path in EXECUTABLES]
    version = version_of(os.path.join(root, "deploy/launch/launch"))
    os.makedirs(folder, exist_ok=True)
    libraries = {}
    for path in executables:
        libraries.update(libraries_of(path))
    tag = f"py3-none-{platform_tag(executables + sorted(libraries.values()))}"
    wheel = Wheel(folder, version, tag)
    package = os.path.join(root, "deploy/python/muster")
    check_version(package, version)
    for name in sorted(os.listdir(package)):
        if name.endswith(".py"):
            wheel.add_file(f"muster/{name}", os.path.join(package, name))
    for name in documents(root):
        wheel.add_file(f"muster/docs/{name}", os.path.join(root, name))
    add_executables(wheel, executables, libraries)
    wheel.add(f"{wheel.info}/entry_points.txt", ENTRY_POINTS.encode())
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
    # Bazel runs this script in its runfiles folder.
    folder = os.path.join(os.environ.get("BUILD_WORKING_DIRECTORY", os.getcwd()), output)
    print(make_wheel(os.getcwd(), os.path.normpath(folder)))


if __name__ == "__main__":
    main()
