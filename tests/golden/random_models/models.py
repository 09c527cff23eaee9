"""Random models: their layers in random arrangements, from inputs to outputs."""

import dataclasses

import keras
import numpy as np

from random_models import compile_settings as settings
from random_models import inputs, layers_of_any_rank, layers_of_sequences, layers_of_space

L = keras.layers
# Maximum number of elements of an example, so that files stay small.
ELEMENTS_MAX = 120
ATTEMPTS_MAX = 50


@dataclasses.dataclass
class Made:
    """A compiled model, and data for it."""

    model: keras.Model
    x: list
    y: list
    weights: list  # One per output, or empty.
    has_masks: bool = False


def _pool(rank):
    pool = layers_of_any_rank.ANY_RANK
    if rank == 2:
        return pool + layers_of_any_rank.RANK_2 * 3
    if rank > 5:
        return pool
    pool += layers_of_space.SPACE * (1 if rank == 3 else 2)
    if rank == 3:
        return pool + layers_of_sequences.SEQUENCES * 2
    if rank == 4:
        return pool + layers_of_space.IMAGES * 2
    return tuple(one for one in pool + layers_of_space.VOLUMES * 2
                 if one not in layers_of_space.WITHOUT_3D)


def fits(tensor):
    shape = tensor.shape[1:]
    return (all(isinstance(size, int) and size > 0 for size in shape)
            and 1 <= len(shape) <= 5 and int(np.prod(shape)) <= ELEMENTS_MAX)


def step(draw, x, only_layers=False):
    """Draws a layer or function that takes x. Returns it with its output."""
    for _ in range(ATTEMPTS_MAX):
        try:
            made = draw.of(*_pool(len(x.shape)))(draw, x)
            if only_layers and not isinstance(made, keras.Layer):
                continue
            y = made(x)
        except (ValueError, ZeroDivisionError):
            continue
        if fits(y):
            return made, y
    return None, x


def grow(draw, x, count):
    for _ in range(count):
        _, x = step(draw, x)
    return x


def to_vector(draw, x):
    rank = len(x.shape)
    if rank == 2:
        return x
    ways = [lambda: L.Flatten()]
    if rank <= 5:
        ways.append(lambda: getattr(L, f"GlobalAveragePooling{rank - 2}D")())
    if rank == 3:
        ways.append(lambda: L.GRU(2))
        ways.append(lambda: L.Bidirectional(L.LSTM(2)))
    return draw.of(*ways)()(x)


def _sequential(draw, shape, count):
    """Draws a sequence of layers for inputs of this shape."""
    x = keras.Input(shape)
    stack = []
    for _ in range(count):
        layer, x = step(draw, x, only_layers=True)
        if layer is not None:
            stack.append(layer)
    return keras.Sequential([keras.Input(shape), *stack]) if stack else None


def _inner_model(draw, shape):
    """Draws a model that becomes a layer of another model."""
    if draw.chance(0.5):
        return _sequential(draw, shape, draw.integer(1, 3))
    x = keras.Input(shape)
    y = grow(draw, x, draw.integer(1, 3))
    return None if y is x else keras.Model(x, y)


def _merged(draw, a, b):
    kind = draw.of(L.Add, L.Subtract, L.Multiply, L.Average, L.Maximum, L.Minimum,
                   L.Concatenate, L.Dot)
    if kind is L.Dot:
        return L.Dot(1, normalize=draw.chance(0.5))([a, b])
    if kind is L.Concatenate:
        return L.Concatenate(axis=draw.integer(1, len(a.shape) - 1))([a, b])
    return kind()([a, b])


def _arranged(draw, roots):
    """Grows a graph from these tensors. Returns the tensors from which to make outputs."""
    tensors = list(roots)
    for _ in range(draw.integer(2, 6)):
        x = draw.of(*tensors[-3:])
        action = draw.of("step", "step", "merge", "share", "nest")
        same = [other for other in tensors if other is not x and other.shape == x.shape]
        try:
            if action == "merge" and same:
                new = [_merged(draw, x, draw.of(*same))]
            elif action == "share" and same:
                layer, y = step(draw, x)
                new = [] if layer is None else [y, layer(draw.of(*same))]
            elif action == "nest":
                model = _inner_model(draw, x.shape[1:])
                new = [] if model is None else [model(y) for y in [x, *same[:1]]]
            else:
                new = [step(draw, x)[1]]
        except ValueError:
            continue
        tensors += [y for y in new if fits(y)]
    return tensors


