"""Units: several sources that are compiled as one, because they share most of their headers."""

# More would leave processors idle at the end of a build.
_SOURCES_IN_UNIT_MAX = 40

def _unit_sources_impl(ctx):
    sources = ctx.files.srcs
    size = (len(sources) + len(ctx.outputs.outs) - 1) // len(ctx.outputs.outs)
    for index, unit in enumerate(ctx.outputs.outs):
        ctx.actions.write(unit, "".join([
            '#include "%s/%s"\n' % (source.owner.package, source.basename)
            for source in sources[index * size:(index + 1) * size]
        ]))

_unit_sources = rule(
    implementation = _unit_sources_impl,
    attrs = {
        "outs": attr.output_list(mandatory = True),
        "srcs": attr.label_list(allow_files = [".cc"], mandatory = True),
    },
)

def in_units(name, sources):
    """Returns what `srcs` and `textual_hdrs` of a library of these sources are.

    With --config=units they are compiled in units, and one by one without it.
    """
    if len(sources) < 2:
        return struct(srcs = sources, textual_hdrs = [])
    count = (len(sources) + _SOURCES_IN_UNIT_MAX - 1) // _SOURCES_IN_UNIT_MAX
    units = ["%s_unit_%d.cc" % (name, index) for index in range(count)]
    _unit_sources(name = name + "_units", srcs = sources, outs = units)
    return struct(
        srcs = select({
            "//bazel:compiles_units": units,
            "//conditions:default": sources,
        }),
        textual_hdrs = select({
            "//bazel:compiles_units": sources,
            "//conditions:default": [],
        }),
    )

def _joined_tests_impl(ctx):
    sources = ctx.files.srcs
    size = (len(sources) + len(ctx.outputs.outs) - 1) // len(ctx.outputs.outs)
    for index, unit in enumerate(ctx.outputs.outs):
        joined = sources[index * size:(index + 1) * size]
        ctx.actions.run(
            executable = "python3",
            arguments = ["-B", ctx.file._join.path, unit.path] +
                        [source.path for source in joined],
            inputs = joined + [ctx.file._join],
            mnemonic = "JoinTests",
            outputs = [unit],
            use_default_shell_env = True,
        )

_joined_tests = rule(
    implementation = _joined_tests_impl,
    attrs = {
        "outs": attr.output_list(mandatory = True),
        "srcs": attr.label_list(allow_files = [".cc"], mandatory = True),
        "_join": attr.label(default = "//bazel:join_tests.py", allow_single_file = True),
    },
)

def joined_tests(sources):
    """Returns what `srcs` of the program of these tests are.

    As in_units(), but two tests may use one name for different things: join_tests.py.
    """
    if len(sources) < 2:
        return sources
    count = (len(sources) + _SOURCES_IN_UNIT_MAX - 1) // _SOURCES_IN_UNIT_MAX

    # Named as tests are, whose options .bazelrc selects by name.
    units = ["joined_%d_test.cc" % index for index in range(count)]
    _joined_tests(name = "joined_tests", srcs = sources, outs = units, testonly = True)
    return select({
        "//bazel:compiles_units": units,
        "//conditions:default": sources,
    })
