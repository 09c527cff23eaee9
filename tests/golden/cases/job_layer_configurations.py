"""The configurations of job_layers.json: layers as job text and as Keras objects."""

import keras

L = keras.layers


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


def _image_compositions():
    yield "random_elastic_transform {}", L.RandomElasticTransform()
    yield (
        "random_elastic_transform { factor: [0.25, 0.5] scale: 0.5 interpolation: NEAREST"
        " fill_mode: WRAP fill_value: 0.5 value_range: [0, 1] seed: 7 }",
        L.RandomElasticTransform((0.25, 0.5), 0.5, "nearest", "wrap", 0.5, (0, 1), seed=7),
    )
    equalization = L.ContrastLimitedAdaptiveHistogramEqualization
    yield "contrast_limited_adaptive_histogram_equalization {}", equalization()
    yield (
        "contrast_limited_adaptive_histogram_equalization { value_range: [0, 1] clip_limit: 2"
        " tile_grid_size: [4, 2] }",
        equalization((0, 1), 2.0, (4, 2)),
    )
    yield "rand_augment {}", L.RandAugment()
    yield (
        "rand_augment { value_range: [0, 1] num_ops: 3 factor: [0.25, 0.75]"
        " interpolation: NEAREST seed: 7 }",
        L.RandAugment((0, 1), 3, (0.25, 0.75), "nearest", seed=7),
    )
    yield "aug_mix {}", L.AugMix()
    yield (
        "aug_mix { value_range: [0, 1] num_chains: 2 chain_depth: 1 factor: 0.5 alpha: 0.25"
        " all_ops: false interpolation: NEAREST seed: 7 }",
        L.AugMix((0, 1), 2, 1, 0.5, 0.25, False, "nearest", seed=7),
    )
    yield "mix_up {}", L.MixUp()
    yield "mix_up { alpha: 0.5 seed: 7 }", L.MixUp(0.5, seed=7)
    yield "cut_mix {}", L.CutMix()
    yield "cut_mix { factor: [0.25, 0.5] seed: 7 }", L.CutMix((0.25, 0.5), seed=7)


def configurations():
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
    yield "conv1d { filters: 2 kernel_size: 3 padding: SAME }", L.Conv1D(2, 3, padding="same")
    yield (
        "conv1d { filters: 2 kernel_size: 3 padding: CAUSAL }",
        L.Conv1D(2, 3, padding="causal"),
    )
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
    yield (
        "up_sampling2d { size: 2 interpolation: BILINEAR }",
        L.UpSampling2D(2, interpolation="bilinear"),
    )
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


    for rank, size in ((1, 3), (2, (3, 4)), (3, (3, 4, 2))):
        for mean, kind in ((True, "average"), (False, "max")):
            layer = getattr(L, f"Adaptive{kind.capitalize()}Pooling{rank}D")
            job = f"adaptive_{kind}_pooling{rank}d {{ output_size: {listed(size)} }}"
            yield job, layer(size)
    yield "activity_regularization { l1: 0.5 l2: 0.25 }", L.ActivityRegularization(0.5, 0.25)
    yield "center_crop { height: 3 width: 4 }", L.CenterCrop(3, 4)
    yield "reversible_embedding { input_dim: 5 output_dim: 2 }", L.ReversibleEmbedding(5, 2)
    yield (
        "reversible_embedding { input_dim: 5 output_dim: 2 tie_weights: false mask_zero: true"
        " embeddings_initializer { zeros {} } embeddings_regularizer { l2 { l2: 0.5 } }"
        " reverse_dtype: FLOAT32 logit_soft_cap: 30 }",
        L.ReversibleEmbedding(5, 2, tie_weights=False, mask_zero=True,
                              embeddings_initializer="zeros",
                              embeddings_regularizer=keras.regularizers.L2(0.5),
                              reverse_dtype="float32", logit_soft_cap=30.0),
    )
    yield (
        'spectral_normalization { power_iterations: 2 layer { name: "dense" dense { units: 3 } } }',
        L.SpectralNormalization(L.Dense(3, name="dense"), power_iterations=2),
    )
    yield from _augmentation_configurations()
    yield from _cell_configurations()
    yield from _constraint_configurations()


