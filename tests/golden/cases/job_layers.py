"""job_layers.json: layers in job files and in the config of Keras.

config:  job, the layer in the text format of job files; keras, the result of
         keras.saving.serialize_keras_object() for the same layer.
inputs:  x, the layer's weights and a cotangent of y's shape, if the case has numbers.
outputs: y; grad_x and grad_<weight>, the gradients of sum(y * cotangent).

To test a new layer, add its configuration to job_layer_configurations.py and its numbers
here.
"""

import keras
import numpy as np
import tensorflow as tf

from cases.golden_format import case, normal, seeded, uniform
from cases.job_layer_configurations import configurations, listed
from cases.layer_record import config_of, run

L = keras.layers


def cases():
    for job, layer in configurations():
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
    yield from _adaptive_pooling(seeded(449))
    yield from _spectral_normalization(seeded(450))
    yield from _images(seeded(451))
    yield from _cells(seeded(452))
    yield from _convolutional_recurrences(seeded(453))
    yield from _causal_and_bilinear(seeded(454))
    yield from _interpolated_images(seeded(455))


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


def _causal_and_bilinear(rng):
    sequence = (2, 5, 3)
    causal = {"padding": "causal"}
    for job, layer, shape in (
        ("conv1d { filters: 2 kernel_size: 3 padding: CAUSAL }", L.Conv1D(2, 3, **causal),
         sequence),
        ("conv1d { filters: 2 kernel_size: 2 strides: 2 padding: CAUSAL }",
         L.Conv1D(2, 2, strides=2, **causal), sequence),
        ("conv1d { filters: 2 kernel_size: 2 dilation_rate: 3 padding: CAUSAL }",
         L.Conv1D(2, 2, dilation_rate=3, **causal), sequence),
        ("up_sampling2d { size: [3, 2] interpolation: BILINEAR }",
         L.UpSampling2D((3, 2), interpolation="bilinear"), (2, 3, 4, 2)),
    ):
        yield run(job, job, layer, normal(rng, *shape), rng)


