"""preprocessing_layers.json: layers of strings and categories.

config:  job, the layer in the text format of job files.
inputs:  x, or x_<i> of a layer with several inputs; data_<i>, the batches to which the layer is
         adapted first, if there are any.
outputs: y, and the vocabulary or the bin_boundaries that the layer then has, if it has them.
"""

import keras
import numpy as np

from cases.golden_format import case, seeded

L = keras.layers

WORDS = np.array([["red", "green"], ["", "blue"], ["green", "green"], ["[UNK]", "violet"]])
IDS = np.array([[12, 36], [0, 1138], [36, 36], [-1, -7]])
LONG = "the quick brown fox jumps over the lazy dog " * 4
MANY = np.array([["a"], [""], ["red"], ["12345678"], ["x" * 17], [LONG[:40]], [LONG[:100]],
                 ["Zürich"]])
NUMBERS = np.array([[-1.5, 0.0], [0.25, 3.0], [7.0, 2.5], [float("inf"), float("nan")]],
                   np.float32)
TEXTS = np.array(["The CAT; sat.", "on the\tmat", "", "a dog's day, the day the dog sat on it",
                  "Überraschung! für den Hund"])


def cases():
    yield from _string_lookups()
    yield from _integer_lookups()
    yield from _hashing()
    yield from _crossings()
    yield from _numbers(seeded(970))
    yield from _texts()


def _string_lookups():
    vocabulary = ["red", "green", "blue"]
    job = 'vocabulary: ["red", "green", "blue"]'
    for text, arguments in (
        ("", {}),
        ("num_oov_indices: 3", {"num_oov_indices": 3}),
        ("num_oov_indices: 3 salt: [5, 7]", {"num_oov_indices": 3, "salt": [5, 7]}),
        ('mask_token: ""', {"mask_token": ""}),
        ('mask_token: "" output_mode: MULTI_HOT', {"mask_token": "", "output_mode": "multi_hot"}),
        ("output_mode: ONE_HOT", {"output_mode": "one_hot"}),
        ("output_mode: COUNT max_tokens: 9 pad_to_max_tokens: true",
         {"output_mode": "count", "max_tokens": 9, "pad_to_max_tokens": True}),
        ("output_mode: TF_IDF idf_weights: [0.25, 0.75, 0.6]",
         {"output_mode": "tf_idf", "idf_weights": [0.25, 0.75, 0.6]}),
    ):
        layer = L.StringLookup(vocabulary=vocabulary, **arguments)
        yield _run(f"string_lookup {{ {job} {text} }}", layer, WORDS)
        if "ONE_HOT" in text:
            yield _run(f"string_lookup {{ {job} {text} }}", layer, WORDS[:, :1])
    special = L.StringLookup(vocabulary=["", "[UNK]", "red"], mask_token="")
    yield _run('string_lookup { vocabulary: ["", "[UNK]", "red"] mask_token: "" }', special, WORDS)
    inverse = L.StringLookup(vocabulary=vocabulary, invert=True, mask_token="-")
    yield _run(f'string_lookup {{ {job} invert: true mask_token: "-" }}', inverse,
               np.array([[0, 1], [2, 4], [5, -3]]))
    batches = [np.array([["b", "c"], ["a", "b"]]), np.array([["", "d"], ["[UNK]", "d"]])]
    x = np.array([["a", "b"], ["d", "c"], ["", "e"]])
    for text, arguments in (
        ("", {}),
        ("max_tokens: 4", {"max_tokens": 4}),
        ('mask_token: ""', {"mask_token": ""}),
        ("output_mode: TF_IDF", {"output_mode": "tf_idf"}),
        ("output_mode: TF_IDF max_tokens: 8 pad_to_max_tokens: true",
         {"output_mode": "tf_idf", "max_tokens": 8, "pad_to_max_tokens": True}),
    ):
        yield _adapted(f"string_lookup {{ {text} }}", L.StringLookup(**arguments), x, batches)


