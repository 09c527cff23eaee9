"""The layers of the source tree, from the bottom up.

A room uses rooms of its own folder and of earlier lines. docs/rooms.md says what each room
contains.
"""

LAYERS = [
    ["proto"],
    ["common/core/base"],
    ["common/core/tensor"],
    ["common/core/system"],
    ["common/core/device", "common/core/pjrt"],
    ["common/io/storage"],
    ["common/io/checkpoint", "common/io/image", "common/io/records", "common/io/tar"],
    ["common/io/events", "common/io/keras"],
    ["common/net/cluster", "common/net/rpc"],
    ["common/net/status"],
    ["common/net/process"],
    ["common/net/collectives"],
    ["common/compute/functions", "common/compute/programs"],
    ["common/compute/graph", "common/compute/kernels"],
    ["common/compute/optimizers"],
    ["common/compute/ops"],
    ["common/compute/autodiff", "common/compute/variables"],
    ["common/compute/runtime"],
    ["common/compute/conformance"],
    ["common/compute/stablehlo"],
    ["common/dataset"],
    ["common/learn/nn"],
    ["common/learn/strategy"],
    ["common/learn/train"],
    ["ps"],
    ["worker"],
    ["coordinator"],
    # These use everything. Only their own tests use them.
    ["bench", "deploy", "examples", "tests"],
]

def _is_in(package, folder):
    return package == folder or package.startswith(folder + "/")

def visible_to(package):
    """Returns the visibility of a room: its own folder and all later layers."""
    for index, folders in enumerate(LAYERS):
        for folder in folders:
            if _is_in(package, folder):
                later = [name for layer in LAYERS[index + 1:] for name in layer]
                return ["//:__pkg__"] + [
                    "//%s:__subpackages__" % name
                    for name in [folder] + later
                ]
    fail("%s is in no layer of bazel/layers.bzl" % package)