def _cell_configurations():
    yield "simple_rnn_cell { units: 2 seed: 3 }", L.SimpleRNNCell(2, seed=3)
    yield (
        "lstm_cell { units: 2 unit_forget_bias: false recurrent_dropout: 0.5 activation: RELU }",
        L.LSTMCell(2, unit_forget_bias=False, recurrent_dropout=0.5, activation="relu"),
    )
    yield (
        "gru_cell { units: 2 reset_after: false dropout: 0.5 kernel_regularizer { l2 {} } }",
        L.GRUCell(2, reset_after=False, dropout=0.5, kernel_regularizer="l2"),
    )
    lstm, gru = L.LSTMCell(2, name="one"), L.GRUCell(3, name="two")
    stacked_job = (
        'stacked_rnn_cells { cells { name: "one" lstm_cell { units: 2 } }'
        ' cells { name: "two" gru_cell { units: 3 } } }'
    )
    yield stacked_job, L.StackedRNNCells([lstm, gru])
    yield (
        'rnn { return_sequences: true return_state: true go_backwards: true'
        ' zero_output_for_mask: true cell { name: "cell" gru_cell { units: 3 } } }',
        L.RNN(L.GRUCell(3, name="cell"), return_sequences=True, return_state=True,
              go_backwards=True, zero_output_for_mask=True),
    )
    yield (
        f'rnn {{ cell {{ name: "stack" {stacked_job} }} }}',
        L.RNN(L.StackedRNNCells([lstm, gru], name="stack")),
    )
    yield "conv_lstm1d { filters: 2 kernel_size: 3 }", L.ConvLSTM1D(2, 3)
    yield (
        "conv_lstm2d { filters: 2 kernel_size: [3, 2] strides: 2 padding: SAME activation: RELU"
        " recurrent_activation: HARD_SIGMOID use_bias: false unit_forget_bias: false"
        " kernel_initializer { he_normal {} } recurrent_regularizer { l1 { l1: 0.5 } }"
        " dropout: 0.25 recurrent_dropout: 0.5 seed: 3 return_sequences: true return_state: true"
        " go_backwards: true }",
        L.ConvLSTM2D(2, (3, 2), strides=2, padding="same", activation="relu",
                     recurrent_activation="hard_sigmoid", use_bias=False, unit_forget_bias=False,
                     kernel_initializer="he_normal",
                     recurrent_regularizer=keras.regularizers.L1(0.5), dropout=0.25,
                     recurrent_dropout=0.5, seed=3, return_sequences=True, return_state=True,
                     go_backwards=True),
    )
    yield (
        "conv_lstm3d { filters: 2 kernel_size: 3 dilation_rate: 2 zero_output_for_mask: true }",
        L.ConvLSTM3D(2, 3, dilation_rate=2, zero_output_for_mask=True),
    )
    yield "gru { units: 2 stateful: true }", L.GRU(2, stateful=True)
    yield (
        'rnn { stateful: true cell { name: "cell" gru_cell { units: 3 } } }',
        L.RNN(L.GRUCell(3, name="cell"), stateful=True),
    )
    yield (
        "conv_lstm1d { filters: 2 kernel_size: 3 stateful: true }",
        L.ConvLSTM1D(2, 3, stateful=True),
    )


