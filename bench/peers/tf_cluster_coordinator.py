"""The cost per closure of TensorFlow's ClusterCoordinator: one cluster, one worker count.

Reports no-op closures per second through schedule() and join(), the time of one closure
from schedule() to join(), and the utilisation of the workers with closures of 100 us.
"""

import argparse
import time

import measure
from local_cluster import run_as_chief

BUSY_SECONDS = 100e-6


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--closures", type=int, default=1000, help="per run")
    parser.add_argument("--limit_seconds", type=int, default=180)
    arguments = parser.parse_args()
    measure.limit_seconds(arguments.limit_seconds)
    run_as_chief(
        lambda: _measure(arguments.workers, arguments.closures),
        worker_count=arguments.workers,
        ps_count=1,
    )


def _measure(worker_count, closure_count):
    import tensorflow as tf

    strategy = tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.TFConfigClusterResolver()
    )
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    peer = f"tensorflow {tf.__version__}"
    setting = f"workers_{worker_count}"

    @tf.function
    def no_op():
        return tf.constant(0)

    @tf.function
    def busy(iterations, start):
        return tf.while_loop(
            lambda i, x: i < iterations,
            lambda i, x: (i + 1, x * 1.0000001),
            (0, start),
            parallel_iterations=1,
        )[1]

    def drain(function, *args):
        for _ in range(closure_count):
            coordinator.schedule(function, args=args)
        coordinator.join()

    seconds = measure.seconds_of(lambda: drain(no_op), count=5, warmup=1)
    measure.report(
        f"closures_noop.{setting}", peer, "closures/s", [closure_count / s for s in seconds]
    )

    def one():
        coordinator.schedule(no_op)
        coordinator.join()

    samples = [1e6 * s for s in measure.seconds_of(one, count=500, warmup=20)]
    measure.report(f"closure_latency.{setting}", peer, "us", measure.in_runs(samples), samples)

    iterations = _iterations_for(busy, BUSY_SECONDS)
    seconds = measure.seconds_of(lambda: drain(busy, iterations, 1.0), count=5, warmup=1)
    work = closure_count * BUSY_SECONDS
    measure.report(
        f"closures_busy_100us_utilisation.{setting}",
        peer,
        "fraction",
        [work / (worker_count * s) for s in seconds],
    )


def _iterations_for(busy, seconds):
    """Returns how many iterations of `busy` take this long, without the cost of the call."""
    few, many = 100, 20100
    cost = {}
    for iterations in (few, many):
        for _ in range(5):
            start = time.perf_counter()
            busy(iterations, 1.0)
            spent = time.perf_counter() - start
            cost[iterations] = min(spent, cost.get(iterations, spent))
    return int(seconds * (many - few) / (cost[many] - cost[few]))


if __name__ == "__main__":
    main()
