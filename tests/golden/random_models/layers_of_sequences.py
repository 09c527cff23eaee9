"""Recurrent layers and attention.

The functions have the form that layers_of_any_rank.py describes.
"""

import keras

L = keras.layers


def _gates(draw, kind):
    arguments = {"activation": draw.of("tanh", "relu", "softsign", "linear"),
                 **draw.weights("kernel", "recurrent")}
    if kind in (L.LSTM, L.LSTMCell, L.GRU, L.GRUCell):
        arguments["recurrent_activation"] = draw.of("sigmoid", "hard_sigmoid", "tanh")
    if kind in (L.LSTM, L.LSTMCell):
        # Muster adds 1 only to biases that begin with a constant.
        arguments["unit_forget_bias"] = "bias_initializer" not in arguments
    if kind in (L.GRU, L.GRUCell):
        arguments["reset_after"] = draw.chance(0.5)
    return arguments


def _recurrent(draw, **more):
    kind = draw.of(L.SimpleRNN, L.LSTM, L.GRU)
    return kind(draw.integer(1, 3), **_gates(draw, kind), **more)


def recurrent(draw, x):
    return _recurrent(draw, return_sequences=draw.chance(0.6), go_backwards=draw.chance(0.2))


def recurrent_with_states(draw, x):
    """Concatenates the outputs and states, or passes the states to another layer."""
    if draw.has_masks:
        raise ValueError("Muster applies the mask of x; Keras does not with initial states")
    kind = draw.of(L.SimpleRNN, L.LSTM, L.GRU)
    units = draw.integer(1, 3)
    first = kind(units, return_state=True, **_gates(draw, kind))
    second = kind(units, return_sequences=draw.chance(0.5), **_gates(draw, kind))
    if draw.chance(0.5):
        return lambda y: L.Concatenate()(first(y))
    return lambda y: second(y, initial_state=first(y)[1:])


def cell(draw, x):
    def one():
        kind = draw.of(L.SimpleRNNCell, L.LSTMCell, L.GRUCell)
        return kind(draw.integer(1, 3), **_gates(draw, kind))
    cells = one() if draw.chance(0.5) else [one(), one()]
    return L.RNN(cells, return_sequences=draw.chance(0.5), go_backwards=draw.chance(0.2))


def bidirectional(draw, x):
    sequences = draw.chance(0.5)
    forward = _recurrent(draw, return_sequences=sequences)
    more = {}
    if draw.chance(0.3):
        kind = draw.of(L.SimpleRNN, L.LSTM, L.GRU)
        more["backward_layer"] = kind(forward.units, return_sequences=sequences,
                                      go_backwards=True, **_gates(draw, kind))
    return L.Bidirectional(forward, merge_mode=draw.of("concat", "sum", "mul", "ave"), **more)


def masking(draw, x):
    draw.has_masks = True
    return L.Masking(mask_value=draw.of(0.0, 0.5))


def multi_head_attention(draw, x):
    layer = L.MultiHeadAttention(
        draw.integer(1, 2), draw.integer(1, 3), dropout=0.0,
        **draw.some({"value_dim": lambda: draw.integer(1, 3), "use_bias": lambda: False,
                     "output_shape": lambda: draw.integer(1, 4),
                     "kernel_initializer": draw.initializer,
                     "kernel_regularizer": draw.regularizer}))
    causal = draw.chance(0.4)
    return lambda y: layer(y, y, use_causal_mask=causal)


def grouped_attention(draw, x):
    layer = L.GroupQueryAttention(draw.integer(1, 3), 2, draw.of(1, 2), use_bias=draw.chance(0.7))
    causal = draw.chance(0.4)
    return lambda y: layer(y, y, use_causal_mask=causal)


def dot_attention(draw, x):
    kind = draw.of(L.Attention, L.AdditiveAttention)
    more = {"score_mode": draw.of("dot", "concat")} if kind is L.Attention else {}
    layer = kind(use_scale=draw.chance(0.5), **more)
    causal = draw.chance(0.4)
    return lambda y: layer([y, y], use_causal_mask=causal)


def residual_block(draw, x):
    """A block of a transformer, with normalization before or after."""
    size = x.shape[-1]
    attention = L.MultiHeadAttention(2, 2, dropout=0.0)
    norms = [L.LayerNormalization(epsilon=1e-3), L.LayerNormalization(epsilon=1e-3)]
    inner = keras.Sequential([L.Dense(4, activation=draw.activation()), L.Dense(size)])
    before = draw.chance(0.5)

    def block(y):
        if before:
            z = norms[0](y)
            y = L.Add()([y, attention(z, z)])
            return L.Add()([y, inner(norms[1](y))])
        y = norms[0](L.Add()([y, attention(y, y)]))
        return norms[1](L.Add()([y, inner(y)]))
    return block


SEQUENCES = (
    recurrent, recurrent, recurrent_with_states, cell, bidirectional, bidirectional, masking,
    multi_head_attention, grouped_attention, dot_attention, residual_block,
)
