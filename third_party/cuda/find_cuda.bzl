"""@cuda: the CUDA toolkit of this machine, or a stand-in that says there is none."""

_PLACES = [
    "/usr/local/cuda",
    "/opt/cuda",
    "/usr/lib/nvidia-cuda-toolkit",
]

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
""",
    implementation = _find_cuda_impl,
    configure = True,
    environ = ["CUDA_PATH"],
    local = True,
)
