"""A recurrent layer of 128 units over 128 time steps in Keras on TensorFlow.

Measures a training step with SGD. Runs alternately with other processes; see turns.py.
"""

import argparse
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras  # noqa: E402
import numpy  # noqa: E402
import tensorflow  # noqa: E402
import turns  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=["lstm", "gru"], required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--jit", action="store_true", help="through XLA")
    arguments = parser.parse_args()
    tensorflow.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    tensorflow.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(1)
    layer = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}[arguments.kind]
    model = keras.Sequential(
        [keras.Input((128, 128)), layer(128), keras.layers.Dense(10)]
    )
    model.compile(
        optimizer=keras.optimizers.SGD(0.01),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=arguments.jit,
    )
    generator = numpy.random.default_rng(1)
    x = tensorflow.constant(generator.random((arguments.batch, 128, 128), dtype=numpy.float32))
    y = tensorflow.constant(generator.integers(10, size=arguments.batch))
    turns.take_turns(lambda: model.train_on_batch(x, y))


if __name__ == "__main__":
    main()
