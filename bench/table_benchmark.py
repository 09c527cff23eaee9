#!/usr/bin/env python3
"""Tables with strings compared with tf.data: CSV files, and looking up words.

    bazel build //bench:table_benchmark
    bench/table_benchmark.py --python=VENV/bin/python [--realtime]

Writes a table of six columns of numbers, four of strings and a label, and a vocabulary of
10,000 words. Runs both alternately and prints medians, and their ratio to the fastest peer.
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = 200_000
WORDS = 10_000


def write_files(folder):
    """Writes the files of both tasks; one word in ten is not in the vocabulary."""
    draw = random.Random(1)
    known = [f"word_{draw.randrange(16 ** 8):08x}" for _ in range(WORDS)]
    words = known + [f"other_{i}" for i in range(WORDS // 9)]
    (folder / "vocabulary.txt").write_text("\n".join(dict.fromkeys(known)))
    (folder / "words.txt").write_text("\n".join(draw.choices(words, k=ROWS)))
    lines = ["x0,x1,x2,x3,x4,x5,s0,s1,s2,s3,y"]
    for _ in range(ROWS):
        numbers = [f"{draw.gauss(0, 10):.4f}" for _ in range(6)]
        lines.append(",".join([*numbers, *draw.choices(words, k=4), str(draw.randrange(2))]))
    (folder / "table.csv").write_text("\n".join(lines) + "\n")


def run(command, realtime):
    prefix = ["chrt", "--rr", "20"] if realtime else []
    output = subprocess.run(prefix + command, check=True, capture_output=True, text=True)
    return json.loads(output.stdout.strip().splitlines()[-1])["rows_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="one that has TensorFlow")
    parser.add_argument("--binary", default=ROOT / "bazel-bin/bench/table_benchmark")
    parser.add_argument("--launches", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--realtime", action="store_true")
    arguments = parser.parse_args()
    peer = [arguments.python, str(ROOT / "bench/peers/tf_tables.py")]
    ours = [str(arguments.binary)]
    seconds = str(arguments.seconds)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_files(folder)
        table = [str(folder / "table.csv"), seconds]
        words = [str(folder / "words.txt"), str(folder / "vocabulary.txt"), seconds]
        tasks = {
            "csv": {"muster": [*ours, "csv", *table],
                    "tf.data, decode_csv": [*peer, "csv", *table],
                    "tf.data, CsvDataset": [*peer, "records", *table]},
            "lookup": {"muster": [*ours, "lookup", *words],
                       "tf.data, StringLookup": [*peer, "lookup", *words]},
        }
        for task, commands in tasks.items():
            rates = {name: [] for name in commands}
            for _ in range(arguments.launches):
                for name, command in commands.items():
                    rates[name].append(run(command, arguments.realtime))
            medians = {name: statistics.median(values) for name, values in rates.items()}
            fastest = max(rate for name, rate in medians.items() if name != "muster")
            for name, rate in medians.items():
                print(f"{task:6} {name:22} {rate:12,.0f} rows/s  ratio {rate / fastest:5.2f}",
                      flush=True)


if __name__ == "__main__":
    main()
