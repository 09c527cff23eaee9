"""progress.json: the progress bar of Keras.

config:  target (null: unknown), verbose, unit_name, the progress bar's arguments.
inputs:  updates, in order: {"seconds": since the bar was created, "current": steps done,
         "values": [[name, number], ...], "finalize": true for the last}.
outputs: text, one string per update: the exact output, including control characters;
         empty if Keras did not print the update.

Metrics are shown as given, not averaged by the bar, as in Keras' fit(). Keras 3 redraws
its line (verbose=1) also if stdout is not a terminal, so that mode has only one form.
"""

import contextlib
import io
from unittest import mock

from keras.src.utils import progbar

from cases.golden_format import case

# Far from zero, like a clock. Keras treats a bar that was never drawn as drawn
# at time 0.
START_SECONDS = 1024.0


def cases():
    train = [
        _update(0.5, 1, loss=2.3026, accuracy=0.09375),
        _update(0.53, 2, loss=2.25),
        _update(1.25, 37, loss=1.0, accuracy=0.5),
        _update(2.0, 99, loss=0.0009, accuracy=0.99996),
        _update(2.25, 100, True, loss=0.00012345, accuracy=1.0, val_loss=0.3),
    ]
    yield _run("epoch", 100, 1, train)
    yield _run("epoch_verbose_2", 100, 2, train)

    yield _run(
        "unknown_target", None, 1, [_update(0.5, 1, loss=2.5), _update(90.4, 40, loss=1.5)]
    )
    yield _run("no_metrics", 5, 1, [_update(0.25, 1), _update(1.25, 5, True)])
    yield _run("one_step", 1, 1, [_update(0.125, 1, True, loss=0.5)])
    yield _run("one_step_verbose_2", 1, 2, [_update(0.125, 1, True, loss=0.5)])
    # Each format of the remaining time (0:00:00, 0:00, 0s) and of the time per
    # step.
    yield _run(
        "long",
        20000,
        1,
        [
            _update(2.0, 1, loss=1.0),
            _update(22.0, 2, loss=1.0),
            _update(1002.0, 1001, loss=1.0),
            _update(1003.0, 19000, loss=1.0),
            _update(1004.0, 20000, True, loss=1.0),
        ],
    )
    yield _run(
        "microseconds",
        4000,
        1,
        [
            _update(0.25, 1, loss=1.0),
            _update(0.5, 2001, loss=-0.5),
            _update(1.0, 4000, True, loss=0.0),
        ],
    )
    # With verbose=2, any number below 0.001, even -5, is formatted as a tiny
    # one.
    yield _run("negative_verbose_2", 10, 2, [_update(12.6, 10, True, loss=-5.0, score=0.001)])
    # A line that is shorter than the previous one is padded, to overwrite it.
    yield _run(
        "shrinking",
        10,
        1,
        [_update(500.0, 1, loss=-123.4567), _update(501.0, 2, loss=1.0)],
    )
    yield _run("samples", 32, 1, [_update(1.0, 8, loss=0.25)], unit_name="sample")


def _update(seconds, current, finalize=False, **values):
    return {
        "seconds": seconds,
        "current": current,
        "values": [[key, value] for key, value in values.items()],
        "finalize": finalize,
    }


def _run(name, target, verbose, updates, unit_name="step"):
    with mock.patch.object(progbar.time, "time") as clock:
        clock.return_value = START_SECONDS
        bar = progbar.Progbar(
            target, verbose=verbose, unit_name=unit_name, stateless_metrics=set()
        )
        text = []
        for update in updates:
            clock.return_value = START_SECONDS + update["seconds"]
            with contextlib.redirect_stdout(io.StringIO()) as out:
                bar.update(
                    update["current"],
                    [tuple(pair) for pair in update["values"]],
                    finalize=update["finalize"],
                )
            text.append(out.getvalue())
    config = {"target": target, "verbose": verbose, "unit_name": unit_name}
    return case(name, config, {"updates": updates}, {"text": text})