def _functional(draw, batches):
    count = draw.of(1, 1, 2, 3)
    given = [draw.of(*inputs.ANY)(draw, batches) for _ in range(count)]
    tensors = _arranged(draw, [root for _, root, _ in given])
    ends = [to_vector(draw, tensors[-1])]
    for _, root, _ in given:
        if draw.chance(0.7):
            ends.append(to_vector(draw, grow(draw, root, draw.integer(0, 2))))
    joined = ends[0] if len(ends) == 1 else L.Concatenate()(ends)
    return given, joined, tensors


def _head(draw, x, task, logits_and_activation):
    size = 1 if task == settings.BINARY and draw.chance(0.4) else draw.integer(2, 4)
    return L.Dense(size, activation=logits_and_activation[0])(x)


def _outputs(draw, joined, tensors):
    """Returns outputs with the settings to compile them: {tensor, task, logits}."""
    outputs = []
    for i in range(draw.of(1, 1, 1, 2, 3)):
        task = draw.of(*settings.TASKS)
        activation, logits = settings.activation_of(draw, task)
        x = joined
        sequences = [t for t in tensors if len(t.shape) == 3]
        if i > 0 and sequences and draw.chance(0.5):
            x = draw.of(*sequences)
        elif i > 0:
            x = to_vector(draw, draw.of(*tensors))
        outputs.append((_head(draw, x, task, (activation, logits)), task, logits))
    return outputs


def _compile(draw, model, outputs, is_robust):
    losses = [settings.loss(draw, task, logits, len(outputs) == 1)
              for _, task, logits in outputs]
    metrics = [settings.metrics(draw, task, logits, tensor.shape[1:])
               for tensor, task, logits in outputs]
    more = {}
    if len(outputs) > 1 and draw.chance(0.6):
        more["loss_weights"] = [draw.number(0.2, 2) for _ in outputs]
    if len(outputs) == 1:
        losses, metrics = losses[0], metrics[0]
    elif draw.chance(0.5):
        names = model.output_names
        losses, metrics = dict(zip(names, losses)), dict(zip(names, metrics))
        if more:
            more["loss_weights"] = dict(zip(names, more["loss_weights"]))
    model.compile(settings.optimizer(draw, is_robust), loss=losses, metrics=metrics, **more)


def _chain(draw, batches):
    """Draws a Sequential model, whose last layer is the output."""
    x, _, data = inputs.numbers(draw, batches)
    stack = _sequential(draw, x.shape[1:], draw.integer(1, 5))
    layers = list(stack.layers) if stack else []
    if len(stack.outputs[0].shape if stack else x.shape) > 2:
        layers.append(L.Flatten())
    task = draw.of(*settings.TASKS)
    activation, logits = settings.activation_of(draw, task)
    size = 1 if task == settings.BINARY and draw.chance(0.4) else draw.integer(2, 4)
    model = keras.Sequential([keras.Input(x.shape[1:]), *layers,
                              L.Dense(size, activation=activation)])
    return model, [data], [(model.outputs[0], task, logits)]


def _freeze(draw, model):
    for layer in model.layers:
        if layer.weights and draw.chance(0.08):
            layer.trainable = False


def make(draw, batches, is_robust):
    """Draws a model with data for this many batches.

    If `is_robust`, the optimizer does not divide by the size of gradients.
    """
    if draw.chance(0.3):
        model, x, outputs = _chain(draw, batches)
    else:
        given, joined, tensors = _functional(draw, batches)
        outputs = _outputs(draw, joined, tensors)
        model = keras.Model([one for one, _, _ in given], [tensor for tensor, _, _ in outputs])
        x = [data for _, _, data in given]
    _freeze(draw, model)
    _compile(draw, model, outputs, is_robust)
    count = batches * inputs.BATCH
    y = [settings.labels(draw, task, count, tensor.shape[1:]) for tensor, task, _ in outputs]
    weights = []
    if draw.chance(0.2):
        weights = [(np.abs(draw.normal(count)) + np.float32(0.25)) for _ in y]
    return Made(model, x, y, weights, draw.has_masks)
