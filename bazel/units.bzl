"""Units: several sources that are compiled as one, because they share most of their headers."""

# More would leave processors idle at the end of a build.
_SOURCES_IN_UNIT_MAX = 20

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
