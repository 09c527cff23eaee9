"""keras_string_files.json and ../keras_files/*.keras: models of strings that Keras saved.

The format and the helpers are those of keras_files.py.
"""

import keras
import numpy as np
from keras import layers

from cases import keras_files
from cases.golden_format import normal, seeded

BATCH = keras_files.BATCH
WORDS = np.array([["red"], ["green"], ["blue"], ["violet"], ["red"], [""]])
TEXTS = np.array(["the cat sat", "on the mat", "a dog", "", "the dog sat", "cats, dogs!"])
LABELS = np.arange(BATCH, dtype=np.int32) % 2


def _compiled(inputs, x):
    made = keras.Model(inputs, layers.Dense(2, activation="softmax")(x))
    made.compile("sgd", "sparse_categorical_crossentropy")
    return made


def string_lookup_given(rng):
    word = keras.Input((1,), dtype="string", name="word")
    indices = layers.StringLookup(vocabulary=["red", "green"], mask_token="",
                                  num_oov_indices=2)(word)
    return _compiled(word, layers.Flatten()(layers.Embedding(5, 3)(indices))), [WORDS], [LABELS]


def string_lookup_adapted(rng):
    lookup = layers.StringLookup(output_mode="multi_hot")
    lookup.adapt(np.array([["red", "green"], ["red", "blue"]]))
    word = keras.Input((1,), dtype="string", name="word")
    return _compiled(word, lookup(word)), [WORDS], [LABELS]


def integer_lookup_adapted(rng):
    lookup = layers.IntegerLookup(output_mode="tf_idf")
    lookup.adapt(np.array([[12, 36], [36, 7], [36, 36]]))
    ids = keras.Input((2,), dtype="int64", name="ids")
    x = np.array([[12, 36], [7, 7], [0, 1], [36, 36], [5, 12], [7, 36]])
    return _compiled(ids, lookup(ids)), [x], [LABELS]


def text_tf_idf_adapted(rng):
    text = keras.Input((), dtype="string", name="text")
    vectors = layers.TextVectorization(output_mode="tf_idf", ngrams=2)
    vectors.adapt(TEXTS)
    return _compiled(text, vectors(text)), [TEXTS], [LABELS]


def text_sequences(rng):
    text = keras.Input((1,), dtype="string", name="text")
    vectors = layers.TextVectorization(output_sequence_length=4, max_tokens=8)
    vectors.adapt(TEXTS)
    x = layers.Flatten()(layers.Embedding(8, 3)(vectors(text)))
    return _compiled(text, x), [TEXTS.reshape(-1, 1)], [LABELS]


def hashing_and_bins(rng):
    word = keras.Input((1,), dtype="string", name="word")
    number = keras.Input((1,), name="number")
    bins = layers.Discretization(num_bins=3)
    bins.adapt(normal(rng, 40, 1))
    x = layers.Concatenate()([
        layers.Hashing(4, output_mode="one_hot", salt=3)(word),
        layers.CategoryEncoding(3, output_mode="one_hot")(bins(number)),
        layers.Flatten()(layers.Embedding(7, 2)(layers.Hashing(7, mask_value="")(word)))])
    return _compiled([word, number], x), [WORDS, normal(rng, BATCH, 1)], [LABELS]


MODELS = (string_lookup_given, string_lookup_adapted, integer_lookup_adapted, text_tf_idf_adapted,
          text_sequences, hashing_and_bins)


def cases():
    for number, make in enumerate(MODELS):
        keras.backend.clear_session()
        keras.utils.set_random_seed(860 + number)
        yield keras_files.recorded(make.__name__, *make(seeded(860 + number)))
