"""The cost of a step that only accesses TensorFlow's parameter server.

A step reads all variables from one parameter server (pull) and applies a gradient to
each with the optimizer on the server (push). Reports the time of one step, taken by all
workers at the same time: 25 variables of 4 MiB under SGD and Adam, and 200 variables of
1 KiB under SGD. It includes the cost of scheduling the closure, about 1 ms.
"""

import argparse

import measure
from local_cluster import run_as_chief

FLOAT_BYTES = 4


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--limit_seconds", type=int, default=180)
    arguments = parser.parse_args()
    measure.limit_seconds(arguments.limit_seconds)
    run_as_chief(
        lambda: _measure(arguments.workers, arguments.steps),
        worker_count=arguments.workers,
        ps_count=1,
    )


def _measure(worker_count, step_count):
    import tensorflow as tf

    # Keras 3 does not support this strategy; tf_keras does. Its legacy
    # optimizers update a variable with one fused op on the server, so they are
    # faster here.
    import tf_keras

    strategy = tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.TFConfigClusterResolver()
    )
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    optimizers = tf_keras.optimizers.legacy

    def measure_step(bench, optimizer_type, variable_count, variable_bytes):
        with strategy.scope():
            shape = [variable_bytes // FLOAT_BYTES]
            variables = [tf.Variable(tf.ones(shape)) for _ in range(variable_count)]
            optimizer = optimizer_type(learning_rate=0.001)

        def replica_step():
            # The gradient is computed from the values read, so that a push
            # follows its pull.
            pairs = [(variable * 0.001, variable) for variable in variables]
            optimizer.apply_gradients(pairs)

        @tf.function
        def step():
            strategy.run(replica_step)

        def all_workers_once():
            for _ in range(worker_count):
                coordinator.schedule(step)
            coordinator.join()

        seconds = measure.seconds_of(all_workers_once, count=step_count)
        samples = [1e3 * s for s in seconds]
        measure.report(
            f"{bench}.workers_{worker_count}",
            f"tensorflow {tf.__version__}",
            "ms",
            measure.in_runs(samples),
            samples,
        )

    measure_step("ps_25x4MiB_sgd", optimizers.SGD, 25, 4 << 20)
    measure_step("ps_25x4MiB_adam", optimizers.Adam, 25, 4 << 20)
    measure_step("ps_200x1KiB_sgd", optimizers.SGD, 200, 1 << 10)


if __name__ == "__main__":
    main()
