"""The files of a library for other build systems: one archive, headers, link options."""

def _development_files_impl(ctx):
    info = ctx.attr.library[CcInfo]
    libraries = []
    link_options = []
    for linker_input in info.linking_context.linker_inputs.to_list():
        for library in linker_input.libraries:
            archive = library.static_library or library.pic_static_library
            if archive and archive not in libraries:
                libraries.append(archive)
        for option in linker_input.user_link_flags:
            if option not in link_options:
                link_options.append(option)

    script = ctx.actions.declare_file(ctx.label.name + ".mri")
    ctx.actions.write(script, "\n".join(
        ["create " + ctx.outputs.archive.path] +
        ["addlib " + library.path for library in libraries] +
        ["save", "end", ""],
    ))
    ctx.actions.run_shell(
        command = 'ar -M < "$1"',
        arguments = [script.path],
        inputs = [script] + libraries,
        mnemonic = "MergeArchives",
        outputs = [ctx.outputs.archive],
        use_default_shell_env = True,
    )
    ctx.actions.write(ctx.outputs.link_options, "\n".join(link_options) + "\n")

    include = ctx.actions.declare_directory(ctx.label.name + "_include")
    ctx.actions.run(
        executable = "python3",
        arguments = [
            "-B",
            ctx.file._collect_headers.path,
            ctx.file.header.path,
            include.path,
            ".",
            ctx.bin_dir.path,
        ],
        inputs = depset(
            [ctx.file._collect_headers],
            transitive = [info.compilation_context.headers],
        ),
        mnemonic = "CollectHeaders",
        outputs = [include],
        use_default_shell_env = True,
    )
    files = depset([ctx.outputs.archive, ctx.outputs.link_options, include])
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files))]

development_files = rule(
    doc = "Makes the files NAME_include/, `archive` and `link_options`.",
    implementation = _development_files_impl,
    attrs = {
        "archive": attr.output(
            doc = "All objects of the library and of the libraries that it depends on.",
            mandatory = True,
        ),
        "header": attr.label(
            allow_single_file = [".h"],
            doc = "What programs include. NAME_include/ has this header and what it includes.",
            mandatory = True,
        ),
        "library": attr.label(mandatory = True, providers = [CcInfo]),
        "link_options": attr.output(
            doc = "Options of the linker for the system's libraries, one in a line.",
            mandatory = True,
        ),
        "_collect_headers": attr.label(
            allow_single_file = True,
            default = Label("//deploy/install:collect_headers.py"),
        ),
    },
)
