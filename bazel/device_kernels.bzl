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
            # The driver decompresses what it loads.
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

def device_kernels(name, src, deps = [], testonly = False, visibility = None):
    """A library with `NAME_image.h`, which declares `const KernelImage& NAME_image()`.

    nvcc compiles the file, with warnings as errors, if the build is for GPUs (find_cuda.bzl).
    Nothing of CUDA is linked.

    Args:
      name: the library; MUSTER_SIMULATED_KERNELS in the file names it too.
      src: the .cu file.
      deps: libraries of the headers that it includes, besides device_language.h.
      testonly: as for any rule.
      visibility: as for any rule.
    """
    deps = deps + [Label("//common/core/device:device_language")]
    _device_code(
        name = name + "_code",
        testonly = testonly,
        src = src,
        fatbin = name + ".fatbin",
        header = name + "_image.h",
        image = name + "_image.cc",
        kernels = name,
        # Read by tests that check the use of registers.
        resources = name + ".resources",
        source = name + ".flat.cu",
        visibility = visibility,
        deps = deps,
    )
    native.genrule(
        name = name + "_simulated_cc",
        testonly = testonly,
        srcs = [src],
        outs = [name + "_simulated.cc"],
        cmd = "echo '#include \"%s\"' > $@" % (native.package_name() + "/" + src),
    )
    native.cc_library(
        name = name,
        testonly = testonly,
        srcs = [
            name + "_image.cc",
            name + "_simulated.cc",
        ],
        hdrs = [name + "_image.h"],
        textual_hdrs = [src],
        visibility = visibility,
        deps = deps + [
            Label("//common/core/device:kernel_image"),
            # What simulated kernels call.
            Label("//common/core/device/simulated:simulated_grid"),
        ],
    )
