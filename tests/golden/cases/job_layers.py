"""job_layers.json: layers in job files and in the config of Keras.

config:  job, the layer in the text format of proto/job_layer.proto; keras, the result of
         keras.saving.serialize_keras_object() for the same layer.
inputs:  x, the layer's weights and a cotangent of y's shape, if the case has numbers.
outputs: y; grad_x and grad_<weight>, the gradients of sum(y * cotangent).

To test a new layer, add its configuration and its numbers here.
"""

import keras
import tensorflow as tf

from cases.golden_format import case, normal, seeded
from cases.layer_record import config_of, run

L = keras.layers


def cases():
    for job, layer in _configurations():
        yield case(job.split()[0], config_of(job, layer), {}, {})
    yield from _group_normalization(seeded(440))
    yield from _plain_layers(seeded(441))
    yield from _convolutions(seeded(442))
    yield from _wrappers(seeded(443))
    yield from _dots(seeded(444))
    yield from _volumes(seeded(445))
    yield from _attentions(seeded(446))
    yield from _changed_volumes(seeded(447))
    yield from _products(seeded(448))


def _preprocessing():
    words = ["red", "green"]
    yield 'string_lookup { max_tokens: 5 }', L.StringLookup(max_tokens=5)
    yield (
        'string_lookup { vocabulary: ["red", "green"] num_oov_indices: 2 mask_token: "-"'
        ' oov_token: "?" salt: [3, 4] output_mode: TF_IDF idf_weights: [0.5, 0.25]'
        " max_tokens: 9 pad_to_max_tokens: true }",
        L.StringLookup(vocabulary=words, num_oov_indices=2, mask_token="-", oov_token="?",
                       salt=[3, 4], output_mode="tf_idf", idf_weights=[0.5, 0.25],
                       max_tokens=9, pad_to_max_tokens=True),
    )
    yield (
        "integer_lookup { vocabulary: [5, 7] mask_token: 0 oov_token: -2 oov_method: FARMHASH"
        " salt: 3 invert: true }",
        L.IntegerLookup(vocabulary=[5, 7], mask_token=0, oov_token=-2, oov_method="farmhash",
                        salt=3, invert=True),
    )
    yield "hashing { num_bins: 7 }", L.Hashing(7)
    yield (
        'hashing { num_bins: 7 mask_value: "" salt: [1, 2] output_mode: COUNT }',
        L.Hashing(7, mask_value="", salt=[1, 2], output_mode="count"),
    )
    yield "hashed_crossing { num_bins: 7 }", L.HashedCrossing(7)
    yield (
        "hashed_crossing { num_bins: 7 output_mode: ONE_HOT }",
        L.HashedCrossing(7, output_mode="one_hot"),
    )
    yield (
        "discretization { bin_boundaries: [0, 1.5] output_mode: ONE_HOT }",
        L.Discretization(bin_boundaries=[0.0, 1.5], output_mode="one_hot"),
    )
    yield "discretization { num_bins: 4 epsilon: 0.1 }", L.Discretization(num_bins=4, epsilon=0.1)
    yield "category_encoding { num_tokens: 3 }", L.CategoryEncoding(3)
    yield "text_vectorization {}", L.TextVectorization()
    yield (
        'text_vectorization { vocabulary: ["red", "green"] standardize: NONE split: CHARACTER'
        " ngrams: [2, 3] output_sequence_length: 6 max_tokens: 9 }",
        L.TextVectorization(vocabulary=words, standardize=None, split="character", ngrams=(2, 3),
                            output_sequence_length=6, max_tokens=9),
    )


