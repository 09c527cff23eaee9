"""The step of a 784-256-256-10 network under MultiWorkerMirroredStrategy with RING.

Two workers on this machine, 64 MNIST images and one thread each: through Keras' fit(), with one
step and with ten steps per execution, and through a custom tf.function of ten steps.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import measure
import mnist
from local_cluster import free_addresses

BATCH = 64
STEPS = 1000
LONG_EXECUTION = 10


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--data_dir", required=True, help="where MNIST's IDX files are")
    parser.add_argument("--limit_seconds", type=int, default=180)
    arguments = parser.parse_args()
    measure.limit_seconds(arguments.limit_seconds)
    if "TF_CONFIG" in os.environ:
        _work(arguments)
        return
    addresses = free_addresses({"worker": arguments.ranks})
    workers = [
        subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), *sys.argv[1:]],
            env={
                **os.environ,
                "TF_CPP_MIN_LOG_LEVEL": "3",
                "TF_CONFIG": json.dumps(
                    {"cluster": addresses, "task": {"type": "worker", "index": index}}
                ),
            },
        )
        for index in range(arguments.ranks)
    ]
    if any([worker.wait() for worker in workers]):
        sys.exit("a worker failed")


def _work(arguments):
    import tensorflow as tf

    # Keras 3 rejects this strategy; tf_keras supports it.
    import tf_keras

    tf.config.threading.set_intra_op_parallelism_threads(1)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=tf.distribute.experimental.CommunicationOptions(
            implementation=tf.distribute.experimental.CommunicationImplementation.RING
        )
    )
    images, labels = mnist.load_train(arguments.data_dir)
    x = (images[:12800] / 255).astype("float32")
    batch = BATCH * arguments.ranks
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    options.threading.private_threadpool_size = 1
    data = tf.data.Dataset.from_tensor_slices((x, labels[:12800]))
    data = data.batch(batch).cache().repeat().with_options(options)

    for steps in (1, LONG_EXECUTION):
        with strategy.scope():
            model = _mlp(tf_keras)
            model.compile(
                optimizer=_optimizer(tf_keras, arguments.optimizer),
                loss=tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                steps_per_execution=steps,
            )
        times = _Times(tf_keras)
        model.fit(data, epochs=1, steps_per_epoch=STEPS, verbose=0, callbacks=[times.callback])
        _report(f"fit_{steps}", arguments, times.milliseconds(steps))

    with strategy.scope():
        model = _mlp(tf_keras)
        optimizer = _optimizer(tf_keras, arguments.optimizer)

    def replica_step(x, y):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x, training=True))
            value = tf.reduce_sum(losses) / batch
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    @tf.function
    def steps(iterator):
        for _ in tf.range(LONG_EXECUTION):
            strategy.run(replica_step, args=next(iterator))

    iterator = iter(strategy.experimental_distribute_dataset(data))
    seconds = measure.seconds_of(
        lambda: steps(iterator), count=STEPS // LONG_EXECUTION, warmup=20
    )
    _report("function_10", arguments, [1e3 * s / LONG_EXECUTION for s in seconds])
    sys.stdout.flush()
    # A regular exit takes as long as the slowest report of a lost peer.
    os._exit(0)


class _Times:
    """Records the end of each execution of fit()."""

    def __init__(self, keras):
        ends = self.ends = []

        class Callback(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                ends.append(time.perf_counter())

        self.callback = Callback()

    def milliseconds(self, steps):
        """Times of a step, without the first executions, which trace and warm up."""
        ends = self.ends[20:]
        return [1e3 * (b - a) / steps for a, b in zip(ends, ends[1:])]


def _mlp(keras):
    return keras.Sequential(
        [
            keras.Input((784,)),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(10),
        ]
    )


def _optimizer(keras, name):
    # The legacy optimizers update a variable in one fused op.
    legacy = keras.optimizers.legacy
    return legacy.SGD(0.01) if name == "sgd" else legacy.Adam()


def _report(name, arguments, samples):
    import tensorflow as tf

    if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 0:
        measure.report(
            f"mlp_synchronous.{arguments.optimizer}.{name}",
            f"tensorflow {tf.__version__}",
            "ms",
            measure.in_runs(samples),
            samples,
        )


if __name__ == "__main__":
    main()