def _wrappers(rng):
    sequence = (2, 4, 3)
    for wrapped, inner in (
        ("dense { units: 3 }", L.Dense(3, name="inner")),
        ("layer_normalization {}", L.LayerNormalization(name="inner")),
        # Called once for each time step in training, with separate statistics.
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
    """Layers whose outputs depend only on the input and the weights."""
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


def _adaptive_pooling(rng):
    for kind in ("Average", "Max"):
        for rank, extents, sizes in (
            # Windows of one size, overlapping windows of two sizes, and repeated windows.
            (1, (6,), (3, 4, 6, 8)),
            (2, (4, 7), ((2, 3), (3, 2), 5)),
            (3, (4, 3, 5), ((2, 3, 4), 2)),
        ):
            for size in sizes:
                job = (
                    f"adaptive_{kind.lower()}_pooling{rank}d"
                    f" {{ output_size: {listed(size)} }}"
                )
                layer = getattr(L, f"Adaptive{kind}Pooling{rank}D")(size)
                x = normal(rng, 2, *extents, 3)
                yield run(f"{job} of {extents}", job, layer, x, rng)


def _spectral_normalization(rng):
    for inner_job, inner, iterations, shape in (
        ("dense { units: 3 }", L.Dense(3, name="inner"), 1, (4, 5)),
        ("conv2d { filters: 2 kernel_size: 2 activation: TANH }",
         L.Conv2D(2, 2, activation="tanh", name="inner"), 3, (2, 4, 3, 2)),
        ("embedding { input_dim: 4 output_dim: 3 }", L.Embedding(4, 3, name="inner"), 1, None),
    ):  # fmt: skip
        job = (
            f"spectral_normalization {{ power_iterations: {iterations}"
            f' layer {{ name: "inner" {inner_job} }} }}'
        )
        layer = L.SpectralNormalization(inner, power_iterations=iterations)
        # Ids as floats: Keras casts the output to the dtype of the input.
        ids = np.array([[0, 3, 1], [3, 3, 2]], np.float32)
        x = ids if shape is None else normal(rng, *shape)
        yield run(job, job, layer, x, rng, has_gradients=shape is not None)


def _images(rng):
    """Random layers whose factors allow only one result."""
    images = 100 * uniform(rng, 2, 5, 6, 3)
    for job, layer in (
        ("center_crop { height: 3 width: 4 }", L.CenterCrop(3, 4)),
        ("center_crop { height: 2 width: 6 }", L.CenterCrop(2, 6)),
        ("center_crop { height: 8 width: 3 }", L.CenterCrop(8, 3)),
        ("center_crop { height: 4 width: 7 }", L.CenterCrop(4, 7)),
    ):
        yield run(job, job, layer, images, rng)
    for job, layer in (
        ("random_brightness { factor: [0.5, 0.5] }", L.RandomBrightness((0.5, 0.5))),
        ("random_contrast { factor: [-0.5, 0.5] value_range: [20, 80] }",
         L.RandomContrast((-0.5, 0.5), value_range=(20, 80))),
        ("random_grayscale { factor: 1 }", L.RandomGrayscale(1.0)),
        ("random_grayscale { factor: 0 }", L.RandomGrayscale(0.0)),
        ("random_invert { factor: [1, 1] }", L.RandomInvert((1.0, 1.0))),
        ("random_invert { factor: 0 }", L.RandomInvert(0.0)),
        ("random_posterization { factor: [3, 3] }", L.RandomPosterization((3, 3))),
        ("solarization {}", L.Solarization()),
        ("random_saturation { factor: [0.25, 0.25] }", L.RandomSaturation((0.25, 0.25))),
        ("random_hue { factor: 0 }", L.RandomHue(0.0)),
        ("random_color_degeneration { factor: [0.25, 0.25] }",
         L.RandomColorDegeneration((0.25, 0.25))),
        ("random_sharpness { factor: [0.75, 0.75] }", L.RandomSharpness((0.75, 0.75))),
        ("auto_contrast {}", L.AutoContrast()),
        ("random_erasing { factor: [1, 1] scale: [1, 1] fill_value: [300, 50, -3] }",
         L.RandomErasing((1.0, 1.0), (1.0, 1.0), (300, 50, -3))),
        ("random_erasing { factor: 0 fill_value: 9 }", L.RandomErasing(0.0, fill_value=9)),
        ("random_gaussian_blur { factor: [1, 1] sigma: [0.5, 0.5] }",
         L.RandomGaussianBlur((1.0, 1.0), sigma=(0.5, 0.5))),
        ("random_gaussian_blur { factor: 0 value_range: [20, 80] }",
         L.RandomGaussianBlur(0.0, value_range=(20, 80))),
        ("random_translation { height_factor: [0.25, 0.25] width_factor: [-0.4, -0.4] }",
         L.RandomTranslation((0.25, 0.25), (-0.4, -0.4))),
        ("random_translation { height_factor: [-0.3, -0.3] width_factor: 0"
         " fill_mode: CONSTANT fill_value: 9 interpolation: NEAREST }",
         L.RandomTranslation((-0.3, -0.3), (0.0, 0.0), fill_mode="constant", fill_value=9.0,
                             interpolation="nearest")),
        ("random_crop { height: 5 width: 4 }", L.RandomCrop(5, 4)),
        ("random_crop { height: 7 width: 6 }", L.RandomCrop(7, 6)),
        ("random_crop { height: 4 width: 9 }", L.RandomCrop(4, 9)),
    ):  # fmt: skip
        x = images
        yield _without_seed(run(job, job, layer, x, rng, has_gradients=False))


def _without_seed(one):
    """Removes the seed that RandomCrop draws itself."""
    if one["config"]["keras"]["class_name"] == "RandomCrop":
        one["config"]["keras"]["config"]["seed"] = None
    return one


def _cells(rng):
    sequence = (2, 4, 3)
    mask = tf.constant([[True, False, True, False], [False, True, True, True]])
    one = ('name: "inner" {} {{ units: 2 }}', lambda cell: cell(2, name="inner"))
    for kind, cell in (("simple_rnn_cell", L.SimpleRNNCell), ("lstm_cell", L.LSTMCell),
                       ("gru_cell", L.GRUCell), ("stack", None)):
        if cell is None:
            inner_job = (
                'name: "inner" stacked_rnn_cells { cells { name: "one" lstm_cell { units: 2 } }'
                ' cells { name: "two" gru_cell { units: 3 } } }'
            )
        else:
            inner_job = one[0].format(kind)
        for options in ({}, {"return_sequences": True, "go_backwards": True},
                        {"return_sequences": True, "zero_output_for_mask": True},
                        {"go_backwards": True}):
            flags = "".join(f" {name}: true" for name in options)
            job = f"rnn {{ cell {{ {inner_job} }}{flags} }}"

            def layer():
                inner = one[1](cell) if cell else L.StackedRNNCells(
                    [L.LSTMCell(2, name="one"), L.GRUCell(3, name="two")], name="inner")
                return L.RNN(inner, **options)

            yield run(job, job, layer(), normal(rng, *sequence), rng)
            yield run(f"{job} masked", job, layer(), normal(rng, *sequence), rng, mask=mask)


def _convolutional_recurrences(rng):
    mask = tf.constant([[True, False, True], [False, True, True]])
    for job, layer, shape in (
        ("conv_lstm1d { filters: 2 kernel_size: 3 }", L.ConvLSTM1D(2, 3), (2, 3, 6, 2)),
        ("conv_lstm1d { filters: 3 kernel_size: 2 strides: 2 padding: SAME return_sequences: true"
         " go_backwards: true activation: RELU }",
         L.ConvLSTM1D(3, 2, strides=2, padding="same", return_sequences=True, go_backwards=True,
                      activation="relu"), (2, 3, 5, 2)),
        ("conv_lstm2d { filters: 2 kernel_size: [3, 2] return_state: true }",
         L.ConvLSTM2D(2, (3, 2), return_state=True), (2, 3, 5, 4, 2)),
        ("conv_lstm2d { filters: 2 kernel_size: 2 dilation_rate: 2 use_bias: false"
         " return_sequences: true }",
         L.ConvLSTM2D(2, 2, dilation_rate=2, use_bias=False, return_sequences=True),
         (2, 3, 4, 5, 1)),
        ("conv_lstm3d { filters: 2 kernel_size: [2, 1, 2] strides: [1, 1, 2] padding: SAME }",
         L.ConvLSTM3D(2, (2, 1, 2), strides=(1, 1, 2), padding="same"), (2, 3, 3, 2, 4, 2)),
    ):
        yield run(job, job, layer, normal(rng, *shape), rng)
        if "return_state" not in job:
            yield run(f"{job} masked", job, layer, normal(rng, *shape), rng, mask=mask)


def _interpolated_images(rng):
    # TensorFlow takes bicubic weights from a table of 1,024 positions between two pixels. The table
    # contains the positions of sizes that are powers of 2.
    for name, size in (("bicubic", (4, 2)), ("lanczos3", (3, 2)), ("lanczos5", (2, 3))):
        job = f"up_sampling2d {{ size: {list(size)} interpolation: {name.upper()} }}"
        layer = L.UpSampling2D(size, interpolation=name)
        yield run(job, job, layer, normal(rng, 2, 3, 4, 2), rng)
