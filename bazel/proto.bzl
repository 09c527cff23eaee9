"""Protocol buffers compiled by Debian's protoc."""

def cc_protos(name, schemas = {}, visibility = None):
    """One C++ library of all .proto files in this folder.

    Args:
      name: the library.
      schemas: libraries' sources with the descriptors of a .proto file, comments included: the
        name of the .proto file without its suffix, and that of the array of bytes, a
        FileDescriptorSet. `PROTO_schema.h` beside it declares the array and, with `Size` behind
        its name, the number of bytes.
      visibility: as for any rule.
    """
    protos = native.glob(["*.proto"])
    stems = [proto[:-len(".proto")] for proto in protos]

    # Imports name files from the root of Muster's tree. In a workspace that uses
    # Muster as an external repository the tree lies below that workspace's root.
    repository = native.repository_name()[1:]
    tree = "external/" + repository if repository else "."
    generated = "$(GENDIR)/" + tree if repository else "$(GENDIR)"
    native.genrule(
        name = name + "_generated",
        srcs = protos,
        outs = [stem + suffix for stem in stems for suffix in (".pb.h", ".pb.cc")],
        cmd = "/usr/bin/protoc -I%s --cpp_out=%s $(SRCS)" % (tree, generated),
    )
    for proto, constant in schemas.items():
        _schema(proto, constant, protos, tree)
    native.cc_library(
        name = name,
        srcs = [stem + ".pb.cc" for stem in stems] + [proto + "_schema.cc" for proto in schemas],
        hdrs = [stem + ".pb.h" for stem in stems] + [proto + "_schema.h" for proto in schemas],
        # Ignores warnings of generated code.
        copts = ["-w"],
        visibility = visibility,
        deps = ["@protobuf"],
    )

def _schema(proto, constant, protos, tree):
    native.genrule(
        name = proto + "_set",
        srcs = protos,
        outs = [proto + ".binpb"],
        cmd = "/usr/bin/protoc -I%s --include_imports --include_source_info " % tree +
              "--descriptor_set_out=$@ %s/%s.proto" % (native.package_name(), proto),
    )
    native.genrule(
        name = proto + "_schema_generated",
        srcs = [":" + proto + ".binpb"],
        outs = [proto + "_schema.cc"],
        cmd = """
          {{ echo '#include "{package}/{proto}_schema.h"'
             echo 'namespace muster {{'
             echo 'const unsigned char {constant}[] = {{'
             od -An -v -tx1 $< | sed 's/ \\(..\\)/0x\\1,/g'
             echo '}};'
             echo 'const size_t {constant}Size = sizeof({constant});'
             echo '}}'; }} > $@
        """.format(package = native.package_name(), proto = proto, constant = constant),
    )
