"""The repositories that Muster's BUILD files name."""

load("//third_party/cuda:find_cuda.bzl", "find_cuda")

_OF_MUSTER = [
    # Debian's libraries, one repository each, so that labels read as upstream's do.
    "absl",
    "benchmark",
    "civetweb",
    "curl",
    "googletest",
    "grpc",
    "hdf5",
    "jpeg",
    "nlohmann_json",
    "onednn",
    "openssl",
    "png",
    "prometheus_cpp",
    "protobuf",
    "tcmalloc",
    "zip",
    "zlib",
    # Bazel 4.2.3 searches for these two on the network. They are stand-ins, and
    # third_party/README.md says why.
    "remote_coverage_tools",
    "rules_cc",
]

# Bazel searches for these on the network, too. Debian ships them.
_OF_DEBIAN = ["java", "proto"]

def muster_repositories(path = "."):
    """Declares what a workspace needs that builds Muster.

    Args:
      path: where Muster's tree lies, as in local_repository().
    """
    for name in _OF_MUSTER:
        native.local_repository(
            name = name,
            path = path + "/third_party/" + name,
        )
    for name in _OF_DEBIAN:
        native.local_repository(
            name = "rules_" + name,
            path = "/usr/share/bazel/rules/" + name,
        )
    # CUDA alone is searched for on this machine. Builds work without it.
    find_cuda(name = "cuda")
