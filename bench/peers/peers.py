"""Runs one of the peers' benchmarks, or all of them, and prints their JSON lines.

    python peers.py --bench closures
    python peers.py --bench all --data_dir /data/mnist --launches 5

Every measurement is a new process, which is ended with its children at its time limit.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_SECONDS = 240
# A list of command lines for each bench; {data_dir} is replaced with the argument.
BENCHES = {
    "closures": [f"tf_cluster_coordinator.py --workers {n}" for n in (1, 2, 4)],
    "parameter_server": [f"tf_parameter_server.py --workers {n}" for n in (1, 2)],
    "mlp_step": ["tf_mnist.py --mode local --data_dir {data_dir}"],
    "mlp_ps": ["tf_mnist.py --mode ps --data_dir {data_dir}"],
    "mnist_accuracy": ["tf_mnist.py --mode accuracy --data_dir {data_dir}"],
    "torch_mlp_step": [
        "torch_mlp.py --threads 1",
        "torch_mlp.py --threads 2",
        "torch_mlp.py --threads 1 --ranks 2",
    ],
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bench", required=True, choices=["all", *BENCHES])
    parser.add_argument("--data_dir", default="", help="MNIST's IDX files, for mlp and mnist")
    parser.add_argument("--launches", type=int, default=1, help="of each process, interleaved")
    arguments = parser.parse_args()
    names = list(BENCHES) if arguments.bench == "all" else [arguments.bench]
    commands = [command for name in names for command in BENCHES[name]]
    if not arguments.data_dir and any("{data_dir}" in command for command in commands):
        parser.error("this bench needs --data_dir")

    failed = [
        command
        for _ in range(arguments.launches)
        for command in commands
        if not _run([part.format(data_dir=arguments.data_dir) for part in command.split()])
    ]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


def _run(command):
    """Returns true if the script succeeded. Shows its standard error only if it failed."""
    # In its own session, so that all its children can be ended at once.
    process = subprocess.Popen(
        [sys.executable, str(HERE / command[0]), *command[1:]],
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, errors = process.communicate(timeout=LIMIT_SECONDS)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        errors = f"{command[0]} took longer than {LIMIT_SECONDS} s\n".encode()
    if process.returncode != 0:
        sys.stderr.write(errors.decode(errors="replace"))
    return process.returncode == 0


if __name__ == "__main__":
    main()
