"""The commands that a wheel installs: muster-launch, musterctl and the tasks."""

import os
import shutil
import sys

from muster.executables import PACKAGE_BIN, find_launch

_LAUNCH = "muster-launch"


def _become(name):
    path = os.path.join(PACKAGE_BIN, name)
    if not os.path.exists(path):
        sys.exit(f"{os.path.basename(sys.argv[0])}: there is no {path}; install the wheel of "
                 "muster, which has it")
    os.execv(path, [path] + sys.argv[1:])


def coordinator():
    """Runs the coordinator of a job."""
    _become("coordinator")


def launch():
    """Runs a cluster on this machine."""
    _become("launch")


def musterctl():
    """Shows and controls a running job."""
    _become("musterctl")


def parameter_server():
    """Runs a parameter server."""
    _become("ps")


def worker():
    """Runs a worker."""
    _become("worker")


def launch_name():
    """Returns the name of `launch` for a shell: a path, or the command of a wheel.

    Also returns the command if no executable is found, because other machines may have
    the wheel.
    """
    try:
        path = find_launch()
    except FileNotFoundError:
        return _LAUNCH
    places = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    is_of_wheel = os.path.dirname(path) == PACKAGE_BIN
    return _LAUNCH if is_of_wheel and shutil.which(_LAUNCH, path=places) else path