def _configurations():
    """Each kind of layer, with a value other than the default for most arguments."""
    yield from _preprocessing()
    image = dict(fill_mode="constant", interpolation="nearest", fill_value=0.5, seed=7)
    image_job = "fill_mode: CONSTANT interpolation: NEAREST fill_value: 0.5 seed: 7"
    yield "flatten {}", L.Flatten()
    yield "dense { units: 3 }", L.Dense(3)
    yield (
        "dense { units: 3 activation: RELU use_bias: false kernel_initializer { he_normal {} }"
        " bias_initializer { constant { value: 0.5 } } kernel_regularizer { l2 { l2: 0.5 } }"
        " bias_regularizer { l1_l2 { l1: 0.25 l2: 0.5 } } }",
        L.Dense(3, activation="relu", use_bias=False, kernel_initializer="he_normal",
                bias_initializer=keras.initializers.Constant(0.5),
                kernel_regularizer=keras.regularizers.L2(0.5),
                bias_regularizer=keras.regularizers.L1L2(0.25, 0.5)),
    )
    yield "dropout { rate: 0.5 seed: 3 }", L.Dropout(0.5, seed=3)
    yield (
        "dropout { rate: 0.25 noise_shape: [-1, 1, 3] }",
        L.Dropout(0.25, noise_shape=(None, 1, 3)),
    )
    yield "activation { function: HARD_SIGMOID }", L.Activation("hard_sigmoid")
    yield (
        "embedding { input_dim: 5 output_dim: 2 mask_zero: true"
        " embeddings_initializer { random_uniform { minval: -0.5 maxval: 0.5 } }"
        " embeddings_regularizer { l1 { l1: 0.5 } } }",
        L.Embedding(5, 2, mask_zero=True,
                    embeddings_initializer=keras.initializers.RandomUniform(-0.5, 0.5),
                    embeddings_regularizer=keras.regularizers.L1(0.5)),
    )
    yield (
        "normalization { mean: [1, 2] variance: [4, 1] invert: true }",
        L.Normalization(mean=[1.0, 2.0], variance=[4.0, 1.0], invert=True),
    )
    yield "conv1d { filters: 2 kernel_size: 3 }", L.Conv1D(2, 3)
    yield (
        "conv2d { filters: 4 kernel_size: [3, 1] strides: 2 padding: SAME groups: 2"
        " activation: TANH kernel_initializer { truncated_normal { stddev: 0.5 } } }",
        L.Conv2D(4, (3, 1), strides=2, padding="same", groups=2, activation="tanh",
                 kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.5)),
    )
    yield (
        "depthwise_conv2d { kernel_size: 3 dilation_rate: [2, 1] depth_multiplier: 2"
        " depthwise_initializer { lecun_uniform {} } }",
        L.DepthwiseConv2D(3, dilation_rate=(2, 1), depth_multiplier=2,
                          depthwise_initializer="lecun_uniform"),
    )
    yield (
        "separable_conv2d { filters: 2 kernel_size: 3"
        " pointwise_initializer { glorot_normal {} } pointwise_regularizer { l2 {} } }",
        L.SeparableConv2D(2, 3, pointwise_initializer="glorot_normal",
                          pointwise_regularizer="l2"),
    )
    yield (
        "batch_normalization { momentum: 0.75 epsilon: 0.5 center: false synchronized: true"
        " moving_mean_initializer { random_normal { mean: 1 stddev: 0.5 } } }",
        L.BatchNormalization(
            momentum=0.75, epsilon=0.5, center=False, synchronized=True,
            moving_mean_initializer=keras.initializers.RandomNormal(1.0, 0.5)),
    )
    yield "attention { dropout: 0.25 seed: 3 }", L.Attention(dropout=0.25, seed=3)
    yield "additive_attention { dropout: 0.5 }", L.AdditiveAttention(dropout=0.5)
    yield (
        "group_query_attention { head_dim: 4 num_query_heads: 6 num_key_value_heads: 3"
        " dropout: 0.1 }",
        L.GroupQueryAttention(4, 6, 3, dropout=0.1),
    )
    yield "conv3d { filters: 2 kernel_size: 3 groups: 2 }", L.Conv3D(2, 3, groups=2)
    yield "max_pooling3d { pool_size: 3 }", L.MaxPooling3D(3)
    yield "average_pooling3d { pool_size: 2 padding: SAME }", L.AveragePooling3D(2, padding="same")
    yield "global_max_pooling3d { keepdims: true }", L.GlobalMaxPooling3D(keepdims=True)
    yield "global_average_pooling3d {}", L.GlobalAveragePooling3D()
    yield "max_pooling2d { pool_size: [3, 2] }", L.MaxPooling2D((3, 2))
    yield (
        "average_pooling2d { pool_size: 3 strides: 1 padding: SAME }",
        L.AveragePooling2D(3, strides=1, padding="same"),
    )
    yield "global_max_pooling2d { keepdims: true }", L.GlobalMaxPooling2D(keepdims=True)
    yield "global_average_pooling2d {}", L.GlobalAveragePooling2D()
    yield "zero_padding2d { padding: [0, 1, 2, 3] }", L.ZeroPadding2D(((0, 1), (2, 3)))
    yield "relu { max_value: 6 negative_slope: 0.5 }", L.ReLU(6.0, negative_slope=0.5)
    yield "leaky_relu { negative_slope: 0.5 }", L.LeakyReLU(negative_slope=0.5)
    yield "prelu { shared_axes: [1, 2] }", L.PReLU(shared_axes=[1, 2])
    for kind in (L.Add, L.Subtract, L.Multiply, L.Average, L.Maximum, L.Minimum):
        yield f"{kind.__name__.lower()} {{}}", kind()
    yield "concatenate { axis: 1 }", L.Concatenate(axis=1)
    yield "reshape { target_shape: [-1, 2] }", L.Reshape((-1, 2))
    yield "permute { dims: [2, 1] }", L.Permute((2, 1))
    yield (
        "layer_normalization { axis: [1, 2] epsilon: 0.5 scale: false }",
        L.LayerNormalization(axis=[1, 2], epsilon=0.5, scale=False),
    )
    yield "rescaling { scale: 0.5 offset: -1 }", L.Rescaling(0.5, -1.0)
    yield (
        "rescaling { scale: [0.5, 2, -1] offset: [1, 0, 3] }",
        L.Rescaling([0.5, 2.0, -1.0], [1.0, 0.0, 3.0]),
    )
    yield (
        "resizing { height: 4 width: 5 interpolation: NEAREST pad_to_aspect_ratio: true }",
        L.Resizing(4, 5, interpolation="nearest", pad_to_aspect_ratio=True),
    )
    yield "random_flip { mode: VERTICAL seed: 7 }", L.RandomFlip("vertical", seed=7)
    yield (
        f"random_rotation {{ factor: 0.25 {image_job} }}", L.RandomRotation(0.25, **image)
    )
    yield (
        f"random_zoom {{ height_factor: [-0.5, 0.25] width_factor: [0, 0.5] {image_job} }}",
        L.RandomZoom((-0.5, 0.25), (0.0, 0.5), **image),
    )
    yield (
        "simple_rnn { units: 2 return_state: true go_backwards: true }",
        L.SimpleRNN(2, return_state=True, go_backwards=True),
    )
    yield (
        "lstm { units: 2 unit_forget_bias: false recurrent_dropout: 0.5"
        " recurrent_initializer { orthogonal { gain: 0.5 } } }",
        L.LSTM(2, unit_forget_bias=False, recurrent_dropout=0.5,
               recurrent_initializer=keras.initializers.Orthogonal(0.5)),
    )
    yield (
        "gru { units: 2 reset_after: false recurrent_activation: HARD_SIGMOID dropout: 0.5 }",
        L.GRU(2, reset_after=False, recurrent_activation="hard_sigmoid", dropout=0.5),
    )
    yield (
        "multi_head_attention { num_heads: 2 key_dim: 3 output_dim: 4 dropout: 0.5 }",
        L.MultiHeadAttention(2, 3, output_shape=4, dropout=0.5),
    )
    yield "group_normalization {}", L.GroupNormalization()
    yield "elu { alpha: 0.5 }", L.ELU(alpha=0.5)
    yield "identity {}", L.Identity()
    yield "masking { mask_value: 0.5 }", L.Masking(mask_value=0.5)
    yield "rms_normalization { axis: 1 epsilon: 0.5 }", L.RMSNormalization(axis=1, epsilon=0.5)
    yield "unit_normalization { axis: [1, 2] }", L.UnitNormalization(axis=[1, 2])
    yield "gaussian_noise { stddev: 0.5 seed: 3 }", L.GaussianNoise(0.5, seed=3)
    yield "gaussian_dropout { rate: 0.5 seed: 3 }", L.GaussianDropout(0.5, seed=3)
    yield "alpha_dropout { rate: 0.5 seed: 3 }", L.AlphaDropout(0.5, seed=3)
    for spatial in (L.SpatialDropout1D, L.SpatialDropout2D, L.SpatialDropout3D):
        kind = spatial.__name__.replace("SpatialDropout", "spatial_dropout").lower()
        yield f"{kind} {{ rate: 0.5 seed: 3 }}", spatial(0.5, seed=3)
    yield "max_pooling1d { pool_size: 3 strides: 1 padding: SAME }", L.MaxPooling1D(
        3, strides=1, padding="same"
    )
    yield "average_pooling1d { pool_size: 3 }", L.AveragePooling1D(3)
    yield "global_max_pooling1d {}", L.GlobalMaxPooling1D()
    yield "global_average_pooling1d { keepdims: true }", L.GlobalAveragePooling1D(keepdims=True)
    yield "repeat_vector { n: 3 }", L.RepeatVector(3)
    yield "up_sampling1d { size: 3 }", L.UpSampling1D(3)
    yield "up_sampling2d { size: [3, 2] }", L.UpSampling2D((3, 2))
    yield "zero_padding1d { padding: [1, 2] }", L.ZeroPadding1D((1, 2))
    yield from _wrapper_configurations()
    yield (
        "conv1d_transpose { filters: 2 kernel_size: 3 strides: 2 padding: SAME"
        " kernel_regularizer { l1 { l1: 0.5 } } }",
        L.Conv1DTranspose(2, 3, strides=2, padding="same",
                          kernel_regularizer=keras.regularizers.L1(0.5)),
    )
    yield (
        "conv2d_transpose { filters: 2 kernel_size: [3, 2] output_padding: [0, 1]"
        " strides: 2 activation: RELU }",
        L.Conv2DTranspose(2, (3, 2), output_padding=(0, 1), strides=2, activation="relu"),
    )
    yield (
        "depthwise_conv1d { kernel_size: 3 depth_multiplier: 2 padding: SAME }",
        L.DepthwiseConv1D(3, depth_multiplier=2, padding="same"),
    )
    yield (
        "separable_conv1d { filters: 2 kernel_size: 3 pointwise_regularizer { l2 {} } }",
        L.SeparableConv1D(2, 3, pointwise_regularizer="l2"),
    )
    yield "dot { axes: [2, 1] normalize: true }", L.Dot((2, 1), normalize=True)
    yield "cropping1d { cropping: [1, 2] }", L.Cropping1D((1, 2))
    yield "cropping2d { cropping: [0, 1, 2, 3] }", L.Cropping2D(((0, 1), (2, 3)))
    yield "cropping3d { cropping: [0, 1, 2] }", L.Cropping3D((0, 1, 2))
    yield (
        "zero_padding3d { padding: [0, 1, 2, 3, 4, 5] }",
        L.ZeroPadding3D(((0, 1), (2, 3), (4, 5))),
    )
    yield "up_sampling3d { size: [3, 2, 1] }", L.UpSampling3D((3, 2, 1))
    yield (
        "conv3d_transpose { filters: 2 kernel_size: [3, 2, 1] output_padding: [1, 0, 1]"
        " strides: 2 activation: RELU }",
        L.Conv3DTranspose(2, (3, 2, 1), output_padding=(1, 0, 1), strides=2,
                          activation="relu"),
    )
    yield "softmax { axis: [1, 2] }", L.Softmax(axis=[1, 2])
    yield (
        'einsum_dense { equation: "abc,cde->abde" output_shape: [-1, 3, 2] bias_axes: "de"'
        " activation: TANH kernel_regularizer { l2 {} } }",
        L.EinsumDense("abc,cde->abde", (None, 3, 2), bias_axes="de", activation="tanh",
                      kernel_regularizer="l2"),
    )
    yield (
        'einsum_dense { equation: "...x,xy->...y" output_shape: 4 }',
        L.EinsumDense("...x,xy->...y", 4),
    )


