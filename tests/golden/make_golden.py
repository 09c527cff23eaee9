"""Writes data/*.json: results of TensorFlow and Keras, for Muster's tests.

The files in data/ were made with TensorFlow 2.21.0, Keras 3.15.1 and NumPy 2.4.6 on
Python 3.11. Other versions are rejected, because another version may change results
without notice. Change VERSIONS and this paragraph together.

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.21.0 keras==3.15.1
    venv/bin/pip install tf-keras==2.21.0     # for legacy_files
    venv/bin/python make_golden.py            # all files
    venv/bin/python make_golden.py ops mlp    # some

The output is reproducible: inputs come from seeded generators.

A file is {"cases": [case, ...]}, one case to a line, and a case is

    {"name": ..., "config": {...}, "inputs": {name: tensor}, "outputs": {name: tensor}}

with tensor = {"shape": [...], "dtype": "float32", "values": [...]}, row major. float32
values have nine significant digits, which restore the exact float (float64: seventeen);
bfloat16 and float16 are written as decimal numbers; bools are 0 or 1; infinities and NaN
are the strings "inf", "-inf" and "nan". `config` has the argument names of TensorFlow and
Keras. The modules in cases/ describe the names in each file; progress.json contains texts
instead of tensors.
"""

import os

# Must be set before TensorFlow is imported. Disables oneDNN, whose results
# depend on the CPU in the last digit.
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
    applications,
    arrays,
    callbacks,
    convolution_layers,
    golden_format,
    image_functions,
    image_layers,
    images,
    job_layers,
    keras_files,
    keras_string_files,
    layers,
    legacy_files,
    loss_scale,
    losses,
    masks,
    metrics,
    mlp,
    mobilenet_v2,
    ops,
    optimizers,
    preprocessing_layers,
    progress,
    random_models,
    records,
    sequence_layers,
    stateful,
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
        image_functions,
        sequence_layers,
        convolution_layers,
        job_layers,
        mobilenet_v2,
        applications,
        mlp,
        progress,
        ops,
        images,
        records,
        training,
        arrays,
        callbacks,
        masks,
        keras_files,
        keras_string_files,
        preprocessing_layers,
        loss_scale,
        stateful,
        legacy_files,
        random_models,
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
