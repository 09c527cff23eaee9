"""Inputs of models with their data, and layers that convert ids and words to numbers."""

import keras
import numpy as np

L = keras.layers
BATCH = 4


def numbers(draw, batches):
    """Features, sequences, images or volumes."""
    rank = draw.of(1, 1, 2, 2, 3, 3, 4)
    shape = {1: lambda: (draw.integer(2, 6),),
             2: lambda: draw.integers(2, 2, 6),
             3: lambda: (*draw.integers(2, 4, 6), draw.integer(1, 3)),
             4: lambda: (*draw.integers(3, 2, 4), draw.integer(1, 2))}[rank]()
    x = keras.Input(shape)
    return x, x, draw.normal(batches * BATCH, *shape)


def _ids(draw, batches, length):
    """Returns ids of which each occurs once in every batch.

    Muster updates only the rows that occur. If a row occurs twice, Keras on TensorFlow clips and
    squares its two gradients before they are summed.
    """
    rows = [draw.rng.permutation(BATCH * length) for _ in range(batches)]
    return np.concatenate(rows).reshape(-1, length).astype(np.int32)


def embedded(draw, batches):
    length = draw.integer(2, 4)
    ids = keras.Input((length,), dtype="int32")
    masks = draw.chance(0.6)
    draw.has_masks |= masks
    layer = L.Embedding(BATCH * length, draw.integer(2, 4), mask_zero=masks,
                        **draw.some({"embeddings_initializer": draw.initializer,
                                     "embeddings_regularizer": draw.regularizer}, 0.3))
    return ids, layer(ids), _ids(draw, batches, length)


def padded(draw, batches):
    """Sequences whose time steps of zeros are masked."""
    draw.has_masks = True
    length, size = draw.integers(2, 2, 5)
    x = keras.Input((length, size))
    data = draw.normal(batches * BATCH, length, size)
    data[:, 1:][draw.rng.random((batches * BATCH, length - 1)) < 0.4] = 0
    return x, L.Masking()(x), data


def reversible(draw, batches):
    """Ids whose embedding also computes the outputs."""
    length = 2
    ids = keras.Input((length,), dtype="int32")
    layer = L.ReversibleEmbedding(BATCH * length, 4, tie_weights=draw.chance(0.6))
    middle = L.Dense(4, activation=draw.activation())
    return ids, layer(middle(layer(ids)), reverse=True), _ids(draw, batches, length)


def _numbers(draw, encoded):
    """A dense layer. Keras computes with integers where Muster computes with floats, and drops
    fractions."""
    return L.Dense(draw.integer(2, 4), activation=draw.activation())(encoded)


def categories(draw, batches):
    """Integers that are looked up, hashed or encoded."""
    width = draw.integer(1, 3)
    ids = keras.Input((width,), dtype="int64")
    mode = draw.of("multi_hot", "count")
    layer = draw.of(
        lambda: L.CategoryEncoding(6, output_mode=mode),
        lambda: L.IntegerLookup(vocabulary=[1, 3, 5], output_mode=mode),
        lambda: L.Hashing(5, output_mode=mode),
    )()
    data = draw.rng.integers(0, 6, (batches * BATCH, width))
    return ids, _numbers(draw, layer(ids)), data


def bins(draw, batches):
    width = draw.integer(1, 3)
    x = keras.Input((width,))
    layer = L.Discretization(bin_boundaries=[-0.5, 0.1, 0.8],
                             output_mode=draw.of("multi_hot", "count"))
    return x, _numbers(draw, layer(x)), draw.normal(batches * BATCH, width)


def words(draw, batches):
    word = keras.Input((2,), dtype="string")
    mode = draw.of("multi_hot", "count")
    layer = draw.of(
        lambda: L.StringLookup(vocabulary=["red", "green"], output_mode=mode),
        lambda: L.Hashing(5, output_mode=mode),
    )()
    known = np.array(["red", "green", "blue", ""], object)
    data = known[draw.rng.integers(0, 4, (batches * BATCH, 2))]
    return word, _numbers(draw, layer(word)), data


def texts(draw, batches):
    text = keras.Input((), dtype="string")
    layer = L.TextVectorization(vocabulary=["the", "cat", "sat"],
                                output_mode=draw.of("multi_hot", "count"))
    known = np.array(["the cat sat", "The dog", "cat, cat", ""], object)
    data = known[draw.rng.integers(0, 4, batches * BATCH)]
    return text, _numbers(draw, layer(text)), data


ANY = ((numbers,) * 10 + (embedded,) * 4 + (padded,) * 3
       + (reversible, categories, bins, words, texts))
