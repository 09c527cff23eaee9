"""ops.json: the results of single TensorFlow ops.

config:  "op", the name under tf.raw_ops, and its attributes and constant operands
         (axis, begin, paddings ...) by their names there. Ops without a raw op have the
         name of the public function: nn.gelu, nn.batch_normalization,
         nn.sigmoid_cross_entropy_with_logits and clip_by_value. <op>Grad and the other
         cases of _gradients() and _batch_norm() are Muster's ops, with Muster's
         attributes and operands; their outputs come from a gradient tape. The functions of
         control_flow.py are traced in golden_test.cc.
inputs:  the tensor operands by the raw op's names; for a list, <name>_0, <name>_1 ...
outputs: output; for several, the raw op's names, or output_0, output_1 ...
"""

import itertools

import ml_dtypes
import numpy as np
import tensorflow as tf

from cases import control_flow, layer_norm
from cases.golden_format import case, normal, seeded, uniform

WIDE = np.float32([-100, -20, -3, -1.5, -0.5, -0.001, 0, 0.001, 0.25, 1, 2.5, 6.5, 20, 80])
INF = np.float32("inf")
NAN = np.float32("nan")


def cases():
    yield from _binary(seeded(600))
    yield from _unary()
    yield from _matmul(seeded(601))
    yield from _reduce(seeded(602))
    yield from _compare()
    yield from _select(seeded(603))
    yield from _join_and_cut(seeded(604))
    yield from _index(seeded(605))
    yield from _crossentropy(seeded(606))
    yield from _cast()
    yield from _copy()
    yield from _gradients(seeded(607))
    yield from _convolution(seeded(608))
    yield from _pool(seeded(609))
    yield from _batch_norm(seeded(610))
    yield from _resample(seeded(611))
    yield from itertools.chain(control_flow.cases(), layer_norm.cases())
    # The same cases of OneHot, with ids in range.
    yield _run(
        "OneHot",
        "in_range",
        {"indices": np.int32([[1, 0], [2, 1]])},
        depth=3,
        on_value=2.0,
        off_value=-0.5,
        axis=-1,
    )


