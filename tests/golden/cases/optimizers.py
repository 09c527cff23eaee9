"""optimizers.json: 20 steps of two variables with given gradients.

A case named like an optimizer in job files, such as "adamw", has Keras' defaults.

inputs:  var0 [3,2] and var1 [4], the values before the first step;
         grad0 [20,3,2] and grad1 [20,4], the gradients of each step.
outputs: var0 [20,3,2] and var1 [20,4], the values after each step;
         learning_rate [20], the learning rate of each step;
        final0 [3,2] and final1 [4], what fit() makes of them at its end.
"""

import zlib

import keras
import numpy as np

from cases import schedule_free
from cases.golden_format import case, keras_config, normal, seeded

STEPS = 20
SHAPES = ((3, 2), (4,))


def cases():
    schedule_free.read_before_updates()
    for name, optimizer in _optimizers() + _schedules():
        # Seeded by name, so that a new case does not change the others.
        yield _run(name, optimizer, seeded(zlib.crc32(name.encode())))


def _optimizers():
    o = keras.optimizers
    return [
        ("sgd", o.SGD()),
        ("sgd_momentum", o.SGD(learning_rate=0.05, momentum=0.9)),
        ("sgd_nesterov", o.SGD(learning_rate=0.05, momentum=0.9, nesterov=True)),
        ("sgd_weight_decay", o.SGD(learning_rate=0.05, weight_decay=0.01)),
        ("adam", o.Adam()),
        ("adam_arguments", o.Adam(0.02, beta_1=0.8, beta_2=0.95, epsilon=1e-4)),
        ("adam_amsgrad", o.Adam(learning_rate=0.02, amsgrad=True)),
        ("adam_clipnorm", o.Adam(learning_rate=0.02, clipnorm=1.0)),
        ("adam_clipvalue", o.Adam(learning_rate=0.02, clipvalue=0.5)),
        ("adam_global_clipnorm", o.Adam(learning_rate=0.02, global_clipnorm=1.0)),
        ("adamw", o.AdamW()),
        ("adamw_weight_decay", o.AdamW(learning_rate=0.02, weight_decay=0.04)),
        ("adagrad", o.Adagrad()),
        ("adagrad_arguments", o.Adagrad(0.05, 0.2, epsilon=1e-4)),
        ("rmsprop", o.RMSprop()),
        ("rmsprop_momentum", o.RMSprop(learning_rate=0.01, momentum=0.9)),
        ("rmsprop_centered", o.RMSprop(learning_rate=0.01, centered=True)),
        (
            "rmsprop_centered_momentum",
            o.RMSprop(learning_rate=0.01, momentum=0.9, centered=True),
        ),
        ("ftrl", o.Ftrl()),
        (
            "ftrl_l1_l2",
            o.Ftrl(
                learning_rate=0.1,
                l1_regularization_strength=0.05,
                l2_regularization_strength=0.02,
            ),
        ),
        (
            "ftrl_l2_shrinkage_beta",
            o.Ftrl(
                learning_rate=0.1,
                learning_rate_power=-0.7,
                l2_shrinkage_regularization_strength=0.01,
                beta=0.2,
            ),
        ),
        ("lion", o.Lion()),
        ("nadam", o.Nadam()),
        (
            "nadam_arguments",
            o.Nadam(0.02, beta_1=0.8, beta_2=0.95, epsilon=1e-4, weight_decay=0.05),
        ),
        ("adamax", o.Adamax()),
        (
            "adamax_arguments",
            o.Adamax(0.02, beta_1=0.8, beta_2=0.95, epsilon=1e-4, weight_decay=0.05),
        ),
        ("adadelta", o.Adadelta()),
        ("adadelta_arguments", o.Adadelta(0.5, rho=0.8, epsilon=1e-4, weight_decay=0.05)),
        ("lamb", o.Lamb()),
        (
            "lamb_arguments",
            o.Lamb(0.02, beta_1=0.8, beta_2=0.95, epsilon=1e-4, weight_decay=0.05),
        ),
        ("adam_accumulation", o.Adam(0.02, gradient_accumulation_steps=3)),
        ("nadam_accumulation", o.Nadam(0.02, gradient_accumulation_steps=4)),
        (
            "adamw_accumulation_clipnorm",
            o.AdamW(0.02, clipnorm=0.5, gradient_accumulation_steps=3),
        ),
        (
            "adam_accumulation_clipvalue",
            o.Adam(0.02, clipvalue=0.25, gradient_accumulation_steps=3),
        ),
        (
            "sgd_accumulation_global_clipnorm",
            o.SGD(0.1, momentum=0.9, global_clipnorm=0.5, gradient_accumulation_steps=2),
        ),
        ("sgd_ema", o.SGD(0.1, momentum=0.9, use_ema=True, ema_momentum=0.8)),
        (
            "adam_ema_overwrite",
            o.Adam(0.02, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=5),
        ),
        (
            "rmsprop_accumulation_ema",
            o.RMSprop(
                0.02,
                momentum=0.9,
                centered=True,
                use_ema=True,
                ema_momentum=0.9,
                ema_overwrite_frequency=2,
                gradient_accumulation_steps=3,
            ),
        ),
        (
            "lamb_accumulation_ema",
            o.Lamb(0.02, use_ema=True, gradient_accumulation_steps=2),
        ),
        (
            "sgd_schedule_accumulation",
            o.SGD(
                o.schedules.ExponentialDecay(0.1, 5, 0.7),
                gradient_accumulation_steps=3,
            ),
        ),
        ("adafactor", o.Adafactor()),
        (
            "adafactor_arguments",
            o.Adafactor(
                0.5,
                beta_2_decay=-0.6,
                epsilon_1=1e-4,
                epsilon_2=0.01,
                clip_threshold=0.5,
                relative_step=False,
                weight_decay=0.05,
            ),
        ),
        ("adafactor_accumulation_ema",
         o.Adafactor(0.1, use_ema=True, gradient_accumulation_steps=2)),
        ("schedule_free_adamw", o.ScheduleFreeAdamW()),
        (
            "schedule_free_adamw_arguments",
            o.ScheduleFreeAdamW(0.02, beta_1=0.8, beta_2=0.95, epsilon=1e-4, warmup_steps=6,
                                weight_decay=0.05),
        ),
        (
            "schedule_free_adamw_accumulation_ema",
            o.ScheduleFreeAdamW(0.02, use_ema=True, gradient_accumulation_steps=3),
        ),
        ("muon", o.Muon()),
        (
            "muon_arguments",
            o.Muon(
                0.02,
                adam_beta_1=0.8,
                adam_beta_2=0.95,
                adam_weight_decay=0.03,
                epsilon=1e-4,
                weight_decay=0.05,
                muon_a=3.0,
                muon_b=-4.0,
                muon_c=1.9,
                adam_lr_ratio=0.5,
                momentum=0.8,
                ns_steps=3,
                nesterov=False,
                rms_rate=None,
            ),
        ),
        ("muon_of_no_matrix", o.Muon(0.02, exclude_layers=["^var"], weight_decay=None)),
        ("lion_arguments", o.Lion(0.02, beta_1=0.7, beta_2=0.9, weight_decay=0.05)),
    ]


