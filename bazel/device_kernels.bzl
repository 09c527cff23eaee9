"""Device code: one .cu file, for GPUs and for the simulated GPU."""

load(
    "@cuda//:defs.bzl",
    "COMPILES_DEVICE_CODE",
    "NVCC",
    "NVCC_COMPRESSION",
    "NVCC_RELEASE",
)

# Machine code for A100 and H100, and PTX for the GPUs after them.
_ARCHITECTURES = [
    "arch=compute_80,code=sm_80",
    "arch=compute_90,code=sm_90",
    "arch=compute_90,code=compute_90",
]

def _device_code_impl(ctx):
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    roots = depset(transitive = [context.quote_includes, context.includes]).to_list() or ["."]
    source = ctx.outputs.source
    ctx.actions.run(
        executable = "python3",
        arguments = ["-B", ctx.file._embed.path, "flatten", ctx.file.src.path, source.path] + roots,
        inputs = depset([ctx.file.src, ctx.file._embed], transitive = [context.headers]),
        mnemonic = "FlattenDeviceCode",
        outputs = [source],
        use_default_shell_env = True,
    )
    fatbin = ctx.outputs.fatbin
    if COMPILES_DEVICE_CODE:
        # ptxas prints the registers and spills of each kernel, and warns of spills.
        command = " ".join([
            '"%s" -std=c++20 -O3 -fatbin -Werror all-warnings' % NVCC,
            "-Xptxas -v,-warn-spills",
            # The driver decompresses the code when it loads it.
            NVCC_COMPRESSION,
            " ".join(["-gencode " + one for one in _ARCHITECTURES]),
            '"$1" -o "$2" > "$3" 2>&1 || { cat "$3" >&2; exit 1; }',
        ])
    else:
        command = ': > "$2"; : > "$3"'
    ctx.actions.run_shell(
        arguments = [source.path, fatbin.path, ctx.outputs.resources.path],
        command = command,
        env = {"NVCC_RELEASE": NVCC_RELEASE},
        inputs = [source],
        mnemonic = "CompileDeviceCode",
        outputs = [fatbin, ctx.outputs.resources],
        use_default_shell_env = True,
    )
    ctx.actions.run(
        executable = "python3",
        arguments = [
            "-B",
            ctx.file._embed.path,
            "embed",
            ctx.attr.kernels,
            fatbin.path,
            ctx.outputs.header.path,
            ctx.outputs.image.path,
            ctx.outputs.header.short_path,
        ],
        inputs = [ctx.file._embed, source, fatbin],
        mnemonic = "EmbedDeviceCode",
        outputs = [ctx.outputs.header, ctx.outputs.image],
        use_default_shell_env = True,
    )

_device_code = rule(
    implementation = _device_code_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "fatbin": attr.output(mandatory = True),
        "header": attr.output(mandatory = True),
        "image": attr.output(mandatory = True),
        "kernels": attr.string(mandatory = True),
        "resources": attr.output(mandatory = True),
        "source": attr.output(mandatory = True),
        "src": attr.label(allow_single_file = [".cu"], mandatory = True),
        "_embed": attr.label(
            allow_single_file = True,
            default = Label("//bazel:embed_device_code.py"),
        ),
    },
)

def device_code_files(names, deps, testonly):
    """Makes `NAME_image.h` for each .cu file, which declares `const KernelImage& NAME_image()`.

    nvcc compiles the files, with warnings as errors, if the build is for GPUs (find_cuda.bzl).
    Nothing of CUDA is linked.

    Args:
      names: the .cu files without their suffix. MUSTER_SIMULATED_KERNELS in a file names it too.
      deps: libraries of the headers that they include. Headers of the package are added.
      testonly: as for any rule.

    Returns:
      A struct of `headers` and `sources`, for a library, and the `deps` that it needs.
    """
    headers = _folder_headers(testonly, deps)
    for name in names:
        _device_code(
            name = name + "_code",
            testonly = testonly,
            src = name + ".cu",
            fatbin = name + ".fatbin",
            header = name + "_image.h",
            image = name + "_image.cc",
            kernels = name,
            # Read by tests that check the use of registers.
            resources = name + ".resources",
            source = name + ".flat.cu",
            deps = [headers],
        )
        native.genrule(
            name = name + "_simulated_cc",
            testonly = testonly,
            srcs = [name + ".cu"],
            outs = [name + "_simulated.cc"],
            cmd = "echo '#include \"%s/%s.cu\"' > $@" % (native.package_name(), name),
        )
    return struct(
        headers = [name + "_image.h" for name in names],
        sources = [name + suffix for name in names for suffix in ("_image.cc", "_simulated.cc")],
        deps = [
            "//common/core/device",
            "//common/core/device/driver",
            # Simulated kernels call it.
            "//common/core/device/simulated",
        ],
    )

def _folder_headers(testonly, deps):
    """The headers that device code of this package may include, as a library."""
    native.cc_library(
        name = "device_code_headers",
        testonly = testonly,
        hdrs = native.glob(["*.h"]),
        deps = [dep for dep in deps if dep != "//common/core/device"] + ["//common/core/device"],
    )
    return ":device_code_headers"
