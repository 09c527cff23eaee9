"""Writes data/*.json: what TensorFlow and Keras compute, for Muster's tests to match.

The files in data/ were made with TensorFlow 2.21.0, Keras 3.15.1 and NumPy 2.4.6 on
Python 3.11. Other versions are refused, because a silent change of version would move
numbers for a reason nobody can see; change VERSIONS and this line together.

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.21.0 keras==3.15.1
    venv/bin/python make_golden.py            # all files
    venv/bin/python make_golden.py ops mlp    # some

Nothing here is random from run to run: inputs come from seeded generators.

A file is {"cases": [case, ...]}, one case to a line, and a case is

    {"name": ..., "config": {...}, "inputs": {name: tensor}, "outputs": {name: tensor}}

with tensor = {"shape": [...], "dtype": "float32", "values": [...]}, row major. float32
values carry nine significant digits, which give the same float back (float64:
seventeen); bfloat16 and float16 are written as the numbers they stand for; a bool is 0
or 1; what JSON has no number for is "inf", "-inf" or "nan", as a string. `config` uses
TensorFlow's and Keras' own argument names. The modules in cases/ say what each file's
names mean; progress.json holds texts instead of tensors.
"""

import os

# Before TensorFlow loads: its plain kernels, so that the last digit does not depend on
# which oneDNN path the machine's CPU selects.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["KERAS_BACKEND"] = "tensorflow"

import argparse
import pathlib
import sys

import keras
import numpy
import tensorflow

from cases import (
    arrays,
    callbacks,
    convolution_layers,
    golden_format,
    image_layers,
    images,
    job_layers,
    layers,
    losses,
    masks,
    metrics,
    mlp,
    mobilenet_v2,
    ops,
    optimizers,
    progress,
    records,
    sequence_layers,
    training,
)

VERSIONS = {"tensorflow": "2.21.0", "keras": "3.15.1", "numpy": "2.4.6"}
SOURCES = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        optimizers,
        losses,
        metrics,
        layers,
        image_layers,
        sequence_layers,
        convolution_layers,
        job_layers,
        mobilenet_v2,
        mlp,
        progress,
        ops,
        images,
        records,
        training,
        arrays,
        callbacks,
        masks,
    )
}
DATA = pathlib.Path(__file__).parent / "data"


def main():
    parser = argparse.ArgumentParser(description="Writes the golden values.")
    parser.add_argument("files", nargs="*", metavar="file", help=", ".join(SOURCES))
    files = parser.parse_args().files or list(SOURCES)
    unknown = set(files) - set(SOURCES)
    if unknown:
        parser.error(f"no such file: {', '.join(sorted(unknown))}")

    found = {m.__name__: m.__version__ for m in (tensorflow, keras, numpy)}
    if found != VERSIONS:
        sys.exit(f"make_golden.py wants {VERSIONS}, found {found}")

    DATA.mkdir(exist_ok=True)
    for file in files:
        text = golden_format.file_text(SOURCES[file].cases())
        path = DATA / f"{file}.json"
        path.write_text(text)
        print(f"{path.name}: {text.count(chr(10)) - 2} cases, {len(text)} bytes")


if __name__ == "__main__":
    main()
