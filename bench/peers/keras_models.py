"""Models in Keras on TensorFlow: a training step with SGD and the squared error.

  keras_models.py --model=unet --save=FILE  writes the model that is measured
  keras_models.py --model=unet              runs steps on request; see turns.py
  keras_models.py --load=FILE --count=5     loads the file, and prints milliseconds

torch_models.py has the same models.
"""

import argparse
import os
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras  # noqa: E402
import numpy  # noqa: E402
import tensorflow  # noqa: E402
import turns  # noqa: E402
from keras import layers  # noqa: E402


def attention():
    """One block of a transformer: 8 heads of 64 over 128 steps of 512 features."""
    x = keras.Input((128, 512))
    y = layers.LayerNormalization()(layers.Add()([x, layers.MultiHeadAttention(8, 64)(x, x)]))
    z = layers.Dense(512)(layers.Dense(2048, activation="relu")(y))
    return keras.Model(x, layers.LayerNormalization()(layers.Add()([y, z])))


def resnet50():
    """224 x 224, 1,000 classes."""
    return keras.applications.ResNet50(weights=None)


def unet():
    """Images of 128 x 128, three levels of 32, 64 and 128 filters above one of 256."""

    def convolutions(x, filters):
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
            x = layers.ReLU()(layers.BatchNormalization()(x))
        return x

    inputs = keras.Input((128, 128, 3))
    x, skipped = inputs, []
    for filters in (32, 64, 128):
        skipped.append(convolutions(x, filters))
        x = layers.MaxPooling2D()(skipped[-1])
    x = convolutions(x, 256)
    for skip in reversed(skipped):
        x = layers.Conv2DTranspose(skip.shape[-1], 2, 2)(x)
        x = convolutions(layers.Concatenate()([skip, x]), skip.shape[-1])
    return keras.Model(inputs, layers.Conv2D(1, 1)(x))


def wide():
    """100 MB of weights."""
    return keras.Sequential([keras.Input((2500,)), *(layers.Dense(2500) for _ in range(4))])


MODELS = {function.__name__: function for function in (attention, resnet50, unet, wide)}


def measure_loads(path, count):
    for _ in range(count):
        start = time.perf_counter()
        keras.models.load_model(path)
        print(f"{1e3 * (time.perf_counter() - start):.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=sorted(MODELS))
    parser.add_argument("--save")
    parser.add_argument("--load")
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--jit", action="store_true", help="through XLA")
    arguments = parser.parse_args()
    tensorflow.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    tensorflow.config.threading.set_inter_op_parallelism_threads(1)
    if arguments.load:
        measure_loads(arguments.load, arguments.count)
        return
    keras.utils.set_random_seed(1)
    model = MODELS[arguments.model]()
    model.compile(keras.optimizers.SGD(0.01), "mse", jit_compile=arguments.jit)
    if arguments.save:
        model.save(arguments.save)
        return
    generator = numpy.random.default_rng(1)

    def numbers(shape):
        values = generator.random((arguments.batch, *shape[1:]), dtype=numpy.float32)
        return tensorflow.constant(values)

    x, y = numbers(model.input_shape), numbers(model.output_shape)
    turns.take_turns(lambda: model.train_on_batch(x, y))


if __name__ == "__main__":
    main()