def _wrapper_configurations():
    # Inner layers are named, because Keras numbers names across the process.
    dense = L.Dense(3, activation="relu", name="dense")
    yield (
        'time_distributed { layer { name: "dense" dense { units: 3 activation: RELU } } }',
        L.TimeDistributed(dense),
    )
    yield (
        'bidirectional { layer { name: "lstm" lstm { units: 2 return_sequences: true } } }',
        L.Bidirectional(L.LSTM(2, return_sequences=True, name="lstm")),
    )
    yield (
        'bidirectional { merge_mode: NONE layer { name: "gru" gru { units: 2 } }'
        ' backward_layer { name: "back" gru { units: 3 go_backwards: true } } }',
        L.Bidirectional(L.GRU(2, name="gru"), merge_mode=None,
                        backward_layer=L.GRU(3, go_backwards=True, name="back")),
    )


def _convolutions(rng):
    sequence = (2, 5, 3)
    image = (2, 4, 3, 2)
    for job, layer, shape in (
        ("conv1d_transpose { filters: 2 kernel_size: 3 }", L.Conv1DTranspose(2, 3), sequence),
        (
            "conv1d_transpose { filters: 4 kernel_size: 2 strides: 3 activation: TANH }",
            L.Conv1DTranspose(4, 2, strides=3, activation="tanh"),
            sequence,
        ),
        (
            "conv1d_transpose { filters: 2 kernel_size: 3 strides: 2 padding: SAME"
            " output_padding: 1 use_bias: false }",
            L.Conv1DTranspose(
                2, 3, strides=2, padding="same", output_padding=1, use_bias=False
            ),
            sequence,
        ),
        (
            "conv2d_transpose { filters: 3 kernel_size: 3 strides: 2 padding: SAME }",
            L.Conv2DTranspose(3, 3, strides=2, padding="same"),
            image,
        ),
        (
            "conv2d_transpose { filters: 3 kernel_size: [4, 2] strides: [2, 1] }",
            L.Conv2DTranspose(3, (4, 2), strides=(2, 1)),
            image,
        ),
        (
            "conv2d_transpose { filters: 2 kernel_size: [3, 2] strides: 3"
            " output_padding: [1, 2] }",
            L.Conv2DTranspose(2, (3, 2), strides=3, output_padding=(1, 2)),
            image,
        ),
        ("depthwise_conv1d { kernel_size: 3 }", L.DepthwiseConv1D(3), sequence),
        (
            "depthwise_conv1d { kernel_size: 2 strides: 2 padding: SAME depth_multiplier: 2"
            " activation: RELU }",
            L.DepthwiseConv1D(
                2, strides=2, padding="same", depth_multiplier=2, activation="relu"
            ),
            sequence,
        ),
        (
            "separable_conv1d { filters: 4 kernel_size: 3 }",
            L.SeparableConv1D(4, 3),
            sequence,
        ),
        (
            "separable_conv1d { filters: 2 kernel_size: 2 depth_multiplier: 2"
            " dilation_rate: 2 padding: SAME use_bias: false }",
            L.SeparableConv1D(
                2, 2, depth_multiplier=2, dilation_rate=2, padding="same", use_bias=False
            ),
            sequence,
        ),
    ):
        yield run(f"{job} of rank {len(shape)}", job, layer, normal(rng, *shape), rng)


