"""A 784-256-256-10 network on MNIST in TensorFlow: its step, its training, its accuracy.

--mode local       one step at batch 64 under SGD, as a tf.function, compiled by XLA, and
                   within Keras' fit()
--mode ps          examples/s under ParameterServerStrategy, 2 workers and 2 servers,
                   with one step and with ten in a closure
--mode accuracy    two epochs of Adam at batch 32 on the first 50,000 training images;
                   accuracy on the other 10,000
"""

import argparse
import itertools
import time

import measure
import mnist
from local_cluster import run_as_chief

BATCH = 64
WORKERS = 2
SERVERS = 2


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mode", choices=["local", "ps", "accuracy"], required=True)
    parser.add_argument("--data_dir", required=True, help="where MNIST's IDX files are")
    parser.add_argument("--limit_seconds", type=int, default=180)
    arguments = parser.parse_args()
    measure.limit_seconds(arguments.limit_seconds)
    images, labels = mnist.load_train(arguments.data_dir)

    if arguments.mode == "ps":
        run_as_chief(lambda: _measure_ps(images[:10000], labels[:10000]), WORKERS, SERVERS)
    elif arguments.mode == "local":
        _measure_local(images[:6400], labels[:6400])
    else:
        _measure_accuracy(images, labels)


def _mlp(keras):
    return keras.Sequential(
        [
            keras.Input((784,)),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(10),
        ]
    )


def _measure_local(images, labels):
    import keras
    import tensorflow as tf

    peer = f"tensorflow {tf.__version__}"
    x = (images / 255).astype("float32")
    batches = [
        (tf.constant(x[i : i + BATCH]), tf.constant(labels[i : i + BATCH]))
        for i in range(0, len(x), BATCH)
    ]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    for name, jit_compile in (("graph", False), ("xla", True)):
        model = _mlp(keras)
        optimizer = keras.optimizers.SGD(0.01)
        optimizer.build(model.trainable_variables)

        @tf.function(jit_compile=jit_compile)
        def step(batch_x, batch_y):
            with tf.GradientTape() as tape:
                value = loss(batch_y, model(batch_x, training=True))
            gradients = tape.gradient(value, model.trainable_variables)
            optimizer.apply(gradients, model.trainable_variables)
            return value

        feed = itertools.cycle(batches)
        seconds = measure.seconds_of(lambda: step(*next(feed)).numpy(), count=500, warmup=100)
        samples = [1e3 * s for s in seconds]
        measure.report(f"mlp_step.{name}", peer, "ms", measure.in_runs(samples), samples)

    model = _mlp(keras)
    model.compile(optimizer=keras.optimizers.SGD(0.01), loss=loss)

    def epoch():
        model.fit(x, labels, batch_size=BATCH, epochs=1, verbose=0)

    seconds = measure.seconds_of(epoch, count=5, warmup=1)
    measure.report("mlp_step.fit", peer, "ms", [1e3 * s / len(batches) for s in seconds])


def _measure_ps(images, labels):
    import tensorflow as tf

    # Keras 3 does not support this strategy; tf_keras does.
    import tf_keras

    strategy = tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.TFConfigClusterResolver()
    )
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model = _mlp(tf_keras)
        optimizer = tf_keras.optimizers.legacy.SGD(0.01)

    def dataset():
        data = tf.data.Dataset.from_tensor_slices((images, labels))
        data = data.shuffle(len(images)).repeat().batch(BATCH)
        data = data.map(lambda x, y: (tf.cast(x, tf.float32) / 255, y))
        return data.prefetch(tf.data.AUTOTUNE)

    def replica_step(x, y):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x, training=True))
            value = tf.reduce_mean(losses)
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    @tf.function
    def steps(iterator, count):
        for _ in tf.range(count):
            strategy.run(replica_step, args=next(iterator))

    iterator = iter(coordinator.create_per_worker_dataset(dataset))

    def run(closure_count, steps_per_closure):
        for _ in range(closure_count):
            coordinator.schedule(steps, args=(iterator, steps_per_closure))
        coordinator.join()

    for closure_count, steps_per_closure in ((200, 1), (40, 10)):
        seconds = measure.seconds_of(
            lambda: run(closure_count, steps_per_closure), count=5, warmup=1
        )
        examples = BATCH * closure_count * steps_per_closure
        measure.report(
            f"mlp_ps_examples.steps_per_closure_{steps_per_closure}",
            f"tensorflow {tf.__version__}",
            "examples/s",
            [examples / s for s in seconds],
        )


def _measure_accuracy(images, labels):
    import keras
    import tensorflow as tf

    x = (images / 255).astype("float32")
    held_out = 10000
    train = x[:-held_out], labels[:-held_out]
    validation = x[-held_out:], labels[-held_out:]
    accuracies, seconds = [], []
    for seed in (1, 2, 3):
        keras.utils.set_random_seed(seed)
        model = _mlp(keras)
        model.compile(
            optimizer=keras.optimizers.Adam(),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["sparse_categorical_accuracy"],
        )
        start = time.perf_counter()
        model.fit(*train, batch_size=32, epochs=2, verbose=0)
        seconds.append(time.perf_counter() - start)
        accuracies.append(model.evaluate(*validation, batch_size=1000, verbose=0)[1])
    peer = f"tensorflow {tf.__version__}"
    measure.report("mnist_accuracy.adam_2_epochs", peer, "fraction", accuracies)
    measure.report("mnist_training.adam_2_epochs", peer, "s", seconds)


if __name__ == "__main__":
    main()
