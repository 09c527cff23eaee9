"""Tests that fail if a target depends on what it must not depend on."""

def assert_no_dependency(name, target, folders, reason):
    """Fails if `target` reaches anything in `folders`. docs/rooms.md lists all of these tests.

    Args:
      name: the test.
      target: a label, or a list of labels.
      folders: paths from the root of the source tree. Folders inside them count.
      reason: one sentence, for docs/rooms.md and the reader of the failure.
    """
    targets = [
        "//" + native.package_name() + label if label.startswith(":") else label
        for label in (target if type(target) == "list" else [target])
    ]
    native.genquery(
        name = name + "_query",
        expression = "filter('//(%s)[/:]', deps(%s))" % ("|".join(folders), " + ".join(targets)),
        scope = targets,
        testonly = True,
    )
    native.sh_test(
        name = name,
        size = "small",
        srcs = ["//bazel:assert_empty.sh"],
        args = ["$(location :%s_query)" % name, "'%s'" % reason.replace("'", "")],
        data = [":%s_query" % name],
    )