def _wrappers(rng):
    sequence = (2, 4, 3)
    for wrapped, inner in (
        ("dense { units: 3 }", L.Dense(3, name="inner")),
        ("layer_normalization {}", L.LayerNormalization(name="inner")),
        # Called once per time step in training: each has its own statistics.
        ("batch_normalization {}", L.BatchNormalization(name="inner")),
    ):
        job = f'time_distributed {{ layer {{ name: "inner" {wrapped} }} }}'
        yield run(job, job, L.TimeDistributed(inner), normal(rng, *sequence), rng)
    job = 'time_distributed { layer { name: "inner" conv2d { filters: 2 kernel_size: 2 } } }'
    layer = L.TimeDistributed(L.Conv2D(2, 2, name="inner"))
    yield run(job, job, layer, normal(rng, 2, 3, 4, 3, 2), rng)

    kinds = {"simple_rnn": L.SimpleRNN, "lstm": L.LSTM, "gru": L.GRU}
    for kind, merge_mode, sequences, states in (
        ("lstm", "concat", True, False),
        ("lstm", "sum", False, True),
        ("gru", "mul", True, False),
        ("gru", "ave", False, False),
        ("simple_rnn", None, True, True),
        ("simple_rnn", "concat", False, False),
    ):
        job = (
            f'bidirectional {{ merge_mode: {str(merge_mode).upper()} layer {{ name: "inner"'
            f" {kind} {{ units: 2 return_sequences: {str(sequences).lower()}"
            f" return_state: {str(states).lower()} }} }} }}"
        )
        inner = kinds[kind](2, return_sequences=sequences, return_state=states, name="inner")
        layer = L.Bidirectional(inner, merge_mode=merge_mode)
        yield run(job, job, layer, normal(rng, *sequence), rng)
        mask = [[True, False, True, False], [False, True, True, True]]
        layer = L.Bidirectional(inner, merge_mode=merge_mode)
        yield run(
            f"{job} masked", job, layer, normal(rng, *sequence), rng, mask=tf.constant(mask)
        )
    job = (
        'bidirectional { layer { name: "one" lstm { units: 2 } }'
        ' backward_layer { name: "two" gru { units: 3 go_backwards: true } } }'
    )
    layer = L.Bidirectional(
        L.LSTM(2, name="one"), backward_layer=L.GRU(3, go_backwards=True, name="two")
    )
    yield run(job, job, layer, normal(rng, *sequence), rng)


