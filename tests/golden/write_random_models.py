"""Makes random models with Keras.

    python write_random_models.py FOLDER [--seed=0] [--count=200]

Writes FOLDER/random_<seed>.keras for `count` seeds from `seed` on, and
FOLDER/random_models.json, whose cases random_models/record.py describes.
"""

import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["KERAS_BACKEND"] = "tensorflow"

import argparse
import pathlib
import warnings

from cases import golden_format
from random_models import record


def main():
    parser = argparse.ArgumentParser(description="Makes random models with Keras.")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    flags = parser.parse_args()
    # Keras warns of masks that a layer does not pass on.
    warnings.simplefilter("ignore")
    flags.folder.mkdir(exist_ok=True)
    cases = [record.record(seed, flags.folder)
             for seed in range(flags.seed, flags.seed + flags.count)]
    (flags.folder / "random_models.json").write_text(golden_format.file_text(cases))


if __name__ == "__main__":
    main()
