"""MNIST's IDX files as NumPy arrays."""

import gzip
import pathlib

import numpy as np


def load_train(data_dir):
    """Returns 60,000 images, uint8 of shape [784], and their labels, int32."""
    images = _read_idx(pathlib.Path(data_dir), "train-images-idx3-ubyte")
    labels = _read_idx(pathlib.Path(data_dir), "train-labels-idx1-ubyte")
    return images.reshape(len(images), -1), labels.astype(np.int32)


def _read_idx(directory, name):
    """Returns the content of the published .gz file, or of the unpacked file."""
    packed = directory / f"{name}.gz"
    data = (
        gzip.decompress(packed.read_bytes())
        if packed.exists()
        else (directory / name).read_bytes()
    )
    rank = data[3]
    shape = np.frombuffer(data, ">u4", count=rank, offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)