def _volumes(rng):
    volume = (2, 5, 4, 3, 2)
    for job, layer in (
        ("conv3d { filters: 3 kernel_size: 2 }", L.Conv3D(3, 2)),
        ("conv3d { filters: 2 kernel_size: [3, 2, 1] strides: [2, 1, 1] padding: SAME"
         " activation: TANH }",
         L.Conv3D(2, (3, 2, 1), strides=(2, 1, 1), padding="same", activation="tanh")),
        ("conv3d { filters: 2 kernel_size: [3, 2, 2] strides: [2, 2, 1] use_bias: false }",
         L.Conv3D(2, (3, 2, 2), strides=(2, 2, 1), use_bias=False)),
        ("conv3d { filters: 2 kernel_size: [2, 2, 1] dilation_rate: [2, 2, 1] }",
         L.Conv3D(2, (2, 2, 1), dilation_rate=(2, 2, 1))),
        ("max_pooling3d {}", L.MaxPooling3D()),
        ("max_pooling3d { pool_size: [3, 2, 2] strides: [1, 2, 1] padding: SAME }",
         L.MaxPooling3D((3, 2, 2), strides=(1, 2, 1), padding="same")),
        ("average_pooling3d { pool_size: 2 }", L.AveragePooling3D(2)),
        ("average_pooling3d { pool_size: [3, 3, 2] strides: 2 padding: SAME }",
         L.AveragePooling3D((3, 3, 2), strides=2, padding="same")),
        ("global_max_pooling3d {}", L.GlobalMaxPooling3D()),
        ("global_average_pooling3d { keepdims: true }",
         L.GlobalAveragePooling3D(keepdims=True)),
    ):
        yield run(job, job, layer, normal(rng, *volume), rng)


