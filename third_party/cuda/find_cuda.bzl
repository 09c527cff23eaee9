"""@cuda: the CUDA toolkit of this machine, or a stand-in that says there is none."""

_PLACES = [
    "/usr/local/cuda",
    "/opt/cuda",
    "/usr/lib/nvidia-cuda-toolkit",
]

# What the drivers of a GPU make, natively and under WSL.
_DRIVER_FILES = [
    "/dev/nvidiactl",
    "/dev/dxg",
]

def _wants_device_code(ctx, has_toolkit):
    """Returns whether nvcc is to compile device code."""
    wanted = ctx.os.environ.get("MUSTER_DEVICE_CODE", "auto")
    if wanted not in ["auto", "on", "off"]:
        fail("MUSTER_DEVICE_CODE is %r; expected auto, on or off" % wanted)
    if wanted == "on" and not has_toolkit:
        fail(("MUSTER_DEVICE_CODE is on, but no CUDA toolkit was found in %s. Install one, " +
              "name its folder with CUDA_PATH, or leave out --config=device_code.") %
             ", ".join(_PLACES))
    if wanted != "auto":
        return wanted == "on"
    has_gpu = [path for path in _DRIVER_FILES if ctx.path(path).exists]
    return has_toolkit and bool(has_gpu or ctx.os.environ.get("CUDA_PATH", ""))

def _release(ctx, nvcc):
    """Returns what nvcc says of itself, or None if it does not run."""
    result = ctx.execute([nvcc, "--version"], timeout = 60)
    if result.return_code != 0:
        return None
    for line in result.stdout.splitlines():
        if "release" in line:
            return line.strip()
    return None

def _compression(release):
    """Returns the options for the smallest code that all drivers of the release can load.

    Since release 13 nvcc packs with Zstandard by default; its highest level saves a quarter.
    """
    major = int(release.partition("release ")[2].partition(".")[0])
    return "-Xfatbin -compress-all" + (" --compress-mode=size" if major >= 13 else "")

def _find_cuda_impl(ctx):
    chosen = ctx.os.environ.get("CUDA_PATH", "")
    root = ""
    release = ""
    for place in [chosen] if chosen else _PLACES:
        nvcc = place + "/bin/nvcc"
        if ctx.path(nvcc).exists and ctx.path(place + "/include/cuda.h").exists:
            found = _release(ctx, nvcc)
            if found:
                root = place
                release = found
                break
    if chosen and not root:
        fail(("CUDA_PATH is %s, where bin/nvcc and include/cuda.h of a working CUDA toolkit " +
              "were not found. Correct it, or unset it to build without GPU code.") % chosen)
    if root:
        ctx.symlink(root + "/include", "include")
    ctx.file("defs.bzl", "\n".join([
        '"""What find_cuda() found."""',
        "HAS_CUDA_TOOLKIT = %s" % bool(root),
        "COMPILES_DEVICE_CODE = %s" % _wants_device_code(ctx, bool(root)),
        "NVCC = %r" % (root + "/bin/nvcc" if root else ""),
        "NVCC_COMPRESSION = %r" % (_compression(release) if root else ""),
        "# Part of the key under which outputs of nvcc are cached.",
        "NVCC_RELEASE = %r" % release,
        "",
    ]))
    ctx.file("BUILD.bazel", "\n".join([
        'package(default_visibility = ["//visibility:public"])',
        "",
        "# Only to compare our declarations with the toolkit's: nothing is linked.",
        "cc_library(",
        '    name = "headers",',
        '    hdrs = glob(["include/*.h", "include/crt/*.h"], allow_empty = True),',
        '    includes = ["include"],',
        ")",
        "",
    ]))

find_cuda = repository_rule(
    doc = """Declares the repository of the CUDA toolkit that is installed, if any.

Looks at CUDA_PATH, or else where NVIDIA, Arch and Debian install it. Muster builds
without one; then device code runs on the simulated GPU only.

MUSTER_DEVICE_CODE says whether nvcc compiles device code: `on`, `off`, or `auto`, the default,
which is `on` where there is a toolkit and this machine has a GPU or CUDA_PATH is set.
--config=device_code is `on`.
""",
    implementation = _find_cuda_impl,
    configure = True,
    environ = [
        "CUDA_PATH",
        "MUSTER_DEVICE_CODE",
    ],
    local = True,
)