def _schedules():
    """SGD under each schedule, with its turning points inside the 20 steps."""
    s = keras.optimizers.schedules
    schedules = [
        ("exponential_decay", s.ExponentialDecay(0.1, 5, 0.7)),
        ("exponential_decay_staircase", s.ExponentialDecay(0.1, 5, 0.7, staircase=True)),
        ("cosine_decay", s.CosineDecay(0.1, 15, alpha=0.1)),
        ("cosine_decay_restarts", s.CosineDecayRestarts(0.1, 3)),
        ("cosine_decay_restarts_equal",
         s.CosineDecayRestarts(0.1, 4, t_mul=1.0, m_mul=0.5, alpha=0.1)),
        ("cosine_decay_restarts_longer",
         s.CosineDecayRestarts(0.1, 2, t_mul=1.5, m_mul=0.9, alpha=0.01)),
        ("cosine_decay_warmup", s.CosineDecay(0.01, 10, warmup_target=0.1, warmup_steps=5)),
        ("piecewise_constant_decay", s.PiecewiseConstantDecay([4, 9], [0.1, 0.05, 0.01])),
        ("polynomial_decay", s.PolynomialDecay(0.1, 12, 0.01, power=2.0)),
        ("polynomial_decay_cycle", s.PolynomialDecay(0.1, 6, 0.01, cycle=True)),
        ("inverse_time_decay", s.InverseTimeDecay(0.1, 5, 0.5)),
        ("inverse_time_decay_staircase", s.InverseTimeDecay(0.1, 5, 0.5, staircase=True)),
    ]
    return [
        (f"sgd_{name}", keras.optimizers.SGD(learning_rate=schedule))
        for name, schedule in schedules
    ]


def _run(name, optimizer, rng):
    start = [normal(rng, *shape) for shape in SHAPES]
    gradients = [normal(rng, STEPS, *shape) for shape in SHAPES]
    variables = [keras.Variable(value, name=f"var{i}") for i, value in enumerate(start)]
    optimizer.build(variables)

    after = [[], []]
    rates = []
    for step in range(STEPS):
        rates.append(np.float32(optimizer.learning_rate))
        optimizer.apply([gradient[step] for gradient in gradients], variables)
        for values, variable in zip(after, variables):
            values.append(variable.numpy())

    optimizer.finalize_variable_values(variables)
    return case(
        name,
        keras_config(optimizer),
        {"var0": start[0], "var1": start[1], "grad0": gradients[0], "grad1": gradients[1]},
        {
            "var0": np.stack(after[0]),
            "var1": np.stack(after[1]),
            "learning_rate": np.stack(rates),
            "final0": variables[0].numpy(),
            "final1": variables[1].numpy(),
        },
    )