def _binary(rng):
    """Broadcasting, and operands that show the sign and rounding rules of each operator."""
    shapes = {
        "same": ((2, 3), (2, 3)),
        "scalar": ((2, 3), ()),
        "row": ((2, 3), (3,)),
        "column": ((2, 3), (2, 1)),
        "outer": ((3, 1), (1, 4)),
        "both_grow": ((2, 1, 3), (4, 1)),
        "empty": ((0, 3), (1, 3)),
    }
    operators = ("AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "SquaredDifference")
    for operator, (name, (x, y)) in itertools.product(operators, shapes.items()):
        yield _run(operator, name, {"x": normal(rng, *x), "y": normal(rng, *y)})
    for name in ("row", "outer"):
        x, y = shapes[name]
        yield _run("Pow", name, {"x": uniform(rng, *x, low=0.1, high=2), "y": normal(rng, *y)})
        for operator in ("FloorDiv", "FloorMod"):
            yield _run(operator, name, {"x": 5 * normal(rng, *x), "y": normal(rng, *y)})

    signs = {
        "x": np.float32([7, -7, 7, -7, 6, -6, 0.5, -0.5, 5.5]),
        "y": np.float32([3, 3, -3, -3, 3, 3, 2, 2, -0.25]),
    }
    whole = {"x": np.int32([7, -7, 7, -7, 6, -6, 0]), "y": np.int32([3, 3, -3, -3, 3, 3, 5])}
    for operator in ("RealDiv", "FloorDiv", "FloorMod", "TruncateMod"):
        yield _run(operator, "signs", signs)
    for operator in ("Div", "TruncateDiv", "FloorDiv", "FloorMod", "TruncateMod"):
        yield _run(operator, "signs_int32", whole)
        yield _run(operator, "signs_int64", {k: v.astype(np.int64) for k, v in whole.items()})
    for operator in ("AddV2", "Sub", "Mul", "Maximum", "Minimum"):
        yield _run(operator, "int32", whole)
    yield _run(
        "Pow",
        "signs",
        {"x": np.float32([0, 0, -2, -2, -2, 4, 0]), "y": np.float32([0, 2, 3, 2, -1, 0.5, -1])},
    )
    yield _run("Pow", "int32", {"x": np.int32([2, -3, 0, 5]), "y": np.int32([10, 3, 0, 1])})
    yield _run("RealDiv", "by_zero", {"x": np.float32([1, -1, 0]), "y": np.float32([0, 0, 0])})
    yield _run("DivNoNan", "by_zero", {"x": np.float32([1, 0, 6]), "y": np.float32([0, 0, 4])})
    yield _run("BiasAdd", "", {"value": normal(rng, 2, 3, 4), "bias": normal(rng, 4)})
    yield _run("AddN", "", {"inputs": [normal(rng, 2, 3) for _ in range(3)]})


def _unary():
    for operator in (
        "Neg", "Abs", "Sign", "Square", "Floor", "Ceil", "Exp", "Expm1", "Tanh", "Sigmoid",
        "Erf", "Erfc", "Sin", "Cos", "Atan", "Relu", "Relu6", "Elu", "Selu", "Softplus",
        "Softsign",
    ):  # fmt: skip
        argument = {"Softplus": "features", "Softsign": "features", "Relu": "features",
                    "Relu6": "features", "Elu": "features", "Selu": "features"}  # fmt: skip
        yield _run(operator, "", {argument.get(operator, "x"): WIDE})
    yield _run("LeakyRelu", "", {"features": WIDE}, alpha=0.3)
    for approximate in (False, True):
        yield _run(
            "nn.gelu",
            "approximate" if approximate else "exact",
            {"features": WIDE},
            approximate=approximate,
        )

    positive = np.float32([1e-6, 0.01, 0.5, 1, 2, 3.75, 100, 1e6])
    for operator in ("Log", "Log1p", "Sqrt", "Rsqrt", "Reciprocal"):
        yield _run(operator, "", {"x": positive})
    for operator in ("Log", "Sqrt", "Rsqrt", "Reciprocal"):
        yield _run(operator, "zero_and_below", {"x": np.float32([0, -1])})

    halves = np.float32([-2.5, -1.5, -0.5, -0.4, 0.4, 0.5, 1.5, 2.5, 2.6])
    for operator in ("Round", "Rint", "Floor", "Ceil"):
        yield _run(operator, "halves", {"x": halves})
    yield _run("Neg", "int32", {"x": np.int32([3, 0, -4])})
    yield _run("Square", "int32", {"x": np.int32([3, 0, -4])})
    yield _run("IsNan", "", {"x": np.float32([1, NAN, INF, -INF])})
    yield _run("IsFinite", "", {"x": np.float32([1, NAN, INF, -INF])})
    yield _run("clip_by_value", "", {"t": WIDE}, clip_value_min=-1.0, clip_value_max=2.0)

    rows = np.float32([[1, 2, 3, 4], [0, 0, 0, 0], [1000, -1000, 999, 0], [-5, 0.5, -0.25, 5]])
    for operator in ("Softmax", "LogSoftmax"):
        yield _run(operator, "", {"logits": rows})
    yield _run("L2Loss", "", {"t": rows[3]})


def _matmul(rng):
    for left, right in itertools.product((False, True), repeat=2):
        yield _run(
            "MatMul",
            f"transpose_{int(left)}{int(right)}",
            {
                "a": normal(rng, *_turned((3, 4), left)),
                "b": normal(rng, *_turned((4, 2), right)),
            },
            transpose_a=left,
            transpose_b=right,
        )
        yield _run(
            "BatchMatMulV2",
            f"adjoint_{int(left)}{int(right)}",
            {
                "x": normal(rng, 2, *_turned((3, 4), left)),
                "y": normal(rng, 2, *_turned((4, 2), right)),
            },
            adj_x=left,
            adj_y=right,
        )
    yield _run(
        "BatchMatMulV2", "broadcast_y", {"x": normal(rng, 2, 3, 4), "y": normal(rng, 4, 2)}
    )
    yield _run(
        "BatchMatMulV2",
        "broadcast_both",
        {"x": normal(rng, 2, 1, 3, 4), "y": normal(rng, 3, 4, 2)},
    )
    yield _run(
        "MatMul", "inner_is_empty", {"a": np.zeros((2, 0), "f"), "b": np.zeros((0, 3), "f")}
    )
    yield _run(
        "MatMul", "int32", {"a": np.int32([[1, 2], [3, 4]]), "b": np.int32([[5, 6], [7, -8]])}
    )


def _reduce(rng):
    x = normal(rng, 2, 3, 4)
    axes = {"all": [0, 1, 2], "first": 0, "middle": 1, "last": -1, "two": [0, 2], "none": []}
    for operator in ("Sum", "Mean", "Max", "Min", "Prod"):
        for (name, axis), keep in itertools.product(axes.items(), (False, True)):
            yield _run(
                operator,
                name + ".keep_dims" * keep,
                {"input": x},
                axis=axis,
                keep_dims=keep,
            )
        yield _run(operator, "int32", {"input": np.int32([[7, -2, 4], [1, 1, -9]])}, axis=1)
        yield _run(operator, "of_nothing", {"input": np.zeros((2, 0), "f")}, axis=1)
    for operator in ("All", "Any"):
        yield _run(
            operator, "", {"input": np.array([[1, 1], [1, 0], [0, 0]], dtype=bool)}, axis=1
        )
    # The first of equal values is selected.
    tied = np.float32([[1, 3, 3, 0], [2, 2, 2, 2], [-1, -5, -5, 0]])
    for operator in ("ArgMax", "ArgMin"):
        for axis in (0, 1, 2):
            yield _run(operator, f"axis_{axis}", {"input": x}, dimension=axis)
        yield _run(operator, "ties", {"input": tied}, dimension=-1)
        yield _run(operator, "int32_output", {"input": tied}, dimension=-1, output_type="int32")
    for exclusive, reverse in itertools.product((False, True), repeat=2):
        yield _run(
            "Cumsum",
            f"exclusive_{int(exclusive)}.reverse_{int(reverse)}",
            {"x": x},
            axis=1,
            exclusive=exclusive,
            reverse=reverse,
        )


def _compare():
    floats = {
        "x": np.float32([1, 2, 3, NAN, INF, 0]),
        "y": np.float32([2, 2, 2, NAN, INF, -0.0]),
    }
    whole = {"x": np.int32([[1], [2], [3]]), "y": np.int32([1, 2, 3])}
    for operator in ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"):
        yield _run(operator, "", floats)
        yield _run(operator, "int32_broadcast", whole)
    truth = {"x": np.array([0, 0, 1, 1], dtype=bool), "y": np.array([0, 1, 0, 1], dtype=bool)}
    yield _run("LogicalAnd", "", truth)
    yield _run("LogicalOr", "", truth)
    yield _run("LogicalNot", "", {"x": truth["x"]})


def _select(rng):
    condition = np.array([[1, 0, 1], [0, 0, 1]], dtype=bool)
    t, e = normal(rng, 2, 3), normal(rng, 2, 3)
    yield _run("SelectV2", "", {"condition": condition, "t": t, "e": e})
    yield _run("SelectV2", "row_condition", {"condition": condition[0], "t": t, "e": e})
    yield _run(
        "SelectV2", "scalar_branch", {"condition": condition, "t": t, "e": np.float32(0)}
    )
    yield _run(
        "SelectV2",
        "all_broadcast",
        {"condition": condition[:, :1], "t": t[0], "e": normal(rng, 4, 1, 1)},
    )
    yield _run("Where", "", {"condition": condition})


def _join_and_cut(rng):
    x = normal(rng, 4, 6)
    yield _run("ConcatV2", "axis_0", {"values": [normal(rng, n, 3) for n in (2, 1, 0)]}, axis=0)
    yield _run(
        "ConcatV2", "axis_last", {"values": [normal(rng, 2, n) for n in (1, 3)]}, axis=-1
    )
    yield _run("Split", "", {"value": x}, axis=1, num_split=3)
    yield _run("SplitV", "", {"value": x}, size_splits=[1, 3, -1], axis=1, num_split=3)
    yield _run("Slice", "", {"input": x}, begin=[1, 2], size=[2, -1])
    masks = {
        "begin_mask": 0,
        "end_mask": 0,
        "ellipsis_mask": 0,
        "new_axis_mask": 0,
        "shrink_axis_mask": 0,
    }
    for name, strided in {
        "steps": {"begin": [0, 1], "end": [4, 6], "strides": [2, 2]},
        "negative_step": {"begin": [3, 5], "end": [0, -7], "strides": [-1, -2]},
        "open_ends": {
            "begin": [1, 0],
            "end": [0, 4],
            "strides": [1, 1],
            "begin_mask": 2,
            "end_mask": 1,
        },
        "out_of_range": {"begin": [-9, 2], "end": [99, 2], "strides": [1, 1]},
        "shrink": {"begin": [-1, 1], "end": [0, 4], "strides": [1, 1], "shrink_axis_mask": 1},
        "new_axis": {
            "begin": [0, 0, 0],
            "end": [2, 0, 2],
            "strides": [1, 1, 1],
            "new_axis_mask": 2,
        },
        "ellipsis": {"begin": [0, 2], "end": [0, 3], "strides": [1, 1], "ellipsis_mask": 1},
    }.items():
        yield _run("StridedSlice", name, {"input": x}, **masks | strided)
    small = normal(rng, 2, 3)
    paddings = [[1, 0], [2, 1]]
    yield _run("Pad", "", {"input": small}, paddings=paddings)
    yield _run("PadV2", "", {"input": small}, paddings=paddings, constant_values=-1.5)
    for mode in ("REFLECT", "SYMMETRIC"):
        yield _run("MirrorPad", mode.lower(), {"input": small}, paddings=paddings, mode=mode)
    for axis in (0, 1, -1):
        yield _run("Pack", f"axis_{axis}", {"values": [small, normal(rng, 2, 3)]}, axis=axis)
    yield _run("Unpack", "", {"value": small}, axis=1, num=3)
    yield _run("Reshape", "", {"tensor": x}, shape=[3, -1, 2])
    yield _run("Squeeze", "", {"input": x[:, None, :1]}, axis=[1])
    yield _run("ExpandDims", "", {"input": small}, axis=-1)
    yield _run("Tile", "", {"input": small}, multiples=[2, 3])
    yield _run("BroadcastTo", "", {"input": small[:, :1]}, shape=[2, 2, 3])
    yield _run("ReverseV2", "", {"tensor": small}, axis=[1])
    yield _run("Transpose", "matrix", {"x": small}, perm=[1, 0])
    yield _run("Transpose", "rank_3", {"x": normal(rng, 2, 3, 2)}, perm=[2, 0, 1])
    yield _run("Transpose", "rank_4", {"x": normal(rng, 2, 1, 3, 2)}, perm=[0, 3, 1, 2])
    yield _run("Range", "", {}, start=2, limit=11, delta=3)
    yield _run("Fill", "", {}, dims=[2, 3], value=1.25)


def _index(rng):
    table = normal(rng, 5, 3)
    ids = np.int32([[4, 0], [4, 2]])
    yield _run("GatherV2", "rows", {"params": table, "indices": ids}, axis=0)
    yield _run("GatherV2", "columns", {"params": table, "indices": np.int64([2, 0])}, axis=1)
    yield _run(
        "GatherV2",
        "batched",
        {"params": normal(rng, 2, 4, 3), "indices": np.int32([[3, 0], [1, 1]])},
        axis=1,
        batch_dims=1,
    )
    yield _run("GatherNd", "", {"params": table, "indices": np.int32([[0, 1], [4, 2]])})
    yield _run(
        "ScatterNd",
        "",
        {"indices": np.int32([[3], [0], [3]]), "updates": normal(rng, 3, 2)},
        shape=[4, 2],
    )
    # A negative id belongs to no segment.
    yield _run(
        "UnsortedSegmentSum",
        "",
        {"data": normal(rng, 4, 2), "segment_ids": np.int32([2, 0, 2, -1])},
        num_segments=3,
    )
    for name, axis in {"last": -1, "first": 0}.items():
        # An id out of range results in a row of off values.
        yield _run(
            "OneHot",
            name,
            {"indices": np.int32([1, 0, 3, -1])},
            depth=3,
            on_value=2.0,
            off_value=-0.5,
            axis=axis,
        )
    scores = np.float32([[1, 5, 5, 2], [0, -1, -1, -2]])
    yield _run("TopKV2", "", {"input": scores}, k=3)
    yield _run(
        "InTopKV2",
        "",
        {"predictions": np.float32([[1, 5, 5, 2]] * 4), "targets": np.int32([0, 1, 2, 3])},
        k=1,
    )
    yield _sized(_run("Unique", "", {"x": np.int64([7, 3, 7, 7, 1, 3])}), "y")
    yield _sized(_run("Unique", "floats", {"x": np.float32([0.5, -1, 2, -1, 0.5, 3, 3])}), "y")
    rows = np.array([1, 0, 0, 1, 1], dtype=bool)
    masked = {"tensor": normal(rng, 5, 2), "mask": rows}
    yield _sized(_run("boolean_mask", "", masked), "output")
    elements = {"tensor": np.arange(6, dtype=np.int32).reshape(2, 3),
                "mask": np.array([[0, 1, 1], [1, 0, 0]], dtype=bool)}
    yield _sized(_run("boolean_mask", "elements", elements), "output")


def _crossentropy(rng):
    logits = np.concatenate([normal(rng, 3, 4), np.float32([[500, -500, 0, 1]])])
    labels = tf.nn.softmax(normal(rng, 4, 4)).numpy().round(3)
    yield _run("SoftmaxCrossEntropyWithLogits", "", {"features": logits, "labels": labels})
    yield _run(
        "SparseSoftmaxCrossEntropyWithLogits",
        "",
        {"features": logits, "labels": np.int32([2, 0, 3, 1])},
    )
    yield _run("nn.sigmoid_cross_entropy_with_logits", "", {"logits": logits, "labels": labels})


def _cast():
    floats = np.float32([-3.9, -1.5, -0.5, 0, 0.5, 1.5, 2.5, 3.9, 100.7])
    for target in ("int32", "int64", "bool", "float64"):
        yield _run("Cast", f"float32_to_{target}", {"x": floats}, DstT=target)
    # The conversion of negative floats to uint8 is undefined.
    yield _run(
        "Cast", "float32_to_uint8", {"x": np.float32([0, 0.9, 1.5, 254.9, 255])}, DstT="uint8"
    )
    yield _run("Cast", "int32_to_float32", {"x": np.int32([0, -7, 16777217])}, DstT="float32")
    yield _run("Cast", "int32_to_uint8", {"x": np.int32([0, 255, 256, -1])}, DstT="uint8")
    yield _run(
        "Cast", "int64_to_int32", {"x": np.int64([5, -5, 2**31, 2**40 + 3])}, DstT="int32"
    )
    yield _run("Cast", "bool_to_float32", {"x": np.array([0, 1], dtype=bool)}, DstT="float32")
    yield _run("Cast", "uint8_to_float32", {"x": np.uint8([0, 128, 255])}, DstT="float32")

    # Ties are rounded to even; then the limits of both ranges.
    rounding = np.float32(
        [1, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 1 + 2**-11, 1 + 3 * 2**-11,
         1 + 2**-11 + 2**-20, -1 - 2**-8, 3.14159274, 1e-3, 65504, 65519, 65520, 1e38, 3.4e38,
         2**-14, 2**-24, 2**-25, 3 * 2**-25, 1e-40, INF, -INF, NAN]
    )  # fmt: skip
    for target in ("bfloat16", "float16"):
        yield _run("Cast", f"float32_to_{target}", {"x": rounding}, DstT=target)
    halves = [0, 1.5, -2.25, 65504, 2**-24]
    yield _run("Cast", "float16_to_float32", {"x": np.float16(halves)}, DstT="float32")
    yield _run(
        "Cast",
        "bfloat16_to_float32",
        {"x": np.array(halves, dtype=ml_dtypes.bfloat16)},
        DstT="float32",
    )


def _copy():
    for operator, name in {
        "Identity": "input", "StopGradient": "input", "ZerosLike": "x", "OnesLike": "x"
    }.items():  # fmt: skip
        function = tf.stop_gradient if operator == "StopGradient" else _function(operator)
        yield case(operator, {"op": operator}, {name: WIDE},
                   {"output": function(**{name: WIDE}).numpy()})  # fmt: skip


def _gradients(rng):
    """<op>Grad(gradient, operand): the operand is x, or y = op(x), depending on the op."""
    x = np.float32([-20, -3, -1.5, -0.5, -0.001, 0.001, 0.25, 1, 2.5, 6.5, 20])
    gradient = normal(rng, *x.shape)
    for name, function, attributes, by_output in (
        ("Relu", tf.nn.relu, {}, False),
        ("Relu6", tf.nn.relu6, {}, False),
        ("LeakyRelu", lambda x: tf.nn.leaky_relu(x, alpha=0.3), {"alpha": 0.3}, False),
        ("Elu", tf.nn.elu, {"alpha": 1.0}, False),
        ("Gelu", tf.nn.gelu, {"approximate": False}, False),
        ("Gelu", lambda x: tf.nn.gelu(x, approximate=True), {"approximate": True}, False),
        ("Sigmoid", tf.nn.sigmoid, {}, True),
        ("Tanh", tf.nn.tanh, {}, True),
    ):
        y, (result,) = _taped(function, [x], gradient)
        suffix = ".approximate" if attributes.get("approximate") else ""
        yield case(
            f"{name}Grad{suffix}",
            {"op": f"{name}Grad", **attributes},
            {"gradient": gradient, "operand": y if by_output else x},
            {"output": result},
        )


def _convolution(rng):
    x, kernel = normal(rng, 2, 5, 4, 3), normal(rng, 3, 2, 3, 4)
    depthwise = normal(rng, 3, 2, 3, 2)
    for name, attributes in {
        "valid": {"strides": [1, 1, 1, 1], "padding": "VALID"},
        "same": {"strides": [1, 2, 2, 1], "padding": "SAME"},
    }.items():
        for operator, backprop, weights in (
            ("Conv2D", "Conv2DBackprop", kernel),
            ("DepthwiseConv2dNative", "DepthwiseConv2dNativeBackprop", depthwise),
        ):
            yield _run(operator, name, {"input": x, "filter": weights}, **attributes)
            y = _function(operator)(input=x, filter=weights, **attributes)
            gradient = normal(rng, *y.shape)
            yield _run(
                backprop + "Input",
                name,
                {"filter": weights, "out_backprop": gradient},
                input_sizes=list(x.shape),
                **attributes,
            )
            yield _run(
                backprop + "Filter",
                name,
                {"input": x, "out_backprop": gradient},
                filter_sizes=list(weights.shape),
                **attributes,
            )


def _pool(rng):
    x = normal(rng, 2, 5, 6, 2)
    for name, window in {
        "valid": {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"},
        "same": {"ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "padding": "SAME"},
    }.items():
        y = tf.raw_ops.MaxPool(input=x, **window).numpy()
        gradient = normal(rng, *y.shape)
        yield _run("MaxPool", name, {"input": x}, **window)
        forward = {"orig_input": x, "orig_output": y}
        yield _run("MaxPoolGrad", name, {**forward, "grad": gradient}, **window)
        forward["grad"] = normal(rng, *x.shape)
        yield _run("MaxPoolGradGrad", name, forward, **window)
        yield _run("AvgPool", name, {"value": x}, **window)
        yield _run(
            "AvgPoolGrad", name, {"grad": gradient}, orig_input_shape=list(x.shape), **window
        )


def _batch_norm(rng):
    """Normalizes over the last axis; BatchNormTrainingGrad(gradient, x, scale, mean, variance)."""
    x, scale, offset = normal(rng, 2, 3, 2, 3), uniform(rng, 3, low=0.5), normal(rng, 3)
    mean, variance = normal(rng, 3), uniform(rng, 3, low=0.5)
    yield _run(
        "nn.batch_normalization",
        "",
        {"x": x, "scale": scale, "offset": offset, "mean": mean, "variance": variance},
        variance_epsilon=0.01,
    )

    def train(x, scale, offset):
        mean, variance = tf.nn.moments(x, [0, 1, 2])
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, 0.01)

    gradient = normal(rng, *x.shape)
    y, results = _taped(train, [x, scale, offset], gradient)
    mean, variance = (one.numpy() for one in tf.nn.moments(x, [0, 1, 2]))
    yield case(
        "BatchNormTraining",
        {"op": "BatchNormTraining", "epsilon": 0.01},
        {"0_x": x, "1_scale": scale, "2_offset": offset},
        {"0_y": y, "1_mean": mean, "2_variance": variance},
    )
    yield case(
        "BatchNormTrainingGrad",
        {"op": "BatchNormTrainingGrad", "epsilon": 0.01},
        {"0_gradient": gradient, "1_x": x, "2_scale": scale, "3_mean": mean,
         "4_variance": variance},
        {"0_x": results[0], "1_scale": results[1], "2_offset": results[2]},
    )  # fmt: skip


def _resample(rng):
    images = normal(rng, 2, 3, 4, 2)
    size, rule = [5, 3], {"align_corners": False, "half_pixel_centers": True}
    yield _run("ResizeBilinear", "", {"images": images}, size=size, **rule)
    yield _run("ResizeNearestNeighbor", "", {"images": images}, size=size, **rule)
    yield _run(
        "ResizeBilinearGrad",
        "",
        {"grads": normal(rng, 2, *size, 2), "original_image": images},
        **rule,
    )
    transforms = np.float32([[0.8, -0.5, 0.7, 0.6, 0.9, -1.3, 0, 0],
                             [1.4, 0.2, 0.1, 0.1, 0.7, 0.4, 0.01, 0.1]])  # fmt: skip
    for mode in ("CONSTANT", "NEAREST", "REFLECT", "WRAP"):
        yield _run(
            "ImageProjectiveTransformV3",
            mode.lower(),
            {"images": images, "transforms": transforms},
            output_shape=[3, 4],
            fill_value=0.5,
            interpolation="BILINEAR",
            fill_mode=mode,
        )


def _taped(function, operands, gradient):
    """Returns function(*operands), and the gradients of one of its results."""
    operands = [tf.constant(operand) for operand in operands]
    with tf.GradientTape() as tape:
        for operand in operands:
            tape.watch(operand)
        result = function(*operands)
    return result.numpy(), [
        one.numpy() for one in tape.gradient(result, operands, output_gradients=gradient)
    ]


def _turned(shape, turned):
    return shape[::-1] if turned else shape


def _function(operator):
    """Returns tf.raw_ops.X for "X", and tf.a.b for "a.b", a function without a raw op."""
    if hasattr(tf.raw_ops, operator):
        return getattr(tf.raw_ops, operator)
    function = tf
    for part in operator.split("."):
        function = getattr(function, part)
    return function


def _sized(one, output):
    """Adds the number of results, which Muster's functions need as an argument."""
    one["config"]["size"] = int(one["outputs"][output].shape[0])
    return one


def _run(operator, name, inputs, **attributes):
    result = _function(operator)(**inputs, **attributes)
    named_inputs = {}
    for key, value in inputs.items():
        named_inputs.update(_numbered(key, value))
    return case(
        f"{operator}.{name}" if name else operator,
        {"op": operator, **attributes},
        {key: np.asarray(value) for key, value in named_inputs.items()},
        {key: value.numpy() for key, value in _outputs(result).items()},
    )


def _outputs(result):
    if hasattr(result, "_asdict"):
        return result._asdict()
    return _numbered("output", result)


def _numbered(name, value):
    if isinstance(value, list):
        return {f"{name}_{index}": item for index, item in enumerate(value)}
    return {name: value}