def _integer_lookups():
    vocabulary = [12, 36, 1138]
    job = "vocabulary: [12, 36, 1138]"
    for text, arguments in (
        ("", {}),
        ("num_oov_indices: 4", {"num_oov_indices": 4}),
        ("num_oov_indices: 4 oov_method: FARMHASH",
         {"num_oov_indices": 4, "oov_method": "farmhash"}),
        ("num_oov_indices: 4 oov_method: FARMHASH salt: 9",
         {"num_oov_indices": 4, "oov_method": "farmhash", "salt": 9}),
        ("mask_token: 0", {"mask_token": 0}),
        ("output_mode: COUNT", {"output_mode": "count"}),
    ):
        layer = L.IntegerLookup(vocabulary=vocabulary, **arguments)
        yield _run(f"integer_lookup {{ {job} {text} }}", layer, IDS)
    yield _run(f"integer_lookup {{ {job} invert: true }}",
               L.IntegerLookup(vocabulary=vocabulary, invert=True), np.array([[0, 1], [3, 9]]))
    yield _adapted("integer_lookup { max_tokens: 5 }", L.IntegerLookup(max_tokens=5), IDS,
                   [np.array([[5, 7], [-1, 7]]), np.array([[36, 5], [12, 0]])])


def _hashing():
    yield _run("hashing { num_bins: 1000003 }", L.Hashing(1000003), MANY)
    yield _run("hashing { num_bins: 1000003 salt: [1, 2] }", L.Hashing(1000003, salt=[1, 2]), MANY)
    yield _run("hashing { num_bins: 10 salt: 133 }", L.Hashing(10, salt=133), MANY)
    yield _run('hashing { num_bins: 3 mask_value: "" }', L.Hashing(3, mask_value=""), MANY)
    yield _run("hashing { num_bins: 1000 }", L.Hashing(1000), IDS)
    yield _run("hashing { num_bins: 4 output_mode: ONE_HOT }",
               L.Hashing(4, output_mode="one_hot"), MANY)
    yield _run("hashing { num_bins: 4 output_mode: MULTI_HOT }",
               L.Hashing(4, output_mode="multi_hot"), WORDS)


def _crossings():
    words = np.array(["red", "", "green", "red"])
    large = np.array([5, -7, 2**62, 0])
    small = np.int32([1, 2, -3, 1])
    for job, layer, x in (
        ("num_bins: 1000003", L.HashedCrossing(1000003), (words, large)),
        ("num_bins: 1000003", L.HashedCrossing(1000003), (small, words, large)),
        ("num_bins: 5", L.HashedCrossing(5), (words[:, None], small[:, None])),
        ("num_bins: 5 output_mode: ONE_HOT", L.HashedCrossing(5, output_mode="one_hot"),
         (words, small)),
        ("num_bins: 4 output_mode: ONE_HOT", L.HashedCrossing(4, output_mode="one_hot"),
         (words[:, None], large[:, None])),
    ):
        inputs = {f"x_{i}": value for i, value in enumerate(x)}
        job = f"hashed_crossing {{ {job} }}"
        yield case(f"{job} of {len(x)}", {"job": job}, inputs, {"y": _output(layer, x)})


def _numbers(rng):
    boundaries = "bin_boundaries: [0, 1, 2.5]"
    for mode in ("int", "one_hot", "multi_hot", "count"):
        layer = L.Discretization(bin_boundaries=[0.0, 1.0, 2.5], output_mode=mode)
        job = f"discretization {{ {boundaries} output_mode: {mode.upper()} }}"
        yield _run(job, layer, NUMBERS[:3])
    x = rng.normal(size=(8, 1)).astype(np.float32)
    for bins, epsilon, sizes in ((4, 0.01, (50,)), (5, 0.01, (300, 170, 33)), (3, 0.2, (9, 40, 2)),
                                 (4, 0.01, (2,))):
        batches = [rng.normal(size=(size, 1)).astype(np.float32) for size in sizes]
        yield _adapted(f"discretization {{ num_bins: {bins} epsilon: {epsilon} }}",
                       L.Discretization(num_bins=bins, epsilon=epsilon), x, batches)
    indices = np.array([[0, 3], [2, 2], [1, 0]])
    for mode in ("one_hot", "multi_hot", "count"):
        job = f"category_encoding {{ num_tokens: 4 output_mode: {mode.upper()} }}"
        yield _run(job, L.CategoryEncoding(4, output_mode=mode), indices)
        if mode != "count":
            yield _run(job, L.CategoryEncoding(4, output_mode=mode), indices[:, :1])


