"""Protocol buffers compiled by Debian's protoc."""

def cc_proto(name, deps = [], grpc = False, visibility = None):
    """A C++ library of `name`.proto.

    Args:
      name: the library, and the .proto file beside it without its suffix.
      deps: other cc_proto libraries whose files this one imports.
      grpc: also generates service stubs.
      visibility: as for any rule.
    """
    # Imports name files from the root of Muster's tree. In a workspace that uses
    # Muster as an external repository the tree lies below that workspace's root.
    repository = native.repository_name()[1:]
    tree = "external/" + repository if repository else "."
    generated = "$(GENDIR)/" + tree if repository else "$(GENDIR)"
    outputs = [name + ".pb.h", name + ".pb.cc"]
    plugin = ""
    if grpc:
        outputs += [name + ".grpc.pb.h", name + ".grpc.pb.cc"]
        plugin = "--grpc_out=%s --plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin" % generated

    native.filegroup(
        name = name + "_proto",
        srcs = [name + ".proto"] + [dep + "_proto" for dep in deps],
        visibility = visibility,
    )
    native.genrule(
        name = name + "_generated",
        srcs = [":" + name + "_proto"],
        outs = outputs,
        cmd = "/usr/bin/protoc -I%s --cpp_out=%s %s %s/%s.proto" % (
            tree,
            generated,
            plugin,
            native.package_name(),
            name,
        ),
    )
    native.cc_library(
        name = name,
        srcs = [o for o in outputs if o.endswith(".cc")],
        hdrs = [o for o in outputs if o.endswith(".h")],
        # Generated code is not ours to fix.
        copts = ["-w"],
        visibility = visibility,
        deps = deps + ["@protobuf"] + (["@grpc//:grpc++"] if grpc else []),
    )

def cc_proto_schema(name, proto, constant, visibility = None):
    """A C++ library with the descriptors of a .proto file, comments included.

    Args:
      name: the library; its header `name`.h declares the constants.
      proto: the .proto file without its suffix.
      constant: the name of the array of bytes, a FileDescriptorSet; the constant
        with `Size` behind it is their number.
      visibility: as for any rule.
    """
    repository = native.repository_name()[1:]
    tree = "external/" + repository if repository else "."
    native.genrule(
        name = name + "_set",
        srcs = [":" + proto + "_proto"],
        outs = [name + ".binpb"],
        cmd = "/usr/bin/protoc -I%s --include_imports --include_source_info " % tree +
              "--descriptor_set_out=$@ %s/%s.proto" % (native.package_name(), proto),
    )
    native.genrule(
        name = name + "_generated",
        srcs = [":" + name + ".binpb"],
        outs = [name + ".cc"],
        cmd = """
          {{ echo '#include "{package}/{name}.h"'
             echo 'namespace muster {{'
             echo 'const unsigned char {constant}[] = {{'
             od -An -v -tx1 $< | sed 's/ \\(..\\)/0x\\1,/g'
             echo '}};'
             echo 'const size_t {constant}Size = sizeof({constant});'
             echo '}}'; }} > $@
        """.format(package = native.package_name(), name = name, constant = constant),
    )
    native.cc_library(
        name = name,
        srcs = [name + ".cc"],
        hdrs = [name + ".h"],
        visibility = visibility,
    )
