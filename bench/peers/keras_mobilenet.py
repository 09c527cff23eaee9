"""MobileNetV2 at 224 x 224 in Keras on TensorFlow: a training step with SGD, or inference.

Runs alternately with other processes; see turns.py.
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
    parser.add_argument("--mode", choices=["train", "predict"], required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--jit", action="store_true", help="through XLA")
    arguments = parser.parse_args()
    tensorflow.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    tensorflow.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(1)
    model = keras.applications.MobileNetV2(weights=None, classifier_activation=None)
    model.compile(
        optimizer=keras.optimizers.SGD(0.01),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=arguments.jit,
    )
    generator = numpy.random.default_rng(1)
    x = tensorflow.constant(generator.random((arguments.batch, 224, 224, 3), dtype=numpy.float32))
    y = tensorflow.constant(generator.integers(1000, size=arguments.batch))

    @tensorflow.function(jit_compile=arguments.jit)
    def forward(images):
        return model(images, training=False)

    if arguments.mode == "train":
        turns.take_turns(lambda: model.train_on_batch(x, y))
    else:
        turns.take_turns(lambda: forward(x).numpy())


if __name__ == "__main__":
    main()
