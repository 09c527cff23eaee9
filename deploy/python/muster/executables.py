"""Finds the executables of Muster."""

import os
import shutil

_PACKAGE_DIR = os.path.dirname(os.path.abspath(__file__))
# The folder of the executables in a wheel.
PACKAGE_BIN = os.path.join(_PACKAGE_DIR, "bin")


def find_launch(environ=None, package_dir=_PACKAGE_DIR):
    """Returns the path of `launch`, which finds the other executables itself.

    Searches $MUSTER_BIN (the bin folder of an installation, or bazel-bin) if it is set.
    Otherwise searches the package, where wheels have the executables, then $PATH.

    Raises:
      FileNotFoundError: `launch` is in none of these places; names them.
    """
    environ = os.environ if environ is None else environ
    places = []
    folder = environ.get("MUSTER_BIN")
    if folder:
        places += [os.path.join(folder, "launch"),
                   os.path.join(folder, "deploy", "launch", "launch")]
    else:
        places.append(os.path.join(package_dir, "bin", "launch"))
    for place in places:
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return os.path.abspath(place)
    if not folder:
        found = shutil.which("launch", path=environ.get("PATH", ""))
        if found:
            return os.path.abspath(found)
        places.append("$PATH")
    raise FileNotFoundError(
        f"no executable launch in {' or '.join(places)}; install the wheel, or set MUSTER_BIN "
        "to the folder of Muster's executables, such as bazel-bin")


def find_musterctl(launch):
    """Returns the path of `musterctl`, which is beside `launch` in an installation.

    The file need not exist.
    """
    folder = os.path.dirname(launch)
    installed = os.path.join(folder, "musterctl")
    if os.path.exists(installed):
        return installed
    return os.path.join(os.path.dirname(folder), "musterctl", "musterctl")  # Of a build.