def _changed_volumes(rng):
    volume = (1, 3, 2, 4, 2)
    for job, layer in (
        ("conv3d_transpose { filters: 3 kernel_size: 2 }", L.Conv3DTranspose(3, 2)),
        ("conv3d_transpose { filters: 2 kernel_size: 3 strides: 2 padding: SAME"
         " activation: TANH }",
         L.Conv3DTranspose(2, 3, strides=2, padding="same", activation="tanh")),
        ("conv3d_transpose { filters: 2 kernel_size: [4, 3, 2] strides: [3, 1, 2]"
         " use_bias: false }",
         L.Conv3DTranspose(2, (4, 3, 2), strides=(3, 1, 2), use_bias=False)),
        ("conv3d_transpose { filters: 2 kernel_size: [1, 2, 3] strides: [3, 2, 2] }",
         L.Conv3DTranspose(2, (1, 2, 3), strides=(3, 2, 2))),
        ("conv3d_transpose { filters: 2 kernel_size: [3, 2, 2] strides: 3"
         " output_padding: [2, 1, 0] }",
         L.Conv3DTranspose(2, (3, 2, 2), strides=3, output_padding=(2, 1, 0))),
        ("conv3d_transpose { filters: 2 kernel_size: [5, 4, 3] strides: [2, 1, 1]"
         " padding: SAME }",
         L.Conv3DTranspose(2, (5, 4, 3), strides=(2, 1, 1), padding="same")),
        ("zero_padding3d {}", L.ZeroPadding3D()),
        ("zero_padding3d { padding: [2, 0, 1] }", L.ZeroPadding3D((2, 0, 1))),
        ("zero_padding3d { padding: [0, 1, 2, 0, 1, 2] }",
         L.ZeroPadding3D(((0, 1), (2, 0), (1, 2)))),
        ("cropping3d { cropping: [1, 0, 1] }", L.Cropping3D((1, 0, 1))),
        ("cropping3d { cropping: [0, 1, 0, 0, 2, 1] }",
         L.Cropping3D(((0, 1), (0, 0), (2, 1)))),
        ("up_sampling3d {}", L.UpSampling3D()),
        ("up_sampling3d { size: [3, 1, 2] }", L.UpSampling3D((3, 1, 2))),
    ):
        yield run(job, job, layer, normal(rng, *volume), rng)