def _texts():
    vocabulary = ["the", "sat", "day", "dog", "on the", "cat"]
    job = 'vocabulary: ["the", "sat", "day", "dog", "on the", "cat"]'
    for text, arguments in (
        ("output_sequence_length: 4", {"output_sequence_length": 4}),
        ("output_sequence_length: 4 standardize: LOWER",
         {"output_sequence_length": 4, "standardize": "lower"}),
        ("output_sequence_length: 4 standardize: NONE",
         {"output_sequence_length": 4, "standardize": None}),
        ("output_sequence_length: 9 ngrams: [1, 2]", {"output_sequence_length": 9, "ngrams": 2}),
        ("output_mode: MULTI_HOT", {"output_mode": "multi_hot"}),
        ("output_mode: COUNT ngrams: 2", {"output_mode": "count", "ngrams": (2,)}),
        ("output_mode: TF_IDF idf_weights: [1, 2, 3, 4, 5, 6]",
         {"output_mode": "tf_idf", "idf_weights": [1.0, 2, 3, 4, 5, 6]}),
    ):
        layer = L.TextVectorization(vocabulary=vocabulary, **arguments)
        yield _run(f"text_vectorization {{ {job} {text} }}", layer, TEXTS)
    characters = L.TextVectorization(split="character", vocabulary=["a", "ü", " "],
                                     output_sequence_length=12)
    yield _run('text_vectorization { split: CHARACTER vocabulary: ["a", "ü", " "]'
               " output_sequence_length: 12 }", characters, TEXTS)
    words = L.TextVectorization(split=None, standardize=None, vocabulary=["red", "green"])
    yield _run('text_vectorization { split: NONE standardize: NONE vocabulary: ["red", "green"] }',
               words, WORDS)
    for text, arguments in (
        ("output_sequence_length: 5 max_tokens: 6", {"output_sequence_length": 5, "max_tokens": 6}),
        ("output_mode: TF_IDF", {"output_mode": "tf_idf"}),
    ):
        yield _adapted(f"text_vectorization {{ {text} }}", L.TextVectorization(**arguments),
                       TEXTS, [TEXTS[:3], TEXTS[3:]])


def _state(layer):
    if isinstance(layer, L.Discretization):
        return {"bin_boundaries": np.array(layer.bin_boundaries, np.float32)}
    if hasattr(layer, "get_vocabulary"):
        tokens = np.array(layer.get_vocabulary(include_special_tokens=False))
        return {"vocabulary": tokens}
    return {}


def _output(layer, x):
    y = np.asarray(layer(x))
    # Eagerly, some vectors are integers; in a model they are floats.
    is_index = getattr(layer, "output_mode", getattr(layer, "_output_mode", None)) == "int"
    return y if is_index else y.astype(np.float32)


def _run(job, layer, x):
    return case(job, {"job": job}, {"x": x}, {"y": _output(layer, x), **_state(layer)})


def _adapted(job, layer, x, batches):
    # Batches from a generator are separate batches; a list would be one batch.
    layer.adapt(batch for batch in batches)
    data = {f"data_{i}": batch for i, batch in enumerate(batches)}
    outputs = {"y": _output(layer, x), **_state(layer)}
    return case(f"{job} adapted", {"job": job}, {"x": x, **data}, outputs)
