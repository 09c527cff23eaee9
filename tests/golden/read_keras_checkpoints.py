"""Restores what Muster saved of the models in make_checkpoints.py into Keras.

    python read_keras_checkpoints.py FOLDER

Muster has restored each checkpoint of Keras and saved it as FOLDER/NAME, and again as
FOLDER/NAME_next after one more step. Every object of Keras must find its values in the
first; from the second, Keras must come to the recorded weights with the steps that are
left. The model is restored with and without its optimizer.
"""

import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf

import make_checkpoints as made

TOLERANCE = 1e-5


def restored_by(name, prefix):
    model = made.compiled(name)
    made.take_steps(model, 1)
    return model, made.checkpoint_of(name, model).restore(prefix)


def restored(name, prefix):
    model, status = restored_by(name, prefix)
    status.assert_existing_objects_matched().expect_partial()
    return model


def compare(what, got, expected):
    assert len(got) == len(expected), f"{what}: {len(got)} variables, not {len(expected)}"
    for one, other in zip(got, expected):
        # Nadam's product of momentums is computed in another precision.
        tolerance = 1e-6 if other.path.endswith("/variable") else 0
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=tolerance,
                                   atol=0, err_msg=f"{what}: {other.path}")


def check_values(name, prefix):
    expected, _ = restored_by(name, str(made.FOLDER / "keras" / "training" / name))
    got = restored(name, prefix)
    compare(f"{name}, weights", got.weights, expected.weights)
    compare(f"{name}, optimizer", got.optimizer.variables, expected.optimizer.variables)
    weights_alone = made.TRAINED[name][0]()
    status = tf.train.Checkpoint(model=weights_alone).restore(prefix)
    status.assert_existing_objects_matched().expect_partial()
    compare(f"{name}, weights alone", weights_alone.weights, expected.weights)


def restored_before_the_first_step(name, prefix):
    """Restores a model whose optimizer creates its variables after the checkpoint was restored."""
    model = made.compiled(name)
    made.checkpoint_of(name, model).restore(prefix).expect_partial()
    return model


def check_training(name, prefix):
    later = tf.train.load_checkpoint(
        str(made.FOLDER / "keras" / "training" / f"{name}_later"))
    ways = (restored, restored_before_the_first_step)
    # In that case Keras scales the loss of the first step by the initial scale, and divides
    # gradients by the restored one. ScheduleFreeAdamW overwrites the restored momentums when it
    # creates them.
    for restore in ways[:1] if name in ("small_loss_scale", "small_schedule_free") else ways:
        model = restore(name, prefix)
        made.take_steps(model, made.STEPS_AFTER - 1)
        for i, weight in enumerate(model.get_weights()):
            np.testing.assert_allclose(
                weight, later.get_tensor(f"{i}"), rtol=TOLERANCE, atol=TOLERANCE,
                err_msg=f"{name}, {restore.__name__}: weight {i}")


def main():
    folder = pathlib.Path(sys.argv[1])
    # Tracing takes longer than these few steps.
    tf.config.run_functions_eagerly(True)
    made.schedule_free.read_before_updates()
    for name in made.TRAINED:
        check_values(name, str(folder / name))
        if name != "mobilenet_v2":
            check_training(name, str(folder / f"{name}_next"))
        print(f"{name}: Keras reads it")


if __name__ == "__main__":
    main()