def _products(rng):
    for job, layer, shape in (
        ("softmax {}", L.Softmax(), (2, 3, 4)),
        ("softmax { axis: 1 }", L.Softmax(axis=1), (2, 3, 4)),
        ("softmax { axis: [1, -1] }", L.Softmax(axis=[1, -1]), (2, 3, 2, 4)),
        ('einsum_dense { equation: "ab,bc->ac" output_shape: 4 bias_axes: "c" }',
         L.EinsumDense("ab,bc->ac", 4, bias_axes="c"), (3, 5)),
        ('einsum_dense { equation: "abc,cde->abde" output_shape: [-1, 3, 2] bias_axes: "d" }',
         L.EinsumDense("abc,cde->abde", (None, 3, 2), bias_axes="d"), (2, 4, 3)),
        ('einsum_dense { equation: "...x,xy->...y" output_shape: 4 bias_axes: "y"'
         " activation: TANH }",
         L.EinsumDense("...x,xy->...y", 4, bias_axes="y", activation="tanh"), (2, 3, 2, 5)),
        ('einsum_dense { equation: "ab...,bc->ac..." output_shape: 3 bias_axes: "c" }',
         L.EinsumDense("ab...,bc->ac...", 3, bias_axes="c"), (2, 4, 3, 2)),
        ('einsum_dense { equation: "abcd,dcb->ad" output_shape: 3 }',
         L.EinsumDense("abcd,dcb->ad", 3), (2, 4, 5, 3)),
    ):
        yield run(job, job, layer, normal(rng, *shape), rng)


def _attentions(rng):
    pair = (2, 3, 4), (2, 5, 4)
    triple = (2, 3, 4), (2, 5, 2), (2, 5, 4)
    for job, layer, shapes in (
        ("attention {}", L.Attention(), pair),
        ("attention { use_scale: true }", L.Attention(use_scale=True), triple),
        ('attention { use_scale: true score_mode: CONCAT }',
         L.Attention(use_scale=True, score_mode="concat"), triple),
        ('attention { score_mode: CONCAT }', L.Attention(score_mode="concat"), pair),
        ("additive_attention {}", L.AdditiveAttention(), triple),
        ("additive_attention { use_scale: false }", L.AdditiveAttention(use_scale=False), pair),
        ("group_query_attention { head_dim: 3 num_query_heads: 4 num_key_value_heads: 2 }",
         L.GroupQueryAttention(3, 4, 2), pair),
        ("group_query_attention { head_dim: 2 num_query_heads: 3 num_key_value_heads: 1"
         " use_bias: false }",
         L.GroupQueryAttention(2, 3, 1, use_bias=False), pair),
    ):
        x = [normal(rng, *shape) for shape in shapes]
        yield run(job, job, layer, x, rng)


