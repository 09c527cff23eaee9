#!/usr/bin/env python3
"""Image input compared with tf.data: decode and resize on one core, and on two.

    bazel build //bench:image_input_benchmark
    bench/image_input_benchmark.py --python=VENV/bin/python

Creates JPEG files of 500x375 pixels, runs both alternately, pinned to the same
processors, and prints medians and their ratio.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(command, cores):
    pinned = ["taskset", "-c", ",".join(map(str, range(cores))), *command]
    output = subprocess.run(pinned, check=True, capture_output=True, text=True).stdout
    return json.loads(output.strip().splitlines()[-1])["images_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="one that has TensorFlow")
    parser.add_argument("--binary", default=ROOT / "bazel-bin/bench/image_input_benchmark")
    parser.add_argument("--launches", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--count", type=int, default=512)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        binary = str(arguments.binary)
        made = [binary, "make", folder, str(arguments.count), "375", "500"]
        print(subprocess.run(made, check=True, capture_output=True, text=True).stdout, end="")
        for cores in (1, 2):
            task = [folder, "224", "224", str(cores), str(arguments.seconds)]
            peer = str(ROOT / "bench/peers/tf_images.py")
            commands = {
                "muster": [binary, "run", *task],
                "muster, fast_downscale": [binary, "run", *task, "fast"],
                "tf.data": [arguments.python, peer, *task],
            }
            rates = {name: [] for name in commands}
            for _ in range(arguments.launches):
                for name, command in commands.items():
                    rates[name].append(run(command, cores))
            peer_rate = statistics.median(rates["tf.data"])
            for name, values in rates.items():
                rate = statistics.median(values)
                print(f"{cores} core(s), {name}: {rate:.0f} images/s, "
                      f"{rate / peer_rate:.2f} x tf.data")


if __name__ == "__main__":
    main()
