"""A room is a folder: one library of its sources and one program of its tests."""

load("//bazel:device_kernels.bzl", "device_code_files")
load("//bazel:layers.bzl", "visible_to")
load("//bazel:units.bzl", "in_units", "joined_tests")

def _folder():
    return native.package_name().split("/")[-1]

def _without_duplicates(labels):
    """Labels in one form: `@absl` is `@absl//:absl`, `//a/b` is `//a/b:b`.

    Bazel prints those of a rule with the name of the repository where Muster is an external one.
    """
    full = {}
    this_repository = native.repository_name() + "//"
    for label in labels:
        if label.startswith(this_repository):
            label = label[len(this_repository) - 2:]
        if label.startswith("@") and "//" not in label:
            label = label + "//:" + label[1:]
        elif ":" not in label:
            label = label + ":" + label.split("/")[-1]
        full[label] = None
    return full.keys()

def muster_room(
        name = None,
        deps = [],
        copts = [],
        linkopts = [],
        data = [],
        exclude = [],
        generated_headers = [],
        device_code = [],
        testonly = False,
        alwayslink = False):
    """The library of all sources in this folder but tests and main programs.

    Tests are named *_test.cc; *_under_test.cc is what tests use. Main programs are named
    *_main.cc. The sources may be compiled as one (units.bzl): what they keep to themselves has
    names that no other source of the room has.

    Args:
      name: the library. The default is the name of the folder.
      deps: other rooms, and libraries of the system. Abseil is always one.
      copts: options of the compiler for every source of the room.
      linkopts: options of the linker.
      data: files that the room reads when it runs.
      exclude: sources of programs and libraries of their own.
      generated_headers: rules whose outputs are headers of the room.
      device_code: names of .cu files, without suffix: see device_kernels.bzl.
      testonly: only tests use the room. True in folders named testing.
      alwayslink: all objects are linked, whether a symbol of theirs is used or not.
    """
    package = native.package_name()
    testonly = testonly or _folder() == "testing"
    generated = device_code_files(device_code, deps, testonly) if device_code else struct(
        headers = [],
        sources = [],
        deps = [],
    )
    name = name or _folder()
    compiled = in_units(name, native.glob(
        ["*.cc"],
        exclude = ["*_test.cc", "*_main.cc"] + exclude,
    ) + native.glob(["*_under_test.cc"]))
    native.cc_library(
        name = name,
        testonly = testonly,
        srcs = compiled.srcs + generated.sources,
        hdrs = native.glob(["*.h"]) + generated_headers + generated.headers,
        alwayslink = alwayslink,
        copts = copts,
        data = data,
        linkopts = linkopts,
        textual_hdrs = compiled.textual_hdrs + [kernels + ".cu" for kernels in device_code],
        visibility = ["//:__subpackages__"] if testonly else visible_to(package),
        deps = _without_duplicates(deps + generated.deps + ["@absl"]),
    )

def muster_tests(
        deps = [],
        data = [],
        alone = {},
        exclude = [],
        copts = [],
        linkopts = [],
        shard_count = None,
        size = "medium"):
    """The program `tests` of all tests in this folder, and programs of single tests.

    Args:
      deps: what the tests use besides the room, its dependencies and GoogleTest.
      data: files that tests read.
      alone: tests that need a process or options of their own: the name, which is that of
        the source without suffix, and the attributes of its cc_test. `has_main` is for a
        source that has its own main().
      exclude: sources that are no tests of this kind.
      copts: options of the compiler.
      linkopts: options of the linker.
      shard_count: how many processes share the tests of `tests`.
      size: of `tests`.
    """
    name = "library" if native.existing_rule("library") else _folder()
    room = native.existing_rule(name)
    if room and room["kind"] == "cc_library":
        deps = _without_duplicates(deps + [":" + name] + list(room["deps"]))
    else:
        deps = _without_duplicates(deps + ["@absl"])
    gtest = ["@googletest//:gtest_main"]
    together = native.glob(
        ["*_test.cc"],
        exclude = ["*_under_test.cc"] + exclude + [
            source
            for name, attributes in alone.items()
            for source in attributes.get("srcs", [name + ".cc"])
        ],
        allow_empty = True,
    )
    if together:
        native.cc_test(
            name = "tests",
            size = size,
            srcs = joined_tests(together),
            copts = copts,
            data = data,
            linkopts = linkopts,
            shard_count = shard_count,
            visibility = ["//:__subpackages__"],
            deps = deps + gtest,
        )
    for name, attributes in alone.items():
        attributes = dict(attributes)
        has_main = attributes.pop("has_main", False)
        native.cc_test(
            name = name,
            size = attributes.pop("size", "medium"),
            srcs = attributes.pop("srcs", [name + ".cc"]),
            copts = copts,
            data = {file: None for file in data + attributes.pop("data", [])}.keys(),
            linkopts = linkopts,
            visibility = ["//:__subpackages__"],
            deps = deps + attributes.pop("deps", []) + ([] if has_main else gtest),
            **attributes
        )