def _dots(rng):
    for job, axes, normalize, shapes in (
        ("axes: 1", 1, False, ((2, 3), (2, 3))),
        ("axes: -1 normalize: true", -1, True, ((2, 4), (2, 4))),
        ("axes: [2, 1]", (2, 1), False, ((2, 5, 3), (2, 3, 4))),
        ("axes: [1, 2] normalize: true", (1, 2), True, ((2, 3, 5), (2, 4, 3))),
        ("axes: [1, 3]", (1, 3), False, ((2, 3, 5, 2), (2, 4, 2, 3))),
        ("axes: [1, 2]", (1, 2), False, ((2, 3), (2, 4, 3))),
    ):
        job = f"dot {{ {job} }}"
        x = [normal(rng, *shape) for shape in shapes]
        yield run(f"{job} of {shapes}", job, L.Dot(axes, normalize=normalize), x, rng)


def _group_normalization(rng):
    for name, shape, job, options in (
        ("images", (2, 3, 2, 6), "groups: 3", {"groups": 3}),
        ("one_group", (3, 4), "groups: 1", {"groups": 1}),
        ("instance", (2, 4, 3), "groups: -1", {"groups": -1}),
        ("channels_first", (2, 4, 3, 2), "groups: 2 axis: 1", {"groups": 2, "axis": 1}),
        (
            "middle_axis",
            (2, 3, 4, 2),
            "groups: 2 axis: -2 epsilon: 0.5",
            {"groups": 2, "axis": -2, "epsilon": 0.5},
        ),
        ("no_center", (2, 3, 4), "groups: 2 center: false", {"groups": 2, "center": False}),
        ("no_scale", (2, 3, 4), "groups: 2 scale: false", {"groups": 2, "scale": False}),
    ):
        # Far from zero, to reveal a variance computed as the difference of
        # squares.
        yield run(
            f"GroupNormalization.{name}",
            f"group_normalization {{ {job} }}",
            L.GroupNormalization(**options),
            2 * normal(rng, *shape) + 30,
            rng,
        )


def _plain_layers(rng):
    """Layers whose numbers depend on nothing but the input and the weights."""
    sequence = (2, 7, 3)
    image = (2, 5, 6, 3)
    for job, layer, shape in (
        ("elu {}", L.ELU(), sequence),
        ("elu { alpha: 0.5 }", L.ELU(alpha=0.5), sequence),
        ("identity {}", L.Identity(), sequence),
        ("rms_normalization {}", L.RMSNormalization(), sequence),
        ("rms_normalization { axis: 3 epsilon: 0.5 }",
         L.RMSNormalization(axis=3, epsilon=0.5), image),
        ("unit_normalization {}", L.UnitNormalization(), sequence),
        ("unit_normalization { axis: [1, 2] }", L.UnitNormalization(axis=[1, 2]), image),
        ("max_pooling1d {}", L.MaxPooling1D(), sequence),
        ("max_pooling1d { pool_size: 3 strides: 1 padding: SAME }",
         L.MaxPooling1D(3, strides=1, padding="same"), sequence),
        ("average_pooling1d {}", L.AveragePooling1D(2), sequence),
        ("average_pooling1d { pool_size: 3 strides: 2 padding: SAME }",
         L.AveragePooling1D(3, strides=2, padding="same"), sequence),
        ("global_max_pooling1d {}", L.GlobalMaxPooling1D(), sequence),
        ("global_max_pooling1d { keepdims: true }",
         L.GlobalMaxPooling1D(keepdims=True), sequence),
        ("global_average_pooling1d {}", L.GlobalAveragePooling1D(), sequence),
        ("repeat_vector { n: 3 }", L.RepeatVector(3), (2, 4)),
        ("up_sampling1d {}", L.UpSampling1D(), sequence),
        ("up_sampling2d { size: [3, 2] }", L.UpSampling2D((3, 2)), image),
        ("zero_padding1d {}", L.ZeroPadding1D(), sequence),
        ("zero_padding1d { padding: [0, 2] }", L.ZeroPadding1D((0, 2)), sequence),
        ("cropping1d {}", L.Cropping1D(), sequence),
        ("cropping1d { cropping: [0, 2] }", L.Cropping1D((0, 2)), sequence),
        ("cropping2d { cropping: 0 }", L.Cropping2D(0), image),
        ("cropping2d { cropping: [0, 1, 2, 3] }", L.Cropping2D(((0, 1), (2, 3))), image),
    ):  # fmt: skip
        yield run(f"{job} of rank {len(shape)}", job, layer, normal(rng, *shape), rng)