def _constraint_configurations():
    """Every weight of every layer that Keras can constrain."""
    c = keras.constraints
    constraints = [
        ("max_norm { max_value: 3 axis: [0, 1] }", c.MaxNorm(3, axis=[0, 1])),
        ("non_neg {}", c.NonNeg()),
        ("unit_norm { axis: -1 }", c.UnitNorm(axis=-1)),
        ("min_max_norm { min_value: 0.25 rate: 0.5 }", c.MinMaxNorm(0.25, rate=0.5)),
        ("max_norm {}", c.MaxNorm()),
    ]
    convolution = dict(filters=2, kernel_size=3)
    attention = dict(head_dim=2, num_query_heads=2, num_key_value_heads=1)
    kernel, bias, depth, point = "kernel", "bias", "depthwise", "pointwise"
    table = [("embedding", L.Embedding, dict(input_dim=5, output_dim=2), ["embeddings"]),
             ("reversible_embedding", L.ReversibleEmbedding, dict(input_dim=5, output_dim=2),
              ["embeddings"]),
             ("dense", L.Dense, dict(units=3), [kernel, bias]),
             ("multi_head_attention", L.MultiHeadAttention, dict(num_heads=2, key_dim=3),
              [kernel, bias]),
             ("group_query_attention", L.GroupQueryAttention, attention, [kernel, bias]),
             ("prelu", L.PReLU, {}, ["alpha"]),
             ("batch_normalization", L.BatchNormalization, {}, ["beta", "gamma"]),
             ("layer_normalization", L.LayerNormalization, {}, ["beta", "gamma"]),
             ("group_normalization", L.GroupNormalization, {}, ["beta", "gamma"])]
    for rank in (1, 2, 3):
        table += [(f"conv{rank}d", getattr(L, f"Conv{rank}D"), convolution, [kernel, bias]),
                  (f"conv{rank}d_transpose", getattr(L, f"Conv{rank}DTranspose"), convolution,
                   [kernel, bias]),
                  (f"conv_lstm{rank}d", getattr(L, f"ConvLSTM{rank}D"), convolution,
                   [kernel, "recurrent", bias])]
    for rank in (1, 2):
        table += [(f"depthwise_conv{rank}d", getattr(L, f"DepthwiseConv{rank}D"),
                   dict(kernel_size=3), [depth, bias]),
                  (f"separable_conv{rank}d", getattr(L, f"SeparableConv{rank}D"), convolution,
                   [depth, point, bias])]
    for kind, name in (("simple_rnn", "SimpleRNN"), ("lstm", "LSTM"), ("gru", "GRU")):
        for cell in ("", "Cell"):
            table.append((kind + cell.lower().replace("cell", "_cell"), getattr(L, name + cell),
                          dict(units=2), [kernel, "recurrent", bias]))
    drawn = 0
    for kind, layer, arguments, weights in table:
        job = "".join(f" {name}: {value}" for name, value in arguments.items())
        given = dict(arguments)
        for weight in weights:
            text, given[f"{weight}_constraint"] = constraints[drawn % len(constraints)]
            job += f" {weight}_constraint {{ {text} }}"
            drawn += 1
        yield f"{kind} {{{job} }}", layer(**given)
    yield (
        'einsum_dense { equation: "abc,cd->abd" output_shape: [-1, 3] bias_axes: "d"'
        " kernel_constraint { unit_norm {} } bias_constraint { non_neg {} } }",
        L.EinsumDense("abc,cd->abd", (None, 3), bias_axes="d", kernel_constraint=c.UnitNorm(),
                      bias_constraint=c.NonNeg()),
    )
    yield (
        "prelu { alpha_regularizer { l1 { l1: 0.5 } } }",
        L.PReLU(alpha_regularizer=keras.regularizers.L1(0.5)),
    )


def listed(size):
    return [size] if isinstance(size, int) else list(size)


