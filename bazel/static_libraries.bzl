"""Debian's archives (.a) in place of its shared libraries, in one executable."""

def _is_chosen(library, patterns):
    for pattern in patterns:
        if library == pattern or (pattern.endswith("*") and library.startswith(pattern[:-1])):
            return True
    return False

def _static_libraries_impl(ctx):
    libraries = {library: None for library in ctx.attr.indirect}
    for dep in ctx.attr.deps:
        for linker_input in dep[CcInfo].linking_context.linker_inputs.to_list():
            for flag in linker_input.user_link_flags:
                if flag.startswith("-l") and _is_chosen(flag[2:], ctx.attr.libraries):
                    libraries[flag[2:]] = None

    # The linker looks for libNAME.so here first, and finds a script that names the archive.
    scripts = []
    for library in libraries:
        script = ctx.actions.declare_file("%s/lib%s.so" % (ctx.label.name, library))
        ctx.actions.write(script, "INPUT(-l:lib%s.a)\n" % library)
        scripts.append(script)
    linker_input = cc_common.create_linker_input(
        owner = ctx.label,
        additional_inputs = depset(scripts),
        user_link_flags = depset(
            ["-L" + scripts[0].dirname] + ["-l" + library for library in ctx.attr.indirect],
            order = "topological",
        ),
    )
    return [CcInfo(
        linking_context = cc_common.create_linking_context(
            linker_inputs = depset([linker_input]),
        ),
    )]

static_libraries = rule(
    doc = """Makes an executable that depends on it link archives of the system.

    The executable has only what it uses of them, and the loader has no symbols of them to
    look up. A library must be in the executable once: choose none that a shared library of
    the executable needs too.""",
    implementation = _static_libraries_impl,
    attrs = {
        "deps": attr.label_list(
            doc = "What the executable depends on.",
            mandatory = True,
            providers = [CcInfo],
        ),
        "indirect": attr.string_list(
            doc = "Libraries that only the chosen ones need: a shared library names them " +
                  "itself, an archive does not.",
        ),
        "libraries": attr.string_list(
            doc = "Those of the libraries of `deps` to link from archives; a * stands for " +
                  "any end of the name.",
            mandatory = True,
        ),
    },
)
