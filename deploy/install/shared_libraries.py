"""The shared libraries that are shipped with executables, and their licenses."""

import os
import re
import subprocess

# Libraries of every system that can install manylinux wheels (PEP 600).
BASE_LIBRARIES = {"libc.so.6", "libdl.so.2", "libgcc_s.so.1", "libm.so.6", "libpthread.so.0",
                  "libresolv.so.2", "librt.so.1", "libstdc++.so.6", "libutil.so.1"}


def libraries_of(executable):
    """Returns the paths of the shared libraries that an executable needs, by name.

    Omits BASE_LIBRARIES.
    """
    listed = subprocess.run(["ldd", executable], capture_output=True, check=True, text=True).stdout
    missing = re.findall(r"^\s*(\S+) => not found", listed, re.MULTILINE)
    if missing:
        raise SystemExit(f"{executable} needs {', '.join(missing)}, which is missing")
    return {name: path for name, path in
            re.findall(r"^\s*(\S+) => (/\S+) ", listed, re.MULTILINE)
            if name not in BASE_LIBRARIES}


def license_of(library):
    """Returns (the Debian package of the library, the path of its license)."""
    path = os.path.realpath(library)
    for candidate in (path, re.sub("^/usr/", "/", path)):
        found = subprocess.run(["dpkg", "-S", candidate], capture_output=True, text=True,
                               check=False)
        if found.returncode == 0:
            package = found.stdout.split(":")[0]
            return package, f"/usr/share/doc/{package}/copyright"
    raise SystemExit(f"{library} is of no package; its license is not known")