def _augmentation_configurations():
    for kind, layer in (
        ("random_brightness", L.RandomBrightness),
        ("random_saturation", L.RandomSaturation),
        ("random_color_degeneration", L.RandomColorDegeneration),
        ("random_contrast", L.RandomContrast),
        ("random_hue", L.RandomHue),
        ("random_invert", L.RandomInvert),
        ("random_sharpness", L.RandomSharpness),
    ):
        yield f"{kind} {{ factor: 0.25 }}", layer(0.25)
        yield (
            f"{kind} {{ factor: [0.25, 0.5] value_range: [0, 1] seed: 7 }}",
            layer((0.25, 0.5), value_range=(0, 1), seed=7),
        )
    yield "random_invert {}", L.RandomInvert()
    yield "random_grayscale { factor: 0.25 seed: 7 }", L.RandomGrayscale(0.25, seed=7)
    yield "random_posterization { factor: 4 }", L.RandomPosterization(4)
    yield (
        "random_posterization { factor: [3, 5] value_range: [0, 1] seed: 7 }",
        L.RandomPosterization((3, 5), value_range=(0, 1), seed=7),
    )
    yield "solarization {}", L.Solarization()
    yield (
        "solarization { addition_factor: 0.25 threshold_factor: [0.25, 0.5] value_range: [0, 1]"
        " seed: 7 }",
        L.Solarization(0.25, (0.25, 0.5), value_range=(0, 1), seed=7),
    )
    yield "random_color_jitter {}", L.RandomColorJitter()
    yield (
        "random_color_jitter { brightness_factor: [-0.25, 0.5] contrast_factor: [0.25, 0.5]"
        " saturation_factor: [0, 0.5] hue_factor: [0.5, 1] value_range: [0, 1] seed: 7 }",
        L.RandomColorJitter((0, 1), (-0.25, 0.5), (0.25, 0.5), (0, 0.5), (0.5, 1), seed=7),
    )
    yield from _image_compositions()
    yield "equalization {}", L.Equalization()
    yield "equalization { bins: 16 value_range: [0, 1] }", L.Equalization((0, 1), bins=16)
    yield "random_perspective {}", L.RandomPerspective()
    yield (
        "random_perspective { factor: [0.25, 0.5] scale: 0.5 interpolation: NEAREST"
        " fill_value: 0.5 seed: 7 }",
        L.RandomPerspective((0.25, 0.5), 0.5, "nearest", 0.5, seed=7),
    )
    yield "auto_contrast { value_range: [0, 1] }", L.AutoContrast(value_range=(0, 1))
    yield "random_gaussian_blur {}", L.RandomGaussianBlur()
    yield (
        "random_gaussian_blur { factor: 0.5 kernel_size: [3, 5] sigma: [0.25, 0.5]"
        " value_range: [0, 1] seed: 7 }",
        L.RandomGaussianBlur(0.5, (3, 5), (0.25, 0.5), value_range=(0, 1), seed=7),
    )
    image = dict(fill_mode="constant", interpolation="nearest", fill_value=0.5, seed=7)
    image_job = "fill_mode: CONSTANT interpolation: NEAREST fill_value: 0.5 seed: 7"
    yield (
        f"random_translation {{ height_factor: [-0.5, 0.25] width_factor: [0, 0.5] {image_job} }}",
        L.RandomTranslation((-0.5, 0.25), (0.0, 0.5), **image),
    )
    yield "random_shear {}", L.RandomShear()
    yield (
        f"random_shear {{ x_factor: 0.25 y_factor: [0, 0.5] {image_job} }}",
        L.RandomShear(0.25, (0.0, 0.5), **image),
    )
    yield "random_crop { height: 3 width: 4 seed: 7 }", L.RandomCrop(3, 4, seed=7)
    yield "random_erasing {}", L.RandomErasing()
    yield (
        "random_erasing { factor: 0.5 scale: [0.25, 0.5] fill_value: [1, 2, 3]"
        " value_range: [0, 9] seed: 7 }",
        L.RandomErasing(0.5, (0.25, 0.5), (1, 2, 3), value_range=(0, 9), seed=7),
    )
    yield "random_erasing { fill_value: 4 }", L.RandomErasing(fill_value=4)


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
