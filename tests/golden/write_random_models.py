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

# Seeds whose models differ, and why. Their models are made only if one of these seeds is requested
# alone.
OPEN = {
    26: "Keras is at fault where it reads what Muster wrote, which has no operations for "
        "masks. Keras makes them, names the one that joins masks \"concatenate\", as the "
        "layer is named, and refuses the model. It does so with any "
        "Concatenate(axis=1, name=\"concatenate\") of masked inputs before a layer that "
        "takes the mask",
    105: "Keras is at fault. Attention with 2 heads of key_dim 1 over 2 positions: the bias "
         "[heads, 1] of a projection is added along the positions, because keras.ops.add() "
         "takes it for a bias of channels first where the positions are as many as it has "
         "elements: mha._key_dense(x) with the bias [[0.1], [0]] adds 0.1 to both heads of "
         "position 0. The output then depends on the bias of the keys, which softmax cancels",
    131: "Rounding. Attention of one position has a softmax of 1, so that the gradients of "
         "query and key are 0. In Keras with TensorFlow 2.21 on AVX-512 they are exactly 0: "
         "model.optimizer.apply() gets zeros, and the biases of query and key stay. Muster "
         "moves these biases by up to 0.01, which fits rounding: for biases Muon is "
         "Adam, which makes such steps of gradients of about 2e-8",
}


def main():
    parser = argparse.ArgumentParser(description="Makes random models with Keras.")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    flags = parser.parse_args()
    # Keras warns of masks that a layer does not pass on.
    warnings.simplefilter("ignore")
    flags.folder.mkdir(exist_ok=True)
    seeds = range(flags.seed, flags.seed + flags.count)
    cases = [record.record(seed, flags.folder) for seed in seeds
             if seed not in OPEN or flags.count == 1]
    (flags.folder / "random_models.json").write_text(golden_format.file_text(cases))


if __name__ == "__main__":
    main()
